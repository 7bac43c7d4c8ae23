"""The server of CoKernelFC and CoKernelFB with ``via: server``: passes everybody's means on to everybody (paper 003).

It computes nothing. With ``via: peers`` it hears nothing.
"""

from __future__ import annotations

import numpy as np

from coband.agents.messages import AllArmMeans, ArmMeans
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox, Server


class CoKernelServer(Server):
    """Collects the means of a round; nobody starts the next one before, so there is one round at a time."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._means: dict[Address, ArmMeans] = {}

    def receive(self, message: Message, source: Address) -> Outbox:
        """Keep an agent's means; when all are here, send them out."""
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

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Nobody starts a round before everybody has the means of the last one."""
        return self.again(message, recipient)
