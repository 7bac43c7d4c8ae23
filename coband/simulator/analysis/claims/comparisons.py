"""Conditions on means of metrics: differences, ratios, orders, ranges, shares of replications."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field

from coband.simulator.analysis.claims.condition import (
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
    within,
)
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.statistics.evidence import Requirement


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
