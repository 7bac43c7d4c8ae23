"""The server of OneKernelUCB: forwards every point to all other agents (baseline of paper 000, section 5)."""

from __future__ import annotations

from coband.agents.messages.sharing import Point
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Multicast, Outbox, Server


class OneKernelUCBServer(Server):
    """Numbers the points in their order of arrival; every forwarded point is one communication round."""

    def receive(self, message: Message, source: Address) -> Outbox:
        """Forward a point to all agents but its sender."""
        assert isinstance(message, Point)
        position = self.rounds
        self.rounds += 1
        self.applied += message.pulls
        if self.context.agents == 1:
            return []
        point = Point(point=message.point, reward=message.reward, position=position, round=self.rounds)
        return [(Multicast(excluding=source), point)]
