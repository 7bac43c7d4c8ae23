"""Turns: who acts when.

A schedule issues ticks, each the permission of one agent to take one turn. A tick that finds its agent busy, waiting
for the protocol or out of reach is kept, and the turn is taken as soon as the agent is free.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.core.config import TIME, Config, existing, read_anew
from coband.simulator.core.randomness.distributions import Distribution
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.reading import DataError, number, read_table
from coband.simulator.plugins.kinds import Kinds

BLOCK = 1024
COLUMNS = ["agent", "time"]


class AnySchedule(Config):
    """What all schedules have."""

    duration: Annotated[float | None, TIME] = Field(default=None, gt=0)
    """No turn starts at or after this simulated time; null for no limit."""

    @abstractmethod
    def total_turns(self, agents: int) -> int | None:
        """Turns of all agents together; None when nobody knows beforehand."""

    def turns_per_agent(self, agents: int, streams: Streams) -> int | None:
        """Turns that every agent gets at least; None when nobody knows beforehand."""
        return None


class BaseSchedule(AnySchedule):
    """A schedule whose ticks do not depend on what agents do."""

    @abstractmethod
    def ticks(self, agents: int, streams: Streams) -> Iterator[tuple[float, int]]:
        """(time, agent) of every tick, in order of time.

        Args:
            streams: of the replication; draw from ``streams("schedule", 0, <your kind>)``.
        """


class OneAtATime(BaseSchedule):
    """Tick t (at time t * interval, t = 1, 2, ...) goes to one agent; ``turns`` = interactions in all (Li et al.
    2023)."""

    kind: Literal["one_at_a_time"]
    turns: int = Field(ge=1)
    """Interactions of all agents together."""
    interval: Annotated[float, TIME] = Field(default=1.0, gt=0)
    """Simulated time between two ticks."""
    order: Literal["uniform", "weighted", "round_robin"] = "uniform"
    """How the acting agent is found: drawn uniformly, drawn by ``weights``, or in turn."""
    weights: tuple[Annotated[float, Field(ge=0)], ...] | None = None
    """One weight per agent, with ``order: weighted``."""

    @model_validator(mode="after")
    def _weights_where_needed(self) -> OneAtATime:
        if (self.weights is not None) != (self.order == "weighted"):
            raise ValueError("weights go with order: weighted, and only with it")
        if self.weights is not None and sum(self.weights) <= 0:
            raise ValueError("at least one weight must be > 0")
        return self

    def total_turns(self, agents: int) -> int:
        return self.turns

    def turns_per_agent(self, agents: int, streams: Streams) -> int | None:
        if self.duration is not None:
            return None
        acting = np.concatenate(list(self._agents(agents, streams("schedule", 0, "agent"))))
        return int(np.bincount(acting, minlength=agents).min())

    def ticks(self, agents: int, streams: Streams) -> Iterator[tuple[float, int]]:
        acting = chain.from_iterable(self._agents(agents, streams("schedule", 0, "agent")))
        return zip(map(self.interval.__mul__, range(1, self.turns + 1)), acting, strict=True)

    def _agents(self, agents: int, rng: np.random.Generator) -> Iterator[Sequence[int]]:
        """Who acts, in blocks."""
        if self.order == "round_robin":
            yield [tick % agents for tick in range(self.turns)]
            return
        if self.weights is None:
            edges = np.arange(1, agents + 1) / agents
        else:
            edges = np.cumsum(self.weights) / np.sum(self.weights)
        last = int(np.flatnonzero(np.diff(edges, prepend=0.0))[-1])
        for start in range(0, self.turns, BLOCK):
            drawn = np.searchsorted(edges, rng.random(min(BLOCK, self.turns - start)), side="right")
            yield np.minimum(drawn, last).tolist()


class Rounds(BaseSchedule):
    """Each agent starts turn t at time t * interval, or as soon as it is free again; ``turns`` = turns per agent."""

    kind: Literal["rounds"]
    turns: int = Field(ge=1)
    """Turns of each agent."""
    interval: Annotated[float, TIME] = Field(default=1.0, gt=0)
    """Simulated time between two rounds."""

    def total_turns(self, agents: int) -> int:
        return self.turns * agents

    def turns_per_agent(self, agents: int, streams: Streams) -> int | None:
        return self.turns if self.duration is None else None

    def ticks(self, agents: int, streams: Streams) -> Iterator[tuple[float, int]]:
        for time, everyone in self.rounds(agents):
            for agent in everyone:
                yield time, agent

    def rounds(self, agents: int) -> Iterator[tuple[float, list[int]]]:
        """Time of every round, and who has a tick then: all."""
        everyone = list(range(agents))
        for turn in range(1, self.turns + 1):
            yield turn * self.interval, everyone


class Renewal(AnySchedule):
    """Each agent thinks for a random time after each of its turns; at least one of ``turns``, ``duration`` is given."""

    kind: Literal["renewal"]
    think: Annotated[Distribution, TIME]
    """Time between the end of a turn and the start of the agent's next one, which is later if the agent still waits."""
    pace: Distribution | None = None
    """Drawn once per agent: its think times are multiplied by it; null for 1."""
    turns: int | None = Field(default=None, ge=1)
    """Turns of each agent; null for as many as ``duration`` allows."""

    @model_validator(mode="after")
    def _bounded(self) -> Renewal:
        if self.turns is None and self.duration is None:
            raise ValueError("a renewal schedule needs turns (per agent), duration, or both, to end")
        if self.turns is None and self.think.mean == 0:
            raise ValueError("think times of 0 need turns (per agent) to end")
        return self

    def total_turns(self, agents: int) -> int | None:
        return None if self.turns is None else self.turns * agents

    def turns_per_agent(self, agents: int, streams: Streams) -> int | None:
        return self.turns if self.duration is None else None


class Recorded(BaseSchedule):
    """Turns from a CSV ``file`` with the columns agent, time: one row for each turn, in any order.

    A turn that finds its agent busy, waiting or down is taken as soon as the agent is free.
    """

    kind: Literal["trace"]
    file: str
    """Relative to the scenario."""

    @model_validator(mode="after")
    def _readable(self) -> Recorded:
        read_anew(_read_turns, self.file)
        _read_turns(self.file)
        return self

    @property
    def agents(self) -> int:
        """One more than the largest agent in the file."""
        return 1 + max(agent for _, agent in _read_turns(self.file))

    def total_turns(self, agents: int) -> int:
        return len(_read_turns(self.file))

    def turns_per_agent(self, agents: int, streams: Streams) -> int | None:
        if self.duration is not None:
            return None
        return int(np.bincount([agent for _, agent in _read_turns(self.file)], minlength=agents).min())

    def ticks(self, agents: int, streams: Streams) -> Iterator[tuple[float, int]]:
        return iter(_read_turns(self.file))


def recorded_rows(file: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The place and the values of each row of a CSV file that begins with the names of its columns.

    Raises:
        ValueError: the file is missing, or begins otherwise.
    """
    path = existing(file, f"a CSV file with the columns {', '.join(columns)}")
    table = read_table(path)
    if [*table.names] != [*columns]:
        raise DataError(f"must begin with the line {','.join(columns)}", path, 1)
    table.check_lengths()
    for row, cells in enumerate(zip(*table.columns.values(), strict=True)):
        yield table.place(row), list(cells)


@lru_cache(maxsize=16)
def _read_turns(file: str) -> tuple[tuple[float, int], ...]:
    """(time, agent) of every turn in a file, in order.

    Raises:
        ValueError: the file is missing, or a line is not agent,time; the text names the line.
    """
    turns = sorted(moment_of(row, place) for place, row in recorded_rows(file, COLUMNS))
    if not turns:
        raise ValueError(f"file {file!r} has no turns; give a line agent,time for each")
    return tuple(turns)


def moment_of(row: list[str], place: str) -> tuple[float, int]:
    """(time, agent) of a row agent,time.

    Raises:
        ValueError: it is not such a row; the text names its place.
    """
    agent, time = map(number, row)
    if not (agent >= 0 and agent.is_integer() and 0 <= time < math.inf):
        raise ValueError(f"{place}: {','.join(row)!r} must have a whole agent >= 0 and 0 <= time < infinity")
    return time, int(agent)


class Phases(AnySchedule):
    """The algorithm asks for batches of pulls, one batch after the other, until it stops by its own rule (Du et al.
    2023).

    A phase of an agent takes it (pulls of the phase) * ``pull_time`` * (its slowness) + (one draw of
    ``agents.compute``).
    """

    kind: Literal["phases"]
    pull_time: Annotated[float, TIME] = Field(default=1.0, ge=0)
    """Simulated time of one pull of an agent of speed 1."""
    limit: int | None = Field(default=None, ge=1)
    """Phases of each agent at most; null: until it stops by its own rule."""

    def total_turns(self, agents: int) -> None:
        """Nobody knows beforehand how many pulls an algorithm asks for."""
        return None


SCHEDULES: Kinds[type[AnySchedule]] = Kinds.of(
    "schedules", BaseSchedule, (OneAtATime, Rounds, Renewal, Recorded, Phases)
)
Schedule = Annotated[AnySchedule, SCHEDULES.field()]
