"""Agents that join after the start, and agents that leave for good, as times at which they are down."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.schedule import COLUMNS, moment_of, recorded_rows
from coband.simulator.core.config import TIME, Config, Unit, read_anew
from coband.simulator.core.hosts.availability import BaseAvailability, Windows
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.randomness.streams import Streams


class BaseMoves(Config):
    """When agents join, or leave."""

    @property
    def agents(self) -> int:
        """One more than the largest agent that is named."""
        return 0

    @abstractmethod
    def draw(self, usual: FloatArray, rng: np.random.Generator) -> FloatArray:
        """When each agent moves; ``usual``: when it is there first."""


class MovesAtTimes(BaseMoves):
    """Agents move at given times; those that are not named do not: they are there from the start on, or to the end."""

    kind: Literal["times"]
    times: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[float, TIME, Field(ge=0)]], ...] | None = None
    """Pairs [agent, time]."""
    file: str | None = None
    """A CSV file with the columns agent, time, relative to the scenario."""

    @model_validator(mode="after")
    def _readable(self) -> MovesAtTimes:
        if (self.times is None) == (self.file is None):
            raise ValueError("give either times or file")
        if self.file is not None:
            read_anew(_read, self.file)
        self._pairs()
        return self

    def _pairs(self) -> dict[Address, float]:
        pairs = self.times if self.file is None else _read(self.file)
        found = dict(pairs or ())
        if len(found) < len(pairs or ()):
            raise ValueError("an agent moves once; give one time for each")
        return found

    @property
    def agents(self) -> int:
        return max(self._pairs(), default=-1) + 1

    def draw(self, usual: FloatArray, rng: np.random.Generator) -> FloatArray:
        found = usual.copy()
        pairs = self._pairs()
        found[list(pairs)] = list(pairs.values())
        return found


class PoissonJoins(BaseMoves):
    """Agents join one after the other, in the order of their numbers, at the times of a Poisson process."""

    kind: Literal["poisson"]
    rate: Annotated[float, Unit("agents per unit of simulated time")] = Field(gt=0, allow_inf_nan=False)
    """Agents that join per time unit, on average."""
    at_start: int = Field(default=0, ge=0)
    """Agents that are there from the start on, the first ones."""

    def draw(self, usual: FloatArray, rng: np.random.Generator) -> FloatArray:
        found = np.zeros(len(usual))
        later = found[self.at_start :]
        later[:] = np.cumsum(rng.standard_exponential(len(later))) / self.rate
        return found


class PoissonLeaves(BaseMoves):
    """Each agent leaves an exponential time after it has joined."""

    kind: Literal["poisson"]
    rate: Annotated[float, Unit("per unit of simulated time")] = Field(gt=0, allow_inf_nan=False)
    """Each agent stays for 1 / rate on average."""

    def draw(self, usual: FloatArray, rng: np.random.Generator) -> FloatArray:
        return usual + rng.standard_exponential(len(usual)) / self.rate


Joins = Annotated[PoissonJoins | MovesAtTimes, Field(discriminator="kind")]
Leaves = Annotated[PoissonLeaves | MovesAtTimes, Field(discriminator="kind")]


class Stays(BaseAvailability):
    """Agents that are down until they join, and from leaving on.

    Attributes:
        joins, leaving: by agent; one that never joins leaves at that moment.
        usual: when agents are up between the two.
    """

    joins: Any
    leaving: Any
    usual: Any

    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        return ((start, end) for block in self.blocks(agent, rng) for start, end in block.tolist())

    def blocks(self, agent: Address, rng: np.random.Generator) -> Iterator[FloatArray]:
        return self._within(agent, self.usual.blocks(agent, rng))

    def later(self, agent: Address, rng: np.random.Generator, time: float) -> Iterator[FloatArray] | None:
        blocks = self.usual.later(agent, rng, time)
        return None if blocks is None else self._within(agent, blocks)

    def _within(self, agent: Address, blocks: Iterator[FloatArray]) -> Iterator[FloatArray]:
        first, last = float(self.joins[agent]), float(self.leaving[agent])
        start, end = 0.0, first  # an absence that may go on
        for block in blocks:
            inside = block[(block[:, 1] > first) & (block[:, 0] < last)]
            for down, up in inside.tolist():
                if down > end:
                    if end > start:
                        yield np.array([[start, end]])
                    start = down
                end = max(end, up)
            if block[-1, 1] >= last or end >= last:
                break
        if end >= last:
            yield np.array([[start, math.inf]])
            return
        if end > start:
            yield np.array([[start, end]])
        if last < math.inf:
            yield np.array([[last, math.inf]])

    def leaves(self, agent: Address) -> float | None:
        found: float | None = self.usual.leaves(agent)
        return None if found is None else min(found, float(self.leaving[agent]))


def stays(
    moves: tuple[BaseMoves | None, BaseMoves | None],
    count: int,
    usual: BaseAvailability,
    streams: Streams,
    heals: float,
) -> Stays:
    """Draw when so many agents join and leave.

    Args:
        moves: how they join, and how they leave; None: they do not.
        usual: when they are up in between.
        heals: from when on nobody leaves.
    """
    joins, leaves = moves
    first = np.zeros(count)
    if joins is not None:
        first = joins.draw(first, streams("faults", 0, "joins"))
    last = np.full(count, math.inf)
    if isinstance(leaves, PoissonLeaves):
        last = leaves.draw(first, streams("faults", 0, "leaves"))
    elif leaves is not None:
        last = leaves.draw(last, streams("faults", 0, "leaves"))
    last[last >= heals] = math.inf
    return Stays.model_construct(joins=first, leaving=np.maximum(first, last), usual=usual)


@lru_cache(maxsize=16)
def _read(file: str) -> tuple[tuple[Address, float], ...]:
    """(agent, time) of every row.

    Raises:
        ValueError: the file is missing, or a row is not agent,time; the text names the line.
    """
    moments = [moment_of(row, place) for place, row in recorded_rows(file, COLUMNS)]
    return tuple((agent, time) for time, agent in moments)
