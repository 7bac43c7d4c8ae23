"""The server of DisKernelUCB (Li et al. 2022): sends every agent the new points that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages import MissingPoints, NewPoints
from coband.server.synchronisation import SynchronousServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, NodeContext, Outbox


class DisKernelUCBServer(SynchronousServer):
    """Waits for everyone's new points, then distributes them.

    Attributes:
        distributed: points distributed so far.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._news: list[list[NewPoints]] = [[] for _ in range(context.agents)]
        self.distributed = 0

    def collect(self, message: Message, source: Address) -> Outbox:
        """Keep an agent's points; those that come late go into the next synchronisation."""
        assert isinstance(message, NewPoints)
        self.applied += message.pulls
        self._news[source].append(message)
        if self.is_late(message):
            return []
        return self.go_on() if self.answered(source) else []

    def go_on(self) -> Outbox:
        """Line up the points of all agents by agent; an agent lacks all but its own."""
        points = np.concatenate([item.points for items in self._news for item in items])
        rewards = np.concatenate([item.rewards for items in self._news for item in items])
        ends = np.cumsum([sum(len(item.rewards) for item in items) for items in self._news]).tolist()
        self._news = [[] for _ in self._news]
        self.distributed += len(rewards)
        self.finish()
        outbox: Outbox = []
        for agent, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            missing = MissingPoints(
                points=np.concatenate([points[:start], points[end:]]),
                rewards=np.concatenate([rewards[:start], rewards[end:]]),
                before=start,
                own=end - start,
                version=self.version,
                round=self.version,
            )
            outbox.append((agent, missing))
        return outbox

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Points that an agent lacks it cannot do without, even when there is a newer model."""
        if isinstance(message, MissingPoints):
            return self.again(message, recipient)
        return super().undelivered(message, recipient)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Every point that came was distributed, or waits for the next synchronisation."""
        waiting = sum(len(item.rewards) for items in self._news for item in items)
        came = sum(message.pulls for _, message in uploads)
        if came != self.distributed + waiting:
            yield f"{came} points came, {self.distributed} were distributed and {waiting} wait"
