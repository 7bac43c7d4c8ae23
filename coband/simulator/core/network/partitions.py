"""Times in which nodes cannot reach each other, or are down."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.core.config import TIME, Config
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import returns

Index = Annotated[int, Field(ge=0)]


class BasePartition(Config):
    """Base of partitions: times in which copies on some links are lost."""

    @abstractmethod
    def cuts(self, source: Address, destination: Address, time: float) -> bool:
        """Whether a copy sent at ``time`` is cut off; the server's address is -1."""


class BaseOutage(Config):
    """Base of outages: times in which nodes are down."""

    @abstractmethod
    @returns(
        "a mapping of nodes, -1 .. {agents} - 1, to their (time of going down, of coming up), in order",
        lambda found, agents, rng: all(
            isinstance(node, (int, np.integer)) and -1 <= node < agents and isinstance(times, Iterable)
            for node, times in found.items()
        ),
    )
    def windows(self, agents: int, rng: np.random.Generator) -> Mapping[Address, Iterable[tuple[float, float]]]:
        """For each node that goes down, (time of going down, time of coming up) in order; inf for never.

        Args:
            agents: how many there are; the server's address is -1.
            rng: a stream of its own.
        """


class Window(Config):
    """A time from ``start`` on and before ``end``."""

    start: Annotated[float, TIME] = Field(ge=0)
    """When it begins."""
    end: Annotated[float | None, TIME] = Field(gt=0, allow_inf_nan=True)
    """When it ends, later than ``start``; .inf or null for never."""

    @model_validator(mode="after")
    def _forward(self) -> Window:
        if not self.start < self.until:
            raise ValueError(f"end(={self.end}) must be > start(={self.start})")
        return self

    @property
    def until(self) -> float:
        return math.inf if self.end is None else self.end


class Outage(BaseOutage, Window):
    """A time in which some nodes are down."""

    nodes: tuple[Index | Literal["server"], ...] = Field(min_length=1)
    """Indices of agents, from 0, or server."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(SERVER if node == "server" else node for node in self.nodes)

    def windows(self, agents: int, rng: np.random.Generator) -> Mapping[Address, Iterable[tuple[float, float]]]:
        return dict.fromkeys(self.addresses, ((self.start, self.until),))


class Partition(BasePartition, Window):
    """A time in which groups of nodes cannot reach each other; copies sent across are lost."""

    groups: tuple[tuple[Index, ...], ...] = Field(min_length=1)
    """Indices of agents; those in no group, and the server, are one more group."""
    one_way: bool = False
    """True: only what goes from a group to a later one of the list (those in no group last) is cut off."""

    @model_validator(mode="after")
    def _disjoint(self) -> Partition:
        members = [agent for group in self.groups for agent in group]
        if len(set(members)) < len(members):
            raise ValueError("an agent must not be in two groups")
        if not members:
            raise ValueError("groups: an agent must be in one of them")
        return self

    def cuts(self, source: Address, destination: Address, time: float) -> bool:
        """Whether a copy sent at ``time`` is cut off."""
        if not self.start <= time < self.until:
            return False
        first, second = self._group(source), self._group(destination)
        return first < second if self.one_way else first != second

    def _group(self, node: Address) -> int:
        found = (number for number, group in enumerate(self.groups) if node in group)
        return next(found, len(self.groups))


PARTITIONS: Kinds[type[BasePartition]] = Kinds.of("partitions", BasePartition)
"""The partitions that scenarios can name, beside `Partition`, which has no kind."""
AnyPartition = Annotated[BasePartition, PARTITIONS.field(default=Partition)]
OUTAGES: Kinds[type[BaseOutage]] = Kinds.of("outages", BaseOutage)
"""The outages that scenarios can name, beside `Outage`, which has no kind."""
AnyOutage = Annotated[BaseOutage, OUTAGES.field(default=Outage)]
