"""The simulated clock: SimPy's event loop with a documented order of simultaneous events.

Events at the same time run in the order changes of availability, turns, deliveries, timers; within one kind by node
(server first, then agents by index); then in the order in which they were scheduled. The order depends on nothing else,
in particular not on a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any

import simpy
from simpy.events import Event

STATE, TURN, DELIVERY, TIMER = -1, 0, 1, 2
NODES = 1 << 32


class Clock(simpy.Environment):
    """A SimPy environment that also schedules callbacks at absolute times.

    One bare event with one callback per turn or message is several times cheaper than a process per message. SimPy's
    public interface has neither an absolute time (``schedule`` takes a delay, and now + (time - now) may round) nor a
    triggered event that is not scheduled yet. So this class, and nothing else, uses private fields of SimPy:
    ``Environment._queue`` and ``_eid`` (heap of (time, priority, number, event), and the counter of numbers), and
    ``Event._ok`` and ``_value``, which ``Event.succeed`` would set.
    """

    def at(self, time: float, kind: int, node: int, callback: Callable[[Any], None], value: object = None) -> None:
        """Call ``callback(event)`` at ``time``, with ``event.value`` = value.

        Args:
            time: absolute simulated time, not before now. Given absolutely because now + (time - now) may round.
            kind: STATE, TURN, DELIVERY or TIMER.
            node: address of the node at which it happens (-1 for the server).
            callback: called with the event.
            value: handed over in the event.
        """
        event = Event(self)
        event._ok = True
        event._value = value
        event.callbacks = [callback]
        heappush(self._queue, (time, kind * NODES + node + 1, next(self._eid), event))  # type: ignore[misc]

    @property
    def ahead(self) -> int:
        """Number of events that are scheduled."""
        return len(self._queue)
