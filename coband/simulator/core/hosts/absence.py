"""Which nodes are down now, which is worked out when somebody asks: away, or with a battery below its reserve."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts import absence
from coband.simulator.core.hosts.batteries import Batteries
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.run_context import Down
from coband.simulator.scenario_errors import BrokenOff

NOTHING: FloatArray = np.empty((0, 2))
NEVER: FloatArray = np.full((1, 2), math.inf)
MOST_AT_ONCE = 100_000
"""Times down of one node between two moments at which somebody asks for it; with more a run would not end."""


def too_many(node: Address, time: float) -> BrokenOff:
    """That a node goes down and comes up too often before a time."""
    return BrokenOff(
        f"node {node} is down more than {MOST_AT_ONCE:,} times before {time:g}, when something happens to it next: "
        "what takes so long (agents.compute, agents.handling, a delay, an outage) must be shorter, or the times up and "
        "down longer."
    )


class Ahead:
    """The times of one node that are still to come: windows, from going down to coming up.

    Args:
        later: those from a time on, drawn without those before; or None where they depend on these.
    """

    __slots__ = ("_block", "_blocks", "_later", "_node", "_place")

    def __init__(
        self, node: Address, blocks: Iterator[FloatArray], later: Callable[[float], Iterator[FloatArray] | None]
    ) -> None:
        self._node, self._later = node, later
        self._blocks, self._block, self._place = blocks, NOTHING, 0
        self.drop()

    @property
    def window(self) -> tuple[float, float]:
        """The next one."""
        start, end = self._block[self._place].tolist()
        return start, end

    def drop(self) -> None:
        """The next one is over."""
        self._place += 1
        if self._place >= len(self._block):
            self._block, self._place = next(self._blocks, NEVER), 0

    def skip(self, now: float) -> tuple[float, float]:
        """Drop all that are over by now; the next one."""
        passed, later = 0, self._later
        while self._block[-1, 1] <= now:
            passed += len(self._block)
            if passed > MOST_AT_ONCE:
                if (blocks := later(now)) is None:
                    raise too_many(self._node, now)
                self._blocks, passed, later = blocks, 0, lambda _: None
            self._block, self._place = next(self._blocks, NEVER), 0
        self._place += int(self._block[self._place :, 1].searchsorted(now, "right"))
        return self.window

    def until(self, time: float) -> Iterator[tuple[float, float]]:
        """Drop windows up to the first one that ends later; these."""
        for _ in range(MOST_AT_ONCE):
            window = self.window
            yield window
            self.drop()
            if window[1] > time:
                return
        yield self.skip(time)
        self.drop()


class Absent(Down):
    """The nodes that are down now.

    Attributes:
        until: by address, when somebody who asks for a node has to look at its times; they are never looked at before.
        catch_up: brings what is known of a node up to now.
        is_away: whether a node, up when last asked for, is down now; nothing is taken note of.
    """

    catch_up: Callable[[Address], None]
    is_away: Callable[[Address], bool]

    def __init__(self, clock: Clock, agents: int, gone: set[Address]) -> None:
        super().__init__(gone)
        self._clock = clock
        self.until = [math.inf] * (agents + 1)  # the last one is the server's, whose address is -1

    def __contains__(self, node: Any) -> bool:
        if self.until[node] <= self._clock.now:
            self.catch_up(node)
        return super().__contains__(node)

    def peek(self, node: Address) -> bool:
        """Whether a node is down now, without consequences."""
        return self.is_away(node) if self.until[node] <= self._clock.now else super().__contains__(node)


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
        """Return for each other reason the first window that is not over at a time."""
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
