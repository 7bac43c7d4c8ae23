"""Conditions on growth and on curves: exponents in a parameter or in a run's course, one curve below another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.analysis.claims.condition import (
    Find,
    PairCondition,
    RangedCondition,
    Term,
    TermCondition,
    in_words,
    metric_values,
    short_name,
)
from coband.simulator.analysis.claims.samples import SampleError
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.evidence import Requirement

PLACES = 20
"""Places of a range at which one curve is compared with another, or a line fitted to it."""


class ExponentCondition(RangedCondition, TermCondition):
    """A condition on an exponent that is fitted in each replication."""

    def _columns(self, find: Find) -> Sequence[Sequence[float]]:
        return [self._slopes(find)]

    @abstractmethod
    def _slopes(self, find: Find) -> list[float]:
        """The exponents."""


class Slope(ExponentCondition):
    """Growth: the slope of log E a against the logarithm of a parameter, fitted in each replication."""

    kind: Literal["slope"]
    of: str = Field(description="the metric")
    against: str = Field(description="a numeric key of the sweep's grid")
    over: list[Annotated[float, Field(gt=0)]] = Field(min_length=2, description="its values")

    @model_validator(mode="after")
    def _different(self) -> Self:
        if len(set(self.over)) < len(self.over):
            raise ValueError("over has a value twice; give each once")
        return self

    def terms(self) -> list[Term]:
        places = [{**self.term.at, self.against: _short(value)} for value in self.over]
        return [self.term.model_copy(update={"at": place}) for place in places]

    def describe(self) -> str:
        name = short_name(self.against)
        return f"{self.of}: {self.term} grows with {name} with an exponent {in_words(self.at_least, self.at_most)}"

    def _slopes(self, find: Find) -> list[float]:
        values = [metric_values(find(term), self.of) for term in self.terms()]
        count = min(map(len, values))
        table = np.array([column[:count] for column in values])
        if (table <= 0).any():
            raise SampleError(f"{self.of} is not positive everywhere, so its growth has no exponent.")
        return [float(np.polyfit(np.log(self.over), np.log(column), 1)[0]) for column in table.T]


class Growth(ExponentCondition):
    """Growth within a run: the slope of a curve's logarithm against that of its axis, fitted in each replication."""

    kind: Literal["growth"]
    of: Literal["regret", "regret_per_agent", "scalars"] = "regret"
    against: Literal["turns", "turns_per_agent", "times"] = "turns"
    start: float = Field(default=0.1, gt=0, lt=1, description="where the fit begins, as a share of the axis")

    def describe(self) -> str:
        axis = self.against.replace("_", " ")
        where = f"from {100 * self.start:g} % of the {axis} on"
        return (
            f"{self.of}: {self.term} grows with {axis} with an exponent {in_words(self.at_least, self.at_most)} {where}"
        )

    def _slopes(self, find: Find) -> list[float]:
        shares = np.geomspace(self.start, 1.0, PLACES)
        curves = [one.curve(self.against, shares * one.end(self.against), self.of) for one in find(self.term)]
        if any((curve <= 0).any() for curve in curves):
            raise SampleError(f"{self.of} is not positive everywhere, so its growth has no exponent.")
        return [float(np.polyfit(np.log(shares), np.log(curve), 1)[0]) for curve in curves]


class Below(PairCondition):
    """One curve lies below another over a range of the horizontal axis, at `PLACES` places of it."""

    kind: Literal["below"]
    of: Literal["regret", "regret_per_agent", "scalars"] = "regret"
    against: Literal["turns", "turns_per_agent", "scalars", "times"] = "turns"
    start: float = Field(default=0.1, gt=0, lt=1, description="where the range begins, as a share of the axis")
    end: float = Field(default=1.0, gt=0, le=1, description="where the range ends, as a share of the axis")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start > self.end:
            raise ValueError(f"start(={self.start:g}) must be at most end(={self.end:g})")
        return self

    def describe(self) -> str:
        where = f"from {100 * self.start:g} % to {100 * self.end:g} % of the {self.against.replace('_', ' ')}"
        return f"{self.of.replace('_', ' ')}: {self.first} is below {self.second} {where}"

    def _columns(self, find: Find) -> Sequence[Sequence[float]]:
        """Second minus first at `PLACES` places of the axis that both have in a replication."""
        found: list[FloatArray] = []
        for pair in zip(find(self.first), find(self.second), strict=False):
            places = np.linspace(self.start, self.end, PLACES) * min(one.end(self.against) for one in pair)
            first, second = (one.curve(self.against, places, self.of) for one in pair)
            found.append(second - first)
        return [list(column) for column in zip(*found, strict=True)]

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return [Requirement(column) for column in columns.tolist()]


def _short(value: float) -> int | float:
    return int(value) if value == int(value) else value
