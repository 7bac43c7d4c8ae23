"""The server of OneKernelUCB: forwards every point to all other agents (baseline of Li et al. 2023, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.sharing import LostPoints, LostPointsRequest, Point
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Multicast, NodeContext, Outbox, Recipient, Server
from coband.simulator.maths.posteriors.observations import GrowingObservations


class OneKernelUCBServer(Talks, Server):
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

    @on(Point)
    def number(self, point: Point, agent: Address) -> Outbox:
        """Forward a point, and those that have waited for it, to all agents but its sender.

        They are not sent again: an agent that misses one asks for it.
        """
        early, outbox = self._early[agent], list[tuple[Recipient, Message]]()
        early[point.position] = point
        while (following := early.pop(self._counts[agent], None)) is not None:
            outbox += self._forward(following, agent)
        return outbox

    def _forward(self, point: Point, source: Address) -> Outbox:
        position, before = self.rounds, tuple(self._counts)
        self.rounds += 1
        self._log.append(point.point, point.reward)
        self._owners.append(source)
        self._counts[source] += 1
        if self.context.agents == 1:
            return []
        sent = Point(point=point.point, reward=point.reward, position=position, before=before, round=self.rounds)
        return [(Multicast(excluding=source), sent)]

    @on(LostPointsRequest)
    def found(self, request: LostPointsRequest, agent: Address) -> LostPoints:
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

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The points of an agent stand in the log in the order of their numbers, but for those that wait for others."""
        log = self._log.since(0)
        entries = list(zip(self._owners, log.features.tolist(), log.rewards.tolist(), strict=True))
        points = [(source, point) for source, point in uploads if isinstance(point, Point)]
        for agent, waiting in enumerate(self._early):
            own = {point.position: (point.point.tolist(), point.reward) for source, point in points if source == agent}
            sent = [own[position] for position in sorted(own.keys() - waiting)]
            kept = [(x, y) for owner, x, y in entries if owner == agent]
            if kept != sent:
                yield f"the {len(kept)} points of agent {agent} in the log are not the {len(sent)} of its uploads"
