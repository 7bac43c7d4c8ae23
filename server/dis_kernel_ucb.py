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
        self.distributed = 0

    def collect(self, message: Message, source: Address) -> Outbox:
        """Store an agent's points; points that arrive late join the next synchronisation."""
        assert isinstance(message, NewPoints)
        self.applied += message.pulls
        self._points[source].append(message)
        if self.is_late(message):
            return []
        return self.end_phase() if self.record_answer(source) else []

    def end_phase(self) -> Outbox:
        """Concatenate the points in the order of the agents, and send each agent all points but its own."""
        points = np.concatenate([item.points for items in self._points for item in items])
        rewards = np.concatenate([item.rewards for items in self._points for item in items])
        ends = np.cumsum([sum(len(item.rewards) for item in items) for items in self._points]).tolist()
        self._points = [[] for _ in self._points]
        self.distributed += len(rewards)
        lost = dict(self._lost)
        self.finish_synchronisation()
        outbox: Outbox = []
        for agent, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            missing = MissingPoints(
                points=np.concatenate([points[:start], points[end:]]),
                rewards=np.concatenate([rewards[:start], rewards[end:]]),
                before=start,
                own=end - start,
                version=self.version,
                round=self.round,
            )
            outbox += [(agent, earlier) for earlier in lost.get(agent, ())]
            outbox.append((agent, missing))
        return outbox

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """Missing points are wanted even if there is a newer version: later messages do not repeat them."""
        return isinstance(message, MissingPoints) or super().is_wanted(message, recipient)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Every uploaded point was distributed or waits for the next synchronisation."""
        waiting = sum(len(item.rewards) for items in self._points for item in items)
        uploaded = sum(message.pulls for _, message in uploads)
        if uploaded != self.distributed + waiting:
            yield f"{uploaded} points were uploaded, {self.distributed} were distributed and {waiting} wait"
