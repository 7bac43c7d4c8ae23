"""The server of CoKernelFC and CoKernelFB with ``via: server``: broadcasts the arm means of all agents (Du et al.
2023).

It computes nothing. With ``via: peers`` agents send their means to each other, and the server receives no messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coband.agents.messages.exploration import AllArmMeans, ArmMeans
from coband.server.common.ends_together import InStepServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext


class CoKernelServer(InStepServer):
    """Collects the arm means of a round; agents wait for the broadcast, so only one round is open at a time."""

    hears = (ArmMeans,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._told: AllArmMeans | None = None

    def conclude(self, found: Mapping[Address, ArmMeans]) -> None:
        """Broadcast the means of all agents when the last one has sent its own."""
        parts = found.values()
        counts, means = np.stack([part.counts for part in parts]), np.stack([part.means for part in parts])
        self.rounds += 1
        self._told = AllArmMeans(counts=counts, means=means, round=found[0].round)
        self.tell(ALL_AGENTS, self._told)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The last broadcast holds the means of its round's uploads, each in the row of its agent."""
        told = self._told
        if told is None:
            return
        last = {
            agent: upload for agent, upload in uploads if isinstance(upload, ArmMeans) and upload.round == told.round
        }
        same = last.keys() == set(range(self.context.agents)) and all(
            np.array_equal(upload.counts, told.counts[agent]) and np.array_equal(upload.means, told.means[agent])
            for agent, upload in last.items()
        )
        if not same:
            yield f"the arm means of round {told.round} are not those of its {len(last)} uploads"
