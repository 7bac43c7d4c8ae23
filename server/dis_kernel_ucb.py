"""The server of DisKernelUCB (Li et al. 2022): sends each agent the new points of all other agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.synchronisation import MissingPoints, NewPoints
from coband.server.synchronisation import SynchronousServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, NodeContext, Outbox


class DisKernelUCBServer(SynchronousServer):
    """Waits for the new points of all agents, then distributes them.

    Attributes:
        distributed: number of points distributed so far.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._points: list[list[NewPoints]] = [[] for _ in range(context.agents)]
        self._early: list[dict[int, NewPoints]] = [{} for _ in range(context.agents)]  # by start
        self._next = [0] * context.agents  # start of each agent's next upload
        self.distributed = 0

    def collect(self, message: Message, source: Address) -> Outbox:
        """Store an agent's points; points that arrive late join the next synchronisation."""
        assert isinstance(message, NewPoints)
        self.applied += message.pulls
        self._line_up(source, message)
        if self.is_late(message):
            return []
        return self.end_phase() if self.record_answer(source) else []

    def _line_up(self, source: Address, message: NewPoints) -> None:
        """Keep an agent's points in the order of its pulls, in which it has them itself; what is early waits."""
        if not len(message.rewards):
            self._points[source].append(message)
            return
        early = self._early[source]
        early[message.start] = message
        while self._next[source] in early:
            following = early.pop(self._next[source])
            self._points[source].append(following)
            self._next[source] += len(following.rewards)

    def end_phase(self) -> Outbox:
        """Concatenate the points in the order of the agents, and send each agent all points but its own."""
        taken = [item for items in self._points for item in items]
        points = np.concatenate([np.empty((0, self.context.dimension)), *(item.points for item in taken)])
        rewards = np.concatenate([np.empty(0), *(item.rewards for item in taken)])
        ends = np.cumsum([sum(len(item.rewards) for item in items) for items in self._points]).tolist()
        self._points = [[] for _ in self._points]
        self.distributed += len(rewards)
        self.finish_synchronisation()
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
        """Send missing points again even if there is a newer version: later messages do not repeat them."""
        if isinstance(message, MissingPoints):
            return self.again(message, recipient)
        return super().undelivered(message, recipient)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Every uploaded point was distributed or waits for the next synchronisation."""
        waiting = sum(len(item.rewards) for items in self._points for item in items)
        waiting += sum(len(item.rewards) for items in self._early for item in items.values())
        uploaded = sum(message.pulls for _, message in uploads)
        if uploaded != self.distributed + waiting:
            yield f"{uploaded} points were uploaded, {self.distributed} were distributed and {waiting} wait"
