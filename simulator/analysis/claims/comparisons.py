"""Conditions on means of metrics: differences, ratios, orders, ranges, shares of replications."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from coband.simulator.analysis.claims.condition import (
    AnyTerm,
    BaseCondition,
    Find,
    PairCondition,
    RangedCondition,
    Term,
    in_words,
    metric_values,
    paired,
    ratio_of,
    within,
)
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.statistics.evidence import Requirement


class Difference(PairCondition):
    """The paired difference of two means has a sign: E a - b < -by, or > by."""

    kind: Literal["difference"]
    relation: Literal["less", "greater"]
    by: float = Field(default=0.0, ge=0, description="by more than this")

    def describe(self) -> str:
        more = f" by more than {self.by:g}" if self.by else ""
        return f"{self.of}: {self.first} is {self.relation} than {self.second}{more}"

    def _requirements(self, find: Find) -> list[Requirement]:
        sign = -1.0 if self.relation == "less" else 1.0
        return [Requirement([sign * (a - b) - self.by for a, b in zip(*self._values(find), strict=True)])]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = estimates.paired_difference(*self._values(find))
        return found.mean, found.interval


class Ratio(RangedCondition, PairCondition):
    """The ratio of two means lies in a range: E a >= low E b and E a <= high E b, for positive b."""

    kind: Literal["ratio"]

    def describe(self) -> str:
        return f"{self.of}: {self.first} over {self.second} is {in_words(self.at_least, self.at_most)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        first, second = self._values(find)
        return within([(a, b) for a, b in zip(first, second, strict=True)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        return ratio_of(*self._values(find))


class Equal(PairCondition):
    """Two means are equal within a margin, by two one-sided tests (Schuirmann 1987): |E a - E b| <= margin E b."""

    kind: Literal["equal"]
    margin: float = Field(gt=0, lt=1, description="share of the second mean")

    def describe(self) -> str:
        return f"{self.of}: {self.first} equals {self.second} within {100 * self.margin:g} %"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = list(zip(*self._values(find), strict=True))
        return within(pairs, 1 - self.margin, 1 + self.margin)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        return ratio_of(*self._values(find))


class Order(BaseCondition):
    """The means of several terms grow in this order."""

    kind: Literal["order"]
    of: str = Field(description="the metric")
    ascending: list[AnyTerm] = Field(min_length=2)

    def terms(self) -> list[Term]:
        return self.ascending

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(map(str, self.ascending))}"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = [paired(find, low, high, self.of) for low, high in pairwise(self.ascending)]
        return [Requirement([b - a for a, b in zip(*pair, strict=True)]) for pair in pairs]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        gaps = [estimates.estimate(requirement.values) for requirement in self._requirements(find)]
        least = min(gaps, key=lambda gap: gap.mean)
        return least.mean, least.interval


class Step(BaseModel):
    """A difference: by how much the metric of one term is below that of another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lower: AnyTerm
    upper: AnyTerm


class Gaps(BaseCondition):
    """The differences between the means of two terms grow in this order."""

    kind: Literal["gaps"]
    of: str = Field(description="the metric")
    ascending: list[Step] = Field(min_length=2)

    def terms(self) -> list[Term]:
        return [term for step in self.ascending for term in (step.lower, step.upper)]

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(f'[{step.upper} - {step.lower}]' for step in self.ascending)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = [paired(find, step.lower, step.upper, self.of) for step in self.ascending]
        gaps = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairs]
        return [Requirement([b - a for a, b in zip(*two, strict=False)]) for two in pairwise(gaps)]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        growths = [estimates.estimate(requirement.values) for requirement in self._requirements(find)]
        least = min(growths, key=lambda growth: growth.mean)
        return least.mean, least.interval


class Value(RangedCondition):
    """The mean of a metric lies in a range."""

    kind: Literal["value"]
    of: str = Field(description="the metric")
    term: AnyTerm

    def terms(self) -> list[Term]:
        return [self.term]

    def describe(self) -> str:
        return f"{self.of}: {self.term} is {in_words(self.at_least, self.at_most)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        return within([(value, 1.0) for value in metric_values(find(self.term), self.of)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = estimates.estimate(metric_values(find(self.term), self.of))
        return found.mean, found.interval


class Share(BaseCondition):
    """The share of replications in which a metric reaches a value."""

    kind: Literal["share"]
    of: str = Field(description="the metric")
    term: AnyTerm
    reaches: float = Field(default=1.0, description="the value that counts as a success")
    at_least: float = Field(gt=0, lt=1, description="the share")

    def terms(self) -> list[Term]:
        return [self.term]

    def describe(self) -> str:
        share = f"at least {100 * self.at_least:g} %"
        return f"{self.of}: {self.term} reaches {self.reaches:g} in {share} of the replications"

    def _successes(self, find: Find) -> list[float]:
        return [float(value >= self.reaches) for value in metric_values(find(self.term), self.of)]

    def _requirements(self, find: Find) -> list[Requirement]:
        return [Requirement(self._successes(find), self.at_least)]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = self._successes(find)
        return estimates.mean(found), estimates.wilson(found)
