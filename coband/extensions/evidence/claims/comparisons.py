"""Conditions on means of metrics (differences, ratios, orders, ranges, shares of replications) and on curves (exponents
of growth, one curve below another).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coband import FloatArray
from coband.extending import estimates
from coband.extensions.evidence.claims.condition import (
    MARGIN,
    AnyTerm,
    Find,
    MetricCondition,
    PairCondition,
    RangedCondition,
    Strict,
    Term,
    TermCondition,
    in_words,
    least,
    metric_values,
    ratio_of,
    short_name,
    within,
)
from coband.extensions.evidence.claims.samples import SampleError
from coband.extensions.evidence.e_values import Requirement


class Difference(PairCondition):
    """The paired difference of two means has a sign: E a - b < -by, or > by."""

    kind: Literal["difference"]
    relation: Literal["less", "greater"]
    by: float = Field(default=0.0, ge=0, description="by more than this")
    margin: float = Field(default=MARGIN, ge=0, lt=1, description="no practical difference: a share of the second mean")

    def describe(self) -> str:
        more = f" by more than {self.by:g}" if self.by else ""
        return f"{self.of}: {self.first} is {self.relation} than {self.second}{more}"

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        sign = -1.0 if self.relation == "less" else 1.0
        return [Requirement((sign * (columns[0] - columns[1]) - self.by).tolist())]

    def _margins(self, columns: FloatArray) -> list[Requirement]:
        return [] if self.by else alike(columns, self.margin)

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return least(columns[:1] - columns[1:])


class Ratio(RangedCondition, PairCondition):
    """The ratio of two means lies in a range: E a >= low E b and E a <= high E b, for positive b."""

    kind: Literal["ratio"]

    def describe(self) -> str:
        return f"{self.of}: {self.first} over {self.second} is {in_words(self.at_least, self.at_most)}"

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return within(columns[0], columns[1], self.at_least, self.at_most)

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return ratio_of(columns[0], columns[1])


class Equal(PairCondition):
    """Two means are equal within a margin, by two one-sided tests (Schuirmann 1987): |E a - E b| <= margin E b."""

    kind: Literal["equal"]
    margin: float = Field(gt=0, lt=1, description="share of the second mean")

    def describe(self) -> str:
        return f"{self.of}: {self.first} equals {self.second} within {100 * self.margin:g} %"

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return alike(columns, self.margin)

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return ratio_of(columns[0], columns[1])


class Presupposed(Equal):
    """Two means are equal within a margin, which a comparison at equal values of a metric needs."""

    given = True


class Order(MetricCondition):
    """The means of several terms grow in this order."""

    kind: Literal["order"]
    ascending: list[AnyTerm] = Field(min_length=2)
    margin: float = Field(default=MARGIN, ge=0, lt=1, description="no practical difference: a share of the next mean")

    def terms(self) -> list[Term]:
        return self.ascending

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(map(str, self.ascending))}"

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return [Requirement(gap) for gap in np.diff(columns, axis=0).tolist()]

    def _margins(self, columns: FloatArray) -> list[Requirement]:
        return [one for pair in pairwise(columns) for one in alike(np.array(pair), self.margin)]

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return least(np.diff(columns, axis=0))


class Step(Strict):
    """A difference: by how much the metric of one term is below that of another."""

    lower: AnyTerm
    upper: AnyTerm


class Gaps(MetricCondition):
    """The differences between the means of two terms grow in this order."""

    kind: Literal["gaps"]
    ascending: list[Step] = Field(min_length=2)

    def terms(self) -> list[Term]:
        return [term for step in self.ascending for term in (step.lower, step.upper)]

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(f'[{step.upper} - {step.lower}]' for step in self.ascending)}"

    def _growths(self, columns: FloatArray) -> FloatArray:
        return np.diff(columns[1::2] - columns[::2], axis=0)

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return [Requirement(growth) for growth in self._growths(columns).tolist()]

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return least(self._growths(columns))


class Value(RangedCondition, MetricCondition, TermCondition):
    """The mean of a metric lies in a range."""

    kind: Literal["value"]

    def describe(self) -> str:
        return f"{self.of}: {self.term} is {in_words(self.at_least, self.at_most)}"


class Share(MetricCondition, TermCondition):
    """The share of replications in which a metric reaches a value."""

    kind: Literal["share"]
    reaches: float = Field(default=1.0, description="the value that counts as a success")
    at_least: float = Field(gt=0, lt=1, description="the share")

    def describe(self) -> str:
        share = f"at least {100 * self.at_least:g} %"
        return f"{self.of}: {self.term} reaches {self.reaches:g} in {share} of the replications"

    def _columns(self, find: Find) -> Sequence[Sequence[float]]:
        return [[float(value >= self.reaches) for value in metric_values(find(self.term), self.of)]]

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return [Requirement(columns[0].tolist(), self.at_least)]

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        return estimates.mean(columns[0].tolist()), estimates.wilson(columns[0].tolist())


def alike(columns: FloatArray, margin: float) -> list[Requirement]:
    """|E a - E b| <= margin E b, of two columns; by two one-sided tests (Schuirmann 1987)."""
    return within(columns[0], columns[1], 1 - margin, 1 + margin)


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
