"""The server of OneKernelUCB: forwards every point to all other agents (baseline of paper 000, section 5)."""

from __future__ import annotations

import numpy as np

from coband.agents.messages.sharing import LostPoints, LostPointsRequest, Point
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Multicast, NodeContext, Outbox, Server
from coband.simulator.maths.posteriors.observations import GrowingObservations


class OneKernelUCBServer(Server):
    """Numbers the points in their order of arrival; every forwarded point is one communication round.

    The points of one agent are taken in by their own numbers: one that comes before an earlier one, which the transport
    has given up, waits for it. The log is kept for agents that have missed points and ask for them.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._log = GrowingObservations(context.dimension)
        self._owners: list[Address] = []
        self._counts = [0] * context.agents
        self._early: list[dict[int, Point]] = [{} for _ in range(context.agents)]

    def receive(self, message: Message, source: Address) -> Outbox:
        """Forward a point to all agents but its sender, or send points of the log again."""
        if isinstance(message, LostPointsRequest):
            return [(source, self._found(message, source))]
        assert isinstance(message, Point)
        self.applied += message.pulls
        early = self._early[source]
        early[message.position] = message
        outbox: Outbox = []
        while (point := early.pop(self._counts[source], None)) is not None:
            outbox += self._forward(point, source)
        return outbox

    def _forward(self, point: Point, source: Address) -> Outbox:
        position, before = self.rounds, tuple(self._counts)
        self.rounds += 1
        if self.context.agents == 1:
            self._counts[source] += 1
            return []
        self._log.append(point.point, point.reward)
        self._owners.append(source)
        self._counts[source] += 1
        sent = Point(point=point.point, reward=point.reward, position=position, before=before, round=self.rounds)
        return [(Multicast(excluding=source), sent)]

    def _found(self, request: LostPointsRequest, agent: Address) -> LostPoints:
        """The points that an agent lacks, but for its own."""
        owners = np.array(self._owners, dtype=np.intp)
        own_before = np.cumsum(owners == agent) - (owners == agent)
        last = len(owners) - 1 if request.last is None else request.last
        positions = np.arange(request.first, last + 1)
        positions = positions[owners[positions] != agent]
        log = self._log.since(0)
        return LostPoints(
            points=log.features[positions],
            rewards=log.rewards[positions],
            positions=tuple(positions.tolist()),
            before=tuple(own_before[positions].tolist()),
        )
