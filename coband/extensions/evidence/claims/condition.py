"""What all conditions of claims have in common: the terms that they are about, and what a sample says about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, permutations
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from coband import FloatArray
from coband.extending import Registry, estimates, footing, numerals
from coband.extensions.evidence.claims.samples import PER_AGENT, Sample, SampleError
from coband.extensions.evidence.e_values import UNKNOWN, Evidence, Requirement, Test, fieller, together

DIGITS = 9
"""Digits of a number that is not an integer in a results file."""
MARGIN = 0.05
"""A difference by a smaller share of the second mean makes no practical difference, unless a claim says otherwise."""


class Strict(BaseModel):
    """A part of a claim's file, which has no other keys than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Term(Strict):
    """A label of a study; in a sweep, with values of the grid's keys."""

    label: str
    at: dict[str, str | int | float] = Field(default={}, description="key of the grid -> value")
    study: str | None = Field(default=None, description="name of the study; needed if the claim has several")

    @property
    def faced(self) -> tuple[str | None, frozenset[tuple[str, str | int | float]]]:
        """The environment: its study, with the values of those keys that no algorithm chooses."""
        return self.study, frozenset(
            (key, value) for key, value in self.at.items() if not key.startswith("algorithms.")
        )

    def __str__(self) -> str:
        places = [f"{short_name(key)} = {value}" for key, value in self.at.items()]
        where = [*places, *([self.study] if self.study else [])]
        return f"{self.label} ({', '.join(where)})" if where else self.label


def short_name(key: str) -> str:
    """A key of a grid as readers know it: ``agents`` for ``agents.count``, otherwise its last word."""
    return "agents" if key == "agents.count" else key.rpartition(".")[2]


AnyTerm = Annotated[Term, BeforeValidator(lambda given: {"label": given} if isinstance(given, str) else given)]
Find = Callable[[Term], Sequence[Sample]]
"""The samples of a term, in order of replication."""


@dataclass(frozen=True)
class Finding:
    """What a sample says about one condition.

    Attributes:
        text: the condition in words.
        estimate: the number that it is about; None where there is no sample.
        interval: its 95 % confidence interval; None for fewer than two replications.
        effect: the mean of the inequality that is nearest to its border, in standard deviations over replications;
            None where all replications give the same number.
        count: replications.
        evidence: for and against.
        rows: what each replication gave, from which all the rest follows; empty where it was not kept.
        setting: of what the paper leaves open; empty where nothing is tried.
        given: that a comparison presupposes it; where it is not shown, neither verdict is.
        before: evidence of replications that came first and whose numbers were not kept; they are part of ``count``.
    """

    text: str
    estimate: float | None
    interval: tuple[float, float] | None
    effect: float | None
    count: int
    evidence: Evidence
    rows: Sequence[Sequence[float]] = ()
    setting: str = ""
    given: bool = False
    before: Evidence | None = None

    @property
    def start(self) -> int:
        """How many replications came before those with numbers."""
        return self.count - len(self.rows)

    def after(self, old: Finding) -> Finding:
        """This finding, of an old one's rows and later ones, with the evidence of what came before these rows."""
        if old.before is None:
            return self
        if not self.rows:
            return old
        evidence = self.evidence.after(old.before, self.count, old.start)
        return replace(self, evidence=evidence, count=self.count + old.start, before=old.before)


class BaseCondition(Strict):
    """Something that a claim says about the metrics or the curves of terms."""

    given: ClassVar[bool] = False
    test: Test = Field(default="mean", description="of means, or of the signs of the differences")

    @abstractmethod
    def terms(self) -> list[Term]:
        """What it is about."""

    @abstractmethod
    def describe(self) -> str:
        """The condition in words."""

    @abstractmethod
    def _columns(self, find: Find) -> Sequence[Sequence[float]]:
        """The numbers that it is about, each of them in all replications."""

    @abstractmethod
    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        """Its inequalities."""

    def _estimate(self, columns: FloatArray) -> tuple[float, tuple[float, float] | None]:
        """The number that it is about, with its interval: the smallest mean."""
        return least(columns)

    def _margins(self, columns: FloatArray) -> list[Requirement]:
        """The inequalities that say that there is no practical difference; none where no margin makes sense."""
        return []

    def rows(self, find: Find) -> list[list[float]]:
        """What each replication gave, rounded as results files keep it.

        Raises:
            SampleError: the study does not have what it asks for.
        """
        columns = [[_rounded(value) for value in column] for column in self._columns(find)]
        return [list(row) for row in zip(*columns, strict=False)]

    def judge(self, rows: Sequence[Sequence[float]]) -> Finding:
        """What the replications say.

        Raises:
            SampleError: it cannot be said of such numbers.
        """
        if not rows:
            return Finding(self.describe(), None, None, None, 0, UNKNOWN, given=self.given)
        columns = np.array(rows, dtype=np.float64).T
        metric = Registry.installed().metrics.get(getattr(self, "of", ""))
        coarse = metric is not None and metric.proportion
        requirements = [replace(one, coarse=coarse, test=self.test) for one in self._requirements(columns)]
        estimate, interval = self._estimate(columns)
        evidence = together(requirements, [replace(one, test=self.test) for one in self._margins(columns)])
        effect = _effect(requirements)
        return Finding(self.describe(), estimate, interval, effect, len(rows), evidence, rows, given=self.given)


def _effect(requirements: Sequence[Requirement]) -> float | None:
    """The smallest mean in standard deviations, of the inequalities whose values differ by more than rounding."""
    found = []
    for requirement in requirements:
        mean = float(np.mean(requirement.values))
        spread = float(np.std(requirement.values, ddof=1)) if len(requirement.values) > 1 else 0.0
        if spread > numerals.ROUNDING * abs(mean):
            found.append(mean / spread)
    return min(found, default=None)


def _rounded(value: float) -> float:
    return float(value) if float(value).is_integer() else float(f"{value:.{DIGITS}g}")


def metric_values(samples: Sequence[Sample], name: str) -> list[float]:
    """A metric of each replication."""
    return [sample.metric(name) for sample in samples]


def least(rows: FloatArray) -> tuple[float, tuple[float, float] | None]:
    """The smallest of several means, with its interval."""
    found = min((estimates.estimate(row) for row in rows.tolist()), key=lambda one: one.mean)
    return found.mean, found.interval


class TermCondition(BaseCondition):
    """A condition on one term."""

    term: AnyTerm

    def terms(self) -> list[Term]:
        return [self.term]


class RangedCondition(BaseCondition):
    """A condition that a number lies in a range."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        low, high = self.at_least, self.at_most
        if low is None and high is None:
            raise ValueError("give at_least, at_most, or both")
        if low is not None and high is not None and low > high:
            raise ValueError(f"at_least(={low:g}) must be at most at_most(={high:g})")
        return self

    def _requirements(self, columns: FloatArray) -> list[Requirement]:
        return within(columns[0], 1.0, self.at_least, self.at_most)


class MetricCondition(BaseCondition):
    """A condition on a metric of its terms."""

    of: str = Field(description="the metric")

    def _columns(self, find: Find) -> Sequence[Sequence[float]]:
        terms, key = self.terms(), self.of.removesuffix(PER_AGENT)
        samples = [find(term) for term in terms]
        whole = [metric_values(one, self.of) for one in samples]
        metric = Registry.installed().metrics.get(key)
        if metric is None or metric.better != "lower" or len({term.faced for term in terms}) > 1:
            return whole
        records = [[{**one.record, "replication": r} for r, one in enumerate(of)] for of in samples]
        sides = [
            footing.Label(one, partial(map, Sample.curves, of, count()))
            for one, of in zip(records, samples, strict=True)
        ]
        stops = partial(any, [one.stops for of in samples for one in of])
        if any(late := footing.waiting(sides, stops)):
            who = " and ".join(str(term) for term, out in zip(terms, late, strict=True) if out)
            raise SampleError(f"{who}: makes fewer than half of the others' pulls; ask of: reward, or kind: below.")
        ground = footing.footing(key, sides, stops)
        means = [np.mean(list(one.values())) if one else np.nan for one in ground.values]
        for first, second in permutations(range(len(terms)), 2):
            if means[first] < means[second] and ground.behind(first, second):
                raise SampleError(
                    f"{terms[first]} has less {key} than {terms[second]}{ground.where}, but makes fewer pulls; ask of: "
                    "reward, or kind: below."
                )
        if ground.at is None:
            return whole
        agents = 1 if self.of == key else samples[0][0].agents
        return [[value / agents for value in values.values()] for values in ground.values]


class PairCondition(MetricCondition):
    """A condition on a metric of two terms."""

    first: AnyTerm
    second: AnyTerm

    def terms(self) -> list[Term]:
        return [self.first, self.second]


def in_words(low: float | None, high: float | None) -> str:
    """A range in words."""
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"


def within(first: FloatArray, second: FloatArray | float, low: float | None, high: float | None) -> list[Requirement]:
    """E a >= low E b and E a <= high E b."""
    found = []
    if low is not None:
        found.append(Requirement((first - low * second).tolist(), strict=False))
    if high is not None:
        found.append(Requirement((high * second - first).tolist(), strict=False))
    return found


def ratio_of(first: FloatArray, second: FloatArray) -> tuple[float, tuple[float, float] | None]:
    """The ratio of two means, with Fieller's interval.

    Raises:
        SampleError: the second mean is not positive.
    """
    below = estimates.mean(second.tolist())
    if below <= 0:
        raise SampleError("the second mean is not positive, so the ratio says nothing.")
    return estimates.mean(first.tolist()) / below, fieller(first.tolist(), second.tolist())
