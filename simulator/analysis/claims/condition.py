"""What all conditions of claims have in common: the terms that they are about, and what a sample says about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from coband.simulator.analysis.claims.samples import Sample, SampleError
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.statistics.evidence import Evidence, Requirement, fieller, together
from coband.simulator.experiments.statistics.numerals import ROUNDING


class Term(BaseModel):
    """A label of a study; in a sweep, with values of the grid's keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    at: dict[str, str | int | float] = Field(default={}, description="key of the grid -> value")
    study: str | None = Field(default=None, description="name of the study; needed if the claim has several")

    def __str__(self) -> str:
        places = [f"{short_name(key)} = {value}" for key, value in self.at.items()]
        where = [*places, *([self.study] if self.study else [])]
        return f"{self.label} ({', '.join(where)})" if where else self.label


def short_name(key: str) -> str:
    """A key of a grid as readers know it: ``agents`` for ``agents.count``, otherwise its last word."""
    return "agents" if key == "agents.count" else key.rpartition(".")[2]


def _term(given: Any) -> Any:
    return {"label": given} if isinstance(given, str) else given


AnyTerm = Annotated[Term, BeforeValidator(_term)]
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
    """

    text: str
    estimate: float | None
    interval: tuple[float, float] | None
    effect: float | None
    count: int
    evidence: Evidence


class BaseCondition(BaseModel):
    """Something that a claim says about the metrics or the curves of terms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @abstractmethod
    def terms(self) -> list[Term]:
        """What it is about."""

    @abstractmethod
    def describe(self) -> str:
        """The condition in words."""

    @abstractmethod
    def _requirements(self, find: Find) -> list[Requirement]:
        """Its inequalities."""

    @abstractmethod
    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        """The number that it is about, with its interval."""

    def judge(self, find: Find) -> Finding:
        """What the samples say.

        Raises:
            SampleError: the study does not have what it asks for.
        """
        count = min((len(find(term)) for term in self.terms()), default=0)
        if count == 0:
            return Finding(self.describe(), None, None, None, 0, Evidence(1.0, 1.0))
        coarse = self._is_coarse()
        requirements = [replace(one, coarse=coarse) for one in self._requirements(find)]
        estimate, interval = self._estimate(find)
        return Finding(self.describe(), estimate, interval, _effect(requirements), count, together(requirements))

    def _is_coarse(self) -> bool:
        """Whether the metric is declared to be 0 or 1 in every replication."""
        metric = Registry.installed().metrics.get(getattr(self, "of", ""))
        return metric is not None and metric.proportion


def _effect(requirements: Sequence[Requirement]) -> float | None:
    """The smallest mean in standard deviations, of the inequalities whose values differ by more than rounding."""
    found = []
    for requirement in requirements:
        mean = float(np.mean(requirement.values))
        spread = float(np.std(requirement.values, ddof=1)) if len(requirement.values) > 1 else 0.0
        if spread > ROUNDING * abs(mean):
            found.append(mean / spread)
    return min(found, default=None)


def metric_values(samples: Sequence[Sample], name: str) -> list[float]:
    """A metric of each replication."""
    return [sample.metric(name) for sample in samples]


def paired(find: Find, first: Term, second: Term, name: str) -> tuple[list[float], list[float]]:
    """The values of two terms on the replications that both have."""
    one, other = find(first), find(second)
    count = min(len(one), len(other))
    return metric_values(one[:count], name), metric_values(other[:count], name)


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


class PairCondition(BaseCondition):
    """A condition on a metric of two terms."""

    of: str = Field(description="the metric")
    first: AnyTerm
    second: AnyTerm

    def terms(self) -> list[Term]:
        return [self.first, self.second]

    def _values(self, find: Find) -> tuple[list[float], list[float]]:
        return paired(find, self.first, self.second, self.of)


def in_words(low: float | None, high: float | None) -> str:
    """A range in words."""
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"


def within(pairs: Sequence[tuple[float, float]], low: float | None, high: float | None) -> list[Requirement]:
    """E a >= low E b and E a <= high E b."""
    found = []
    if low is not None:
        found.append(Requirement([a - low * b for a, b in pairs], strict=False))
    if high is not None:
        found.append(Requirement([high * b - a for a, b in pairs], strict=False))
    return found


def ratio_of(first: Sequence[float], second: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """The ratio of two means, with Fieller's interval.

    Raises:
        SampleError: the second mean is not positive.
    """
    below = estimates.mean(second)
    if below <= 0:
        raise SampleError("the second mean is not positive, so the ratio says nothing.")
    return estimates.mean(first) / below, fieller(first, second)
