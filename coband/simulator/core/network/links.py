"""Links: latency, bandwidth with FIFO serialisation, duplication, order, and copies that are lost, independently or in
bursts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from coband.simulator.core.config import RATE, TIME, Config, existing, read_anew
from coband.simulator.core.network.bandwidth import Bandwidth, stage_of
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.randomness.distributions import (
    DISTRIBUTIONS,
    AnyDistribution,
    BaseDistribution,
    Constant,
    Distribution,
    Draws,
    number_is_constant,
)
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.reading import numbers_in
from coband.simulator.plugins.kinds import Kinds

Probability = Annotated[float, Field(ge=0, le=1)]


class BaseLoss(Config):
    """Base of losses that are more than a probability."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Share of copies that are lost in the long run."""

    @abstractmethod
    def process(self, rng: np.random.Generator) -> Callable[[], bool]:
        """One link: whether successive copies are lost; the stream ``rng`` belongs to what is returned alone."""


class GilbertElliott(BaseLoss):
    """Losses in bursts: a link is in a good or a bad state, and changes between them copy by copy.

    It starts in its stationary distribution. On average (r (1 - k) + p (1 - h)) / (p + r) of all copies are lost
    (Gilbert 1960, Elliott 1963).
    """

    kind: Literal["gilbert_elliott"]
    p: float = Field(gt=0, le=1)
    """Probability that the next copy finds the link bad after a good one."""
    r: float = Field(gt=0, le=1)
    """Probability that the next copy finds the link good after a bad one."""
    h: Probability = 0.0
    """A copy is lost with probability 1 - h while the link is bad."""
    k: Probability = 1.0
    """A copy is lost with probability 1 - k while the link is good."""

    @property
    def mean(self) -> float:
        return (self.r * (1.0 - self.k) + self.p * (1.0 - self.h)) / (self.p + self.r)

    def process(self, rng: np.random.Generator) -> Callable[[], bool]:
        return BurstLoss(self, rng)


LOSSES: Kinds[type[BaseLoss]] = Kinds.of("losses", BaseLoss, (GilbertElliott,))
"""The losses that scenarios can name, beside a probability."""
AnyLoss = Annotated[BaseLoss, LOSSES.field()]
Loss = Probability | AnyLoss


def mean_loss(loss: float | BaseLoss | None) -> float:
    """Share of copies that are lost in the long run."""
    return loss.mean if isinstance(loss, BaseLoss) else loss or 0.0


class BernoulliLoss:
    """Whether successive copies on one link are lost; the stream ``rng`` belongs to this object alone."""

    __slots__ = ("_loss", "_rng")

    def __init__(self, loss: float, rng: np.random.Generator) -> None:
        self._loss, self._rng = loss, rng

    def __call__(self) -> bool:
        """Draw for the next copy: independent of all others."""
        return bool(self._rng.random() < self._loss)


class BurstLoss:
    """The same with a state that lasts; two draws per copy, one for the state and one for the loss."""

    __slots__ = ("_bad", "_loss", "_rng")

    def __init__(self, loss: GilbertElliott, rng: np.random.Generator) -> None:
        self._loss, self._rng = loss, rng
        self._bad = bool(rng.random() < loss.p / (loss.p + loss.r))

    def __call__(self) -> bool:
        """Draw for the next copy, then for the state that the one after it finds."""
        loss, (lost, changed) = self._loss, self._rng.random(2)
        passes = loss.h if self._bad else loss.k
        if changed < (loss.r if self._bad else loss.p):
            self._bad = not self._bad
        return bool(lost >= passes)


def loss_process(loss: float | BaseLoss, rng: np.random.Generator) -> Callable[[], bool]:
    """What draws the losses of one link."""
    return loss.process(rng) if isinstance(loss, BaseLoss) else BernoulliLoss(loss, rng)


UP, DOWN = "up", "down"
Rows = tuple[tuple[Annotated[float, Field(ge=0)], ...], ...]


@lru_cache(maxsize=16)
def _read_rows(file: str) -> Rows:
    rows = numbers_in(existing(file, "a text file with one row of delays per line"))
    return tuple(tuple(row) for _, row in rows)


class BaseLatency(Config):
    """Base of latencies that differ from link to link."""

    @abstractmethod
    def between(self, source: Address, destination: Address) -> BaseDistribution:
        """The latency of the link from one node to another; the server's address is -1."""

    @property
    @abstractmethod
    def largest_mean(self) -> float:
        """The largest mean of any link."""

    @property
    def is_constant(self) -> bool:
        """Whether all values of one link are the same."""
        return False

    def misfit(self, agents: int, server: bool) -> str:
        """What does not fit so many agents, with a server or without one; empty when nothing is wrong."""
        return ""


class Matrix(BaseLatency):
    """A constant delay for each pair of nodes, given as ``values`` or as a text ``file`` with one row per line.

    Row: from; column: to; agents by index, in a star followed by the server.
    """

    kind: Literal["matrix"]
    values: Annotated[tuple[tuple[float, ...], ...] | None, TIME] = None
    """One row of delays for each node; give either this or ``file``."""
    file: str | None = None
    """A text file with one row per line, relative to the scenario; give either this or ``values``."""

    @model_validator(mode="after")
    def _square(self) -> Matrix:
        if (self.values is None) == (self.file is None):
            raise ValueError("give exactly one of values, file")
        if self.file is not None:
            read_anew(_read_rows, self.file)
        rows = self.rows
        for number, row in enumerate(rows):
            if len(row) != len(rows):
                raise ValueError(f"row {number} has {len(row)} delays; a matrix of {len(rows)} rows needs as many")
            if not all(math.isfinite(value) and value >= 0 for value in row):
                raise ValueError(f"row {number} has a delay that is not a finite number >= 0")
        return self

    @property
    def rows(self) -> Rows:
        return self.values if self.values is not None else _read_rows(str(self.file))

    @property
    def is_constant(self) -> bool:
        return True

    def misfit(self, agents: int, server: bool) -> str:
        nodes, rows = agents + server, len(self.rows)
        who = "agent and one for the server" if server else "agent"
        return "" if rows == nodes else f"the matrix has {rows} rows: must have {nodes}, one per {who}"

    @property
    def largest_mean(self) -> float:
        """The longest delay between two nodes."""
        pairs = ((row, column, value) for row, values in enumerate(self.rows) for column, value in enumerate(values))
        return max((value for row, column, value in pairs if row != column), default=0.0)

    def between(self, source: Address, destination: Address) -> Constant:
        """The delay of one link; the server's address -1 is the last row and column."""
        return Constant(value=self.rows[source][destination])


LATENCIES: Kinds[type[BaseLatency]] = Kinds.of("latencies", BaseLatency, (Matrix,))
"""The latencies that scenarios can name in addition to distributions."""
AnyLatency = Annotated[BaseDistribution | BaseLatency, DISTRIBUTIONS.field(LATENCIES)]
Latency = Annotated[
    AnyLatency, BeforeValidator(number_is_constant, json_schema_input_type=Annotated[float, Field(ge=0)] | AnyLatency)
]


class LinkRule(Config):
    """Differences from the default for the links of some agents; a later rule overrides an earlier one."""

    agents: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | Literal["all"] = "all"
    """Indices of the agents, from 0; between agents, of those at either end of a link."""
    direction: Literal["up", "down", "both"] = "both"
    """up: from these agents; down: to them."""
    latency: Annotated[Distribution | None, TIME] = None
    """Time on the way, per copy; null for ``network.latency``."""
    bandwidth: Annotated[Bandwidth | None, RATE] = None
    """Scalars per time unit and link, or {bits: ...}; null for ``network.bandwidth``."""
    loss: Loss | None = None
    """Probability that a copy is lost, or losses in bursts; null for ``network.loss``."""
    duplicate: Probability | None = None
    """Probability that a copy is delivered twice; null for ``network.duplicate``."""
    reorder: Literal["fifo", "free"] | None = None
    """Whether a copy may overtake an earlier one on its link; null for ``network.reorder``."""

    def applies(self, source: Address, destination: Address) -> bool:
        """Whether it applies to the link: up of the links from its agents, down of those to them."""
        up = source != SERVER and (self.agents == "all" or source in self.agents)
        down = destination != SERVER and (self.agents == "all" or destination in self.agents)
        return (up and self.direction != DOWN) or (down and self.direction != UP)


class LinkModel(Config):
    """What one link does."""

    latency: AnyDistribution
    bandwidth: Bandwidth | None
    loss: Loss
    duplicate: Probability
    reorder: Literal["fifo", "free"]


class Link:
    """One direction between an agent and the server, or between two agents.

    Its streams are (network, ``entity``, latency, loss or duplicate and ``way``). The n-th copy gets the n-th latency
    and the n-th draws of loss and duplication, whatever becomes of it. Repetitions and acknowledgements have lanes with
    streams of their own, and share bandwidth and order; so they move no draw of a first copy. It is sound from
    ``heals`` on.
    """

    __slots__ = (
        "_again",
        "_constant",
        "_fifo",
        "_heals",
        "_latency",
        "_latest",
        "_loses",
        "_made_of",
        "_plain",
        "_twice",
        "mean_latency",
        "stage",
    )

    def __init__(self, model: LinkModel, streams: Streams, entity: int, way: str, heals: float = math.inf) -> None:
        self._heals, self._made_of = heals, (model, streams, entity, way, heals)
        self._constant, self._latency = _draws(model.latency, streams, entity, f"latency {way}")
        self._loses = (
            loss_process(model.loss, streams("network", entity, f"loss {way}")) if mean_loss(model.loss) else None
        )
        twice = model.duplicate > 0
        self._twice = loss_process(model.duplicate, streams("network", entity, f"duplicate {way}")) if twice else None
        self._again = _draws(model.latency, streams, entity, f"duplicate latency {way}")[1] if twice else None
        self._fifo, self._latest = model.reorder == "fifo", [0.0]
        self.stage = None if model.bandwidth is None else stage_of(model.bandwidth)
        self.mean_latency = model.latency.mean
        self._plain = self.stage is None and self._loses is None and self._twice is None and not self._fifo

    def lane(self, purpose: str) -> Link:
        """The same link for copies of another purpose, with streams of their own."""
        model, streams, entity, way, heals = self._made_of
        lane = Link(model, streams, entity, f"{way}, {purpose}", heals)
        lane.stage, lane._latest = self.stage, self._latest
        return lane

    def carry(self, start: float, scalars: int, bits: int) -> tuple[float, tuple[float, ...]]:
        """When a copy that enters the link at ``start`` has left the sender, and when it arrives.

        No arrival: it is lost; two: the link has doubled it.
        """
        if self._plain:
            return start, (start + (self._constant if self._latency is None else self._latency()),)
        left = start if self.stage is None else self.stage.leave(start, scalars, bits)
        arrival = left + self.latency()
        lost = self.loses(start)
        twice = self._twice is not None and self._twice() and start < self._heals
        if lost:
            return left, ()
        if self._fifo:
            arrival = self._latest[0] = max(arrival, self._latest[0])
        if not twice:
            return left, (arrival,)
        second = left + (self._constant if self._again is None else self._again())
        if self._fifo:
            second = self._latest[0] = max(second, self._latest[0])
        return left, (arrival, second)

    def latency(self) -> float:
        return self._constant if self._latency is None else self._latency()

    def loses(self, time: float) -> bool:
        """Draw whether the next copy on this link, which enters it at ``time``, is lost."""
        return self._loses is not None and self._loses() and time < self._heals


def _draws(latency: BaseDistribution, streams: Streams, entity: int, purpose: str) -> tuple[float, Draws | None]:
    """A latency that is always the same, or 0 and what draws it from its stream."""
    if isinstance(latency, Constant):
        return latency.value, None
    return 0.0, Draws(latency, streams("network", entity, purpose))
