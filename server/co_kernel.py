"""The server of CoKernelFC and CoKernelFB with ``via: server``: broadcasts the arm means of all agents (paper 003).

It computes nothing. With ``via: peers`` agents send their means to each other, and the server receives no messages.
"""

from __future__ import annotations

import numpy as np

from coband.agents.messages.exploration import AllArmMeans, ArmMeans
from coband.server.in_step import InStepServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox


class CoKernelServer(InStepServer):
    """Collects the arm means of a round; agents wait for the broadcast, so only one round is open at a time."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._means: dict[Address, ArmMeans] = {}

    def collect(self, message: Message, source: Address) -> Outbox:
        """Store an agent's means, and broadcast all means when the last agent has sent its own."""
        assert isinstance(message, ArmMeans)
        self._means[source] = message
        self.applied += message.pulls
        if len(self._means) < self.context.agents:
            return []
        parts = [self._means[agent] for agent in range(self.context.agents)]
        counts, means = np.stack([part.counts for part in parts]), np.stack([part.means for part in parts])
        self._means.clear()
        self.rounds += 1
        return [(ALL_AGENTS, AllArmMeans(counts=counts, means=means, round=message.round))]
