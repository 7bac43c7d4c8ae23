"""When nodes are up: models of availability, and what switches nodes off and on during a run.

A node is down from the start of a window on and before its end. What that means for it is the host's affair
(``core.hosts.host``), what it means for messages the transport's.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import STATE, Clock
from coband.simulator.core.clock.schedule import recorded_rows
from coband.simulator.core.config import TIME, Config
from coband.simulator.core.nodes.node import Address
from coband.simulator.plugins.kinds import Kinds

COLUMNS = ["agent", "up", "down"]
Windows = Iterator[tuple[float, float]]
"""(time of going down, time of coming up) again and again, in order; inf for never."""


class BaseAvailability(Config):
    """What all models of availability have."""

    @abstractmethod
    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        """The agent's times down, in order; ``rng`` is a stream of its own."""


class Always(BaseAvailability):
    """Every agent is always there."""

    kind: Literal["always"] = "always"

    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        return iter(())


class MarkovOnOff(BaseAvailability):
    """Each agent is up and down for exponential times in turn, and starts in the stationary distribution."""

    kind: Literal["markov_on_off"]
    mean_up: Annotated[float, TIME] = Field(gt=0)
    """Mean time for which an agent stays up."""
    mean_down: Annotated[float, TIME] = Field(gt=0)
    """Mean time for which it stays down."""

    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        now = 0.0
        if rng.random() >= self.mean_down / (self.mean_up + self.mean_down):
            now = self.mean_up * rng.standard_exponential()
        while True:
            back = now + self.mean_down * rng.standard_exponential()
            yield now, back
            now = back + self.mean_up * rng.standard_exponential()


class Recorded(BaseAvailability):
    """Times from a CSV ``file`` with the columns agent, up, down: one row for each time that an agent is up.

    ``down`` is empty for the end of the run. An agent without a row is always up.
    """

    kind: Literal["trace"]
    file: str
    """The CSV file, relative to the scenario."""

    @model_validator(mode="after")
    def _readable(self) -> Recorded:
        _read_times(self.file)
        return self

    @property
    def agents(self) -> int:
        """One more than the largest agent in the file."""
        return max(_read_times(self.file), default=-1) + 1

    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        now = 0.0
        for up, down in _read_times(self.file).get(agent, [(0.0, math.inf)]):
            if up > now:
                yield now, up
            now = down
        if math.isfinite(now):
            yield now, math.inf


@lru_cache(maxsize=16)
def _read_times(file: str) -> dict[Address, list[tuple[float, float]]]:
    times: dict[Address, list[tuple[float, float]]] = {}
    for place, row in recorded_rows(file, COLUMNS):
        agent, up, down = _times_of(row, place)
        times.setdefault(agent, []).append((up, down))
    for agent, windows in times.items():
        windows.sort()
        if any(later[0] < earlier[1] for earlier, later in pairwise(windows)):
            raise ValueError(f"file {file!r}: the times of agent {agent} overlap")
    return times


def _times_of(row: list[str], place: str) -> tuple[Address, float, float]:
    try:
        agent, up, down = row
        times = int(agent), float(up), float(down) if down.strip() else math.inf
    except ValueError:
        raise ValueError(f"{place}: {','.join(row)!r} is no agent,up,down") from None
    if times[0] < 0 or not 0 <= times[1] < times[2]:
        raise ValueError(f"{place}: {','.join(row)!r} must have agent >= 0 and 0 <= up < down")
    return times


AVAILABILITIES: Kinds[type[BaseAvailability]] = Kinds.of(
    "availabilities", BaseAvailability, (Always, MarkovOnOff, Recorded)
)
"""The models of availability that scenarios can name."""
Availability = Annotated[BaseAvailability, AVAILABILITIES.field()]


class Switch:
    """Puts nodes down and up at their times; a node with several reasons to be down is up when none is left.

    Args:
        down: kept up to date: the nodes that are down now.
        changed: called with a node, whether it is up now, and the seq of the event.
        gone: called with a node that has gone down for good, and the seq of the event.
        idle: given the number of changes ahead, whether nothing else will happen; then nobody goes down any more,
            so that runs end.
    """

    def __init__(
        self,
        clock: Clock,
        trace: Trace,
        down: set[Address],
        changed: Callable[[Address, bool, int], None],
        gone: Callable[[Address, int], None],
        idle: Callable[[int], bool],
    ) -> None:
        self._clock, self._trace, self._down, self._changed, self._idle = clock, trace, down, changed, idle
        self._gone = gone
        self._reasons: dict[Address, int] = {}
        self._since: dict[Address, int] = {}  # seq of the event of going down
        self._ahead = 0

    def follow(self, node: Address, windows: Windows) -> None:
        """Put a node down and up at these times too."""
        start, end = next(windows, (math.inf, math.inf))
        if math.isfinite(start):
            self._at(start, node, self._go_down, (node, end, windows))

    def _at(self, time: float, node: Address, callback: Callable[[Any], None], value: object) -> None:
        self._ahead += 1
        self._clock.at(time, STATE, node, callback, value)

    def _go_down(self, event: Any) -> None:
        self._ahead -= 1
        node, end, windows = event.value
        if self._idle(self._ahead):
            return
        self._reasons[node] = self._reasons.get(node, 0) + 1
        if self._reasons[node] == 1:
            self._down.add(node)
            seq = self._since[node] = self._trace.record(self._clock.now, tr.DOWN, node)
            self._changed(node, False, seq)
        if math.isfinite(end):
            self._at(end, node, self._come_up, (node, windows))
        else:
            self._gone(node, self._since[node])

    def _come_up(self, event: Any) -> None:
        self._ahead -= 1
        node, windows = event.value
        self._reasons[node] -= 1
        if not self._reasons[node]:
            self._down.remove(node)
            self._changed(node, True, self._trace.record(self._clock.now, tr.UP, node))
        self.follow(node, windows)
