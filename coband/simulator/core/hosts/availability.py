"""When agents are up: models of availability.

A node is down from the start of a window on and before its end. ``core.churn`` switches it off and on; what that means
for it is the host's affair (``core.hosts.host``), what it means for messages the transport's.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.schedule import recorded_rows
from coband.simulator.core.config import TIME, Config, read_anew
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.reading import number
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.scenario_errors import BrokenOff

COLUMNS = ["agent", "up", "down"]
Windows = Iterator[tuple[float, float]]
"""(time of going down, time of coming up) again and again, in order; inf for never."""
BLOCK = 64
"""Windows that are drawn at once."""


class BaseAvailability(Config):
    """Base of models of availability, which say when agents are up."""

    @abstractmethod
    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        """The agent's times down, in order; ``rng`` is a stream of its own."""

    def blocks(self, agent: Address, rng: np.random.Generator) -> Iterator[FloatArray]:
        """The same times, some at once, (n, 2) each with n > 0."""
        return blocks_of(agent, self.windows(agent, rng))

    def later(self, agent: Address, rng: np.random.Generator, time: float) -> Iterator[FloatArray] | None:
        """Those from a time on, drawn without those before; None where they depend on these."""
        return None

    def leaves(self, agent: Address) -> float | None:
        """When the agent goes down for good; inf: never; None: only its windows say so.

        With None every change of every agent is an event, even where nothing is due at the agent.
        """
        return None


def blocks_of(node: Address, windows: Iterable[tuple[float, float]]) -> Iterator[FloatArray]:
    """Times down of a node, one at once.

    Raises:
        BrokenOff: they are not in order, with which a run would not come to its end.
    """
    last = 0.0
    for start, end in windows:
        if not last <= start < end:
            raise BrokenOff(
                f"node {node} is to go down at {start:g} and to come up at {end:g}, and the last time that it came up "
                f"is {last:g}: windows are (time of going down, of coming up), in order"
            )
        last = end
        yield np.array([[start, end]])


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
        return ((start, end) for block in self.blocks(agent, rng) for start, end in block.tolist())

    def blocks(self, agent: Address, rng: np.random.Generator) -> Iterator[FloatArray]:
        return self.later(agent, rng, 0.0)

    def later(self, agent: Address, rng: np.random.Generator, time: float) -> Iterator[FloatArray]:
        """The times of going down and coming up are cumulative sums of exponential times; those of no length, which are
        shorter than a floating-point number shows, are left out."""
        times = np.full(2 * BLOCK + 1, time)
        if rng.random() >= self.mean_down / (self.mean_up + self.mean_down):
            times[-1] += self.mean_up * rng.standard_exponential()
        means = np.tile((self.mean_down, self.mean_up), BLOCK)
        while True:
            times = np.cumsum(np.concatenate((times[-1:], means * rng.standard_exponential(2 * BLOCK))))
            windows = times[:-1].reshape(BLOCK, 2)
            lasting = windows[:, 0] < windows[:, 1]
            yield windows if lasting.all() or not lasting.any() else windows[lasting]

    def leaves(self, agent: Address) -> float:
        return math.inf


class Recorded(BaseAvailability):
    """Times from a CSV ``file`` with the columns agent, up, down: one row for each time that an agent is up.

    ``down`` is empty for the end of the run. An agent without a row is always up.
    """

    kind: Literal["trace"]
    file: str
    """The CSV file, relative to the scenario."""

    @model_validator(mode="after")
    def _readable(self) -> Recorded:
        read_anew(_read_times, self.file)
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

    def later(self, agent: Address, rng: np.random.Generator, time: float) -> Iterator[FloatArray]:
        return blocks_of(agent, (window for window in self.windows(agent, rng) if window[1] > time))

    def leaves(self, agent: Address) -> float:
        """When its last row ends."""
        return _read_times(self.file).get(agent, [(0.0, math.inf)])[-1][1]


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
    agent, up, down = map(number, row)
    stays = math.isnan(down) or row[2].strip() == "inf"
    if not (agent >= 0 and agent.is_integer() and 0 <= up < math.inf and (stays or up < down < math.inf)):
        raise ValueError(f"{place}: {','.join(row)!r} must have a whole agent >= 0 and 0 <= up < down")
    return int(agent), up, math.inf if stays else down


AVAILABILITIES: Kinds[type[BaseAvailability]] = Kinds.of(
    "availabilities", BaseAvailability, (Always, MarkovOnOff, Recorded)
)
"""The models of availability that scenarios can name."""
Availability = Annotated[BaseAvailability, AVAILABILITIES.field()]
