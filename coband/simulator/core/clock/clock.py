"""The simulated clock: SimPy's event loop with a documented order of simultaneous events.

Events at the same time run in the order changes of availability, turns, deliveries, timers; within one kind by node
(server first, then agents by index); then in the order in which they were scheduled. The order depends on nothing else,
in particular not on a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from operator import attrgetter
from typing import Any

import simpy

STATE, TURN, DELIVERY, TIMER = -1, 0, 1, 2
NODES = 1 << 32
Due = tuple[float, int, int]
"""Of two events the one that is smaller by this runs first."""
NEVER_DUE: Due = (inf, 0, 0)
CALLBACK = 5
"""Parts of what stands in the heap for a callback."""


class Clock(simpy.Environment):
    """A SimPy environment that also schedules callbacks at absolute times.

    One bare callback per turn or message is several times cheaper than a process per message. SimPy's public interface
    has neither an absolute time (``schedule`` takes a delay, and now + (time - now) may round) nor anything lighter
    than an event. So this class, and nothing else, uses private fields of SimPy: ``Environment._queue``, ``_eid`` and
    ``_now`` (the heap, the counter of numbers, and the time). A callback stands in the heap as (time, priority, number,
    callback, value), beside SimPy's own events, (time, priority, number, event).
    """

    now: float = property(attrgetter("_now"))  # type: ignore[assignment]
    """Simulated time; SimPy's property of that name runs Python code."""
    _running = False

    def at(self, time: float, kind: int, node: int, callback: Callable[[Any], None], value: object = None) -> None:
        """Call ``callback(value)`` at ``time``.

        Args:
            time: absolute simulated time, not before now. Given absolutely because now + (time - now) may round.
            kind: STATE, TURN, DELIVERY or TIMER.
            node: address of the node at which it happens (-1 for the server).
            callback: what is called.
            value: what it is called with.
        """
        heappush(self._queue, (time, kind * NODES + node + 1, next(self._eid), callback, value))  # type: ignore[misc]

    def passes(self, time: float, kind: int, node: int) -> bool:
        """Let time pass to what would be scheduled so, if that came next; not where something else decides on time."""
        due = (time, kind * NODES + node + 1, inf)
        if not self._running or (self._queue and due > self._queue[0]):
            return False
        self._now = time
        return True

    def step(self) -> None:
        """Run the next callback or the next event of SimPy."""
        due: Any = self._queue[0] if self._queue else ()
        if len(due) == CALLBACK:
            self.run_due(due[0])
        else:
            super().step()

    def run(self, until: Any = None) -> Any:
        """Run until nothing is scheduled any more, or as long as SimPy's ``run`` would."""
        if until is not None:
            return super().run(until)
        queue: list[Any] = self._queue
        self._running = True
        while queue:
            due = heappop(queue)
            if len(due) == CALLBACK:
                self._now = due[0]
                due[3](due[4])
            else:
                heappush(queue, due)
                super().step()
        self._running = False
        return None

    @property
    def next_due(self) -> Due:
        """The next event: when it is due (infinity if there is none), its place at that time, and its number."""
        queue: list[Any] = self._queue
        return queue[0][:3] if queue else NEVER_DUE

    def advance(self, now: float, number: int | None = None) -> None:
        """Say what time it is, and ``number`` the next event, where something else decides; see ``run_due``."""
        self._now = now
        if number is not None:
            self._eid = count(number)

    def run_due(self, now: float) -> None:
        """Run the next event, which was due at ``now`` or before, at the time ``now``."""
        due: Any = heappop(self._queue)
        self._now = now
        if len(due) == CALLBACK:
            due[3](due[4])
        else:
            heappush(self._queue, (now, *due[1:]))
            super().step()

    @property
    def ahead(self) -> int:
        return len(self._queue)
