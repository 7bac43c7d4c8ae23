"""The simulated clock: SimPy's event loop with a documented order of simultaneous events.

Events at the same time run in the order changes of availability, turns, deliveries, timers; within one kind by node
(server first, then agents by index); then in the order in which they were scheduled. The order depends on nothing else,
in particular not on a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import Any

import simpy

STATE, TURN, DELIVERY, TIMER = -1, 0, 1, 2
NODES = 1 << 32


class Due(tuple[float, int, int, Callable[[Any], None], object]):
    """A callback that is due, as it stands in the heap: (time, priority, number, callback, value).

    It takes the place of SimPy's (time, priority, number, event), and is made and run in half the time.
    """

    __slots__ = ()

    value: Any = property(itemgetter(4))
    """What was handed over with the callback."""


class Clock(simpy.Environment):
    """A SimPy environment that also schedules callbacks at absolute times.

    One bare callback per turn or message is several times cheaper than a process per message. SimPy's public interface
    has neither an absolute time (``schedule`` takes a delay, and now + (time - now) may round) nor anything lighter
    than an event. So this class, and nothing else, uses private fields of SimPy: ``Environment._queue``, ``_eid`` and
    ``_now`` (the heap, the counter of numbers, and the time). SimPy's own events may be in the same heap.
    """

    now: float = property(attrgetter("_now"))  # type: ignore[assignment]
    """Simulated time; SimPy's property of that name runs Python code."""

    def at(self, time: float, kind: int, node: int, callback: Callable[[Any], None], value: object = None) -> None:
        """Call ``callback(due)`` at ``time``, with ``due.value`` = value.

        Args:
            time: absolute simulated time, not before now. Given absolutely because now + (time - now) may round.
            kind: STATE, TURN, DELIVERY or TIMER.
            node: address of the node at which it happens (-1 for the server).
            callback: called with a :class:`Due`.
            value: handed over in it.
        """
        due = Due((time, kind * NODES + node + 1, next(self._eid), callback, value))
        heappush(self._queue, due)  # type: ignore[misc]

    def step(self) -> None:
        """Run the next callback or the next event of SimPy."""
        due: Any = self._queue[0] if self._queue else None
        if type(due) is Due:
            heappop(self._queue)
            self._now = due[0]
            due[3](due)
        else:
            super().step()

    def run(self, until: Any = None) -> Any:
        """Run until nothing is scheduled any more, or as long as SimPy's ``run`` would."""
        if until is not None:
            return super().run(until)
        queue: list[Any] = self._queue
        while queue:
            due = queue[0]
            if type(due) is Due:
                heappop(queue)
                self._now = due[0]
                due[3](due)
            else:
                super().step()
        return None

    @property
    def next_due(self) -> float:
        """When the next event is due; infinity if there is none."""
        return self.peek()

    def advance(self, now: float) -> None:
        """Say what time it is, where a real clock decides; events that are due by then run by ``run_due``."""
        self._now = now

    def run_due(self, now: float) -> None:
        """Run the next event, which was due at ``now`` or before, at the time ``now``."""
        due: Any = self._queue[0]
        self._now = now
        heappop(self._queue)
        due[3](due)

    @property
    def ahead(self) -> int:
        return len(self._queue)
