"""When an agent with a battery is down: away, or below its reserve."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from coband.simulator.core.hosts import absence
from coband.simulator.core.hosts.absence import Ahead
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.nodes.node import Address


class Powered:
    """The times of one agent that are still to come at which it is down: away, or below its reserve.

    Args:
        absences: the times at which it is down for other reasons.
    """

    def __init__(self, energy: Batteries, agent: Address, absences: Sequence[Ahead]) -> None:
        self._energy, self._agent, self._battery, self._absences = energy, agent, energy.of(agent), absences
        self._known = [deque[tuple[float, float]]() for _ in absences]
        self._window: tuple[float, float] | None = None

    def changed(self) -> float:
        """Energy was spent; when the next absence starts now."""
        self._window = None
        return self._starts()

    def _starts(self) -> float:
        return min([self._battery.flat_at, *(start for start, _ in self._away(self._battery.time))])

    def _away(self, time: float) -> list[tuple[float, float]]:
        """Of each other reason the first window that is not over at a time."""
        for known, ahead in zip(self._known, self._absences, strict=True):
            if not known or known[-1][1] <= time:
                known.extend(ahead.until(time))
        return [next(window for window in known if window[1] > time) for known in self._known]

    @property
    def window(self) -> tuple[float, float]:
        """The next one."""
        if self._window is None:
            start, heals = self._starts(), self._energy.heals
            end = start if start < heals else math.inf  # nobody goes down any more
            while end < math.inf:
                later = self._battery.ready_at(end, heals)
                later = max([later, *(over for away, over in self._away(end) if away <= end and away < heals)])
                if later == end:
                    break
                end = later
            self._window = start, end
        return self._window

    def drop(self) -> None:
        """The next one is over."""
        _, end = self.window
        if (flat := self._battery.flat_at) < end:
            self._energy.empty(self._agent, flat)
        self._energy.settle(self._agent, end)
        for known in self._known:
            while known and known[0][1] <= end:
                known.popleft()
        self._window = None

    def skip(self, now: float) -> tuple[float, float]:
        """Drop all that are over by now; the next one."""
        passed = 0
        while self.window[1] <= now:
            self.drop()
            if (passed := passed + 1) > absence.MOST_AT_ONCE:
                if self._battery.flat_at <= now:
                    raise absence.too_many(self._agent, now)
                self._known = [deque([ahead.skip(now)]) for ahead in self._absences]
                self._energy.settle(self._agent, now)
                self._window, passed = None, 0
        return self.window
