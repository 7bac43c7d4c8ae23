"""Conditions of claims: each becomes inequalities on means or shares over replications, which tests decide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from coband.simulator.experiments.claims.samples import Sample, SampleError
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.statistics.evidence import Evidence, Requirement, fieller, together

PLACES = 20
"""Places of a range at which one curve is compared with another."""


class Term(BaseModel):
    """A label of a study; in a sweep, with values of the grid's keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    at: dict[str, str | int | float] = Field(default={}, description="key of the grid -> value")
    study: str | None = Field(default=None, description="name of the study; needed if the claim has several")

    def __str__(self) -> str:
        places = [f"{key.rpartition('.')[2]} = {value}" for key, value in self.at.items()]
        where = [*places, *([self.study] if self.study else [])]
        return f"{self.label} ({', '.join(where)})" if where else self.label


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
        effect: the mean of the inequality that is nearest to its border, in standard deviations over replications.
        count: replications.
        evidence: for and against.
    """

    text: str
    estimate: float | None
    interval: tuple[float, float] | None
    effect: float | None
    count: int
    evidence: Evidence


class _Condition(BaseModel):
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
        requirements = self._requirements(find)
        estimate, interval = self._estimate(find)
        return Finding(self.describe(), estimate, interval, _effect(requirements), count, together(requirements))


def _effect(requirements: Sequence[Requirement]) -> float | None:
    """The smallest mean in standard deviations."""
    found = []
    for requirement in requirements:
        spread = float(np.std(requirement.values, ddof=1)) if len(requirement.values) > 1 else 0.0
        if spread > 0:
            found.append(float(np.mean(requirement.values)) / spread)
    return min(found, default=None)


def _metric(samples: Sequence[Sample], name: str) -> list[float]:
    return [sample.metric(name) for sample in samples]


def _paired(find: Find, first: Term, second: Term, name: str) -> tuple[list[float], list[float]]:
    """The values of two terms on the replications that both have."""
    one, other = find(first), find(second)
    count = min(len(one), len(other))
    return _metric(one[:count], name), _metric(other[:count], name)


class _Ranged(_Condition):
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


class _Pair(_Condition):
    of: str = Field(description="the metric")
    first: AnyTerm
    second: AnyTerm

    def terms(self) -> list[Term]:
        return [self.first, self.second]

    def _values(self, find: Find) -> tuple[list[float], list[float]]:
        return _paired(find, self.first, self.second, self.of)


class Difference(_Pair):
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


class Ratio(_Ranged, _Pair):
    """The ratio of two means lies in a range: E a >= low E b and E a <= high E b, for positive b."""

    kind: Literal["ratio"]

    def describe(self) -> str:
        return f"{self.of}: {self.first} over {self.second} is {_range(self.at_least, self.at_most)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        first, second = self._values(find)
        return _within([(a, b) for a, b in zip(first, second, strict=True)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        return _ratio(*self._values(find))


class Equal(_Pair):
    """Two means are equal within a margin, by two one-sided tests (Schuirmann 1987): |E a - E b| <= margin E b."""

    kind: Literal["equal"]
    margin: float = Field(gt=0, lt=1, description="share of the second mean")

    def describe(self) -> str:
        return f"{self.of}: {self.first} equals {self.second} within {100 * self.margin:g} %"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = list(zip(*self._values(find), strict=True))
        return _within(pairs, 1 - self.margin, 1 + self.margin)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        return _ratio(*self._values(find))


class Order(_Condition):
    """The means of several terms grow in this order."""

    kind: Literal["order"]
    of: str = Field(description="the metric")
    ascending: list[AnyTerm] = Field(min_length=2)

    def terms(self) -> list[Term]:
        return self.ascending

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(map(str, self.ascending))}"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = [_paired(find, low, high, self.of) for low, high in pairwise(self.ascending)]
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


class Gaps(_Condition):
    """The differences between the means of two terms grow in this order."""

    kind: Literal["gaps"]
    of: str = Field(description="the metric")
    ascending: list[Step] = Field(min_length=2)

    def terms(self) -> list[Term]:
        return [term for step in self.ascending for term in (step.lower, step.upper)]

    def describe(self) -> str:
        return f"{self.of}: {' < '.join(f'[{step.upper} - {step.lower}]' for step in self.ascending)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        pairs = [_paired(find, step.lower, step.upper, self.of) for step in self.ascending]
        gaps = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairs]
        return [Requirement([b - a for a, b in zip(*two, strict=False)]) for two in pairwise(gaps)]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        growths = [estimates.estimate(requirement.values) for requirement in self._requirements(find)]
        least = min(growths, key=lambda growth: growth.mean)
        return least.mean, least.interval


class Value(_Ranged):
    """The mean of a metric lies in a range."""

    kind: Literal["value"]
    of: str = Field(description="the metric")
    term: AnyTerm

    def terms(self) -> list[Term]:
        return [self.term]

    def describe(self) -> str:
        return f"{self.of}: {self.term} is {_range(self.at_least, self.at_most)}"

    def _requirements(self, find: Find) -> list[Requirement]:
        return _within([(value, 1.0) for value in _metric(find(self.term), self.of)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = estimates.estimate(_metric(find(self.term), self.of))
        return found.mean, found.interval


class Slope(_Ranged):
    """Growth: the slope of log E a against the logarithm of a parameter, fitted in each replication."""

    kind: Literal["slope"]
    of: str = Field(description="the metric")
    term: AnyTerm
    against: str = Field(description="a numeric key of the sweep's grid")
    over: list[float] = Field(min_length=2, description="its values")

    def terms(self) -> list[Term]:
        places = [{**self.term.at, self.against: _short(value)} for value in self.over]
        return [self.term.model_copy(update={"at": place}) for place in places]

    def describe(self) -> str:
        name = self.against.rpartition(".")[2]
        return f"{self.of}: {self.term} grows with {name} with an exponent {_range(self.at_least, self.at_most)}"

    def _slopes(self, find: Find) -> list[float]:
        values = [_metric(find(term), self.of) for term in self.terms()]
        count = min(map(len, values))
        table = np.array([column[:count] for column in values])
        if (table <= 0).any():
            raise SampleError(f"{self.of} is not positive everywhere, so its growth has no exponent.")
        return [float(np.polyfit(np.log(self.over), np.log(column), 1)[0]) for column in table.T]

    def _requirements(self, find: Find) -> list[Requirement]:
        return _within([(slope, 1.0) for slope in self._slopes(find)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = estimates.estimate(self._slopes(find))
        return found.mean, found.interval


class Growth(_Ranged):
    """Growth within a run: the slope of a curve's logarithm against that of its axis, fitted in each replication."""

    kind: Literal["growth"]
    of: Literal["regret", "regret_per_agent", "scalars"] = "regret"
    term: AnyTerm
    against: Literal["turns", "turns_per_agent", "times"] = "turns"
    start: float = Field(default=0.1, gt=0, lt=1, description="where the fit begins, as a share of the axis")

    def terms(self) -> list[Term]:
        return [self.term]

    def describe(self) -> str:
        axis = self.against.replace("_", " ")
        where = f"from {100 * self.start:g} % of the {axis} on"
        return (
            f"{self.of}: {self.term} grows with {axis} with an exponent {_range(self.at_least, self.at_most)} {where}"
        )

    def _slopes(self, find: Find) -> list[float]:
        shares = np.geomspace(self.start, 1.0, PLACES)
        curves = [one.curve(self.against, shares * one.end(self.against), self.of) for one in find(self.term)]
        if any((curve <= 0).any() for curve in curves):
            raise SampleError(f"{self.of} is not positive everywhere, so its growth has no exponent.")
        return [float(np.polyfit(np.log(shares), np.log(curve), 1)[0]) for curve in curves]

    def _requirements(self, find: Find) -> list[Requirement]:
        return _within([(slope, 1.0) for slope in self._slopes(find)], self.at_least, self.at_most)

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = estimates.estimate(self._slopes(find))
        return found.mean, found.interval


class Share(_Condition):
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
        return [float(value >= self.reaches) for value in _metric(find(self.term), self.of)]

    def _requirements(self, find: Find) -> list[Requirement]:
        return [Requirement(self._successes(find), self.at_least)]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        found = self._successes(find)
        return estimates.mean(found), estimates.wilson(found)


class Below(_Pair):
    """One curve lies below another over a range of the horizontal axis, at `PLACES` places of it."""

    kind: Literal["below"]
    of: Literal["regret", "regret_per_agent", "scalars"] = "regret"
    against: Literal["turns", "turns_per_agent", "scalars", "times"] = "turns"
    start: float = Field(default=0.1, ge=0, lt=1, description="where the range begins, as a share of the axis")
    end: float = Field(default=1.0, gt=0, le=1, description="where the range ends, as a share of the axis")

    def describe(self) -> str:
        where = f"from {100 * self.start:g} % to {100 * self.end:g} % of the {self.against.replace('_', ' ')}"
        return f"{self.of.replace('_', ' ')}: {self.first} is below {self.second} {where}"

    def _gaps(self, find: Find) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Second minus first, shape (n, PLACES)."""
        pairs = list(zip(find(self.first), find(self.second), strict=False))
        end = min(sample.end(self.against) for pair in pairs for sample in pair)
        places = np.linspace(self.start * end, self.end * end, PLACES)
        curves = [[one.curve(self.against, places, self.of) for one in pair] for pair in pairs]
        return np.array([second - first for first, second in curves])

    def _requirements(self, find: Find) -> list[Requirement]:
        return [Requirement(column) for column in self._gaps(find).T.tolist()]

    def _estimate(self, find: Find) -> tuple[float, tuple[float, float] | None]:
        gaps = self._gaps(find)
        least = estimates.estimate(gaps[:, int(gaps.mean(axis=0).argmin())].tolist())
        return least.mean, least.interval


Condition = Annotated[
    Difference | Ratio | Equal | Order | Gaps | Value | Slope | Growth | Share | Below, Field(discriminator="kind")
]


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"


def _within(pairs: Sequence[tuple[float, float]], low: float | None, high: float | None) -> list[Requirement]:
    """E a >= low E b and E a <= high E b."""
    found = []
    if low is not None:
        found.append(Requirement([a - low * b for a, b in pairs], strict=False))
    if high is not None:
        found.append(Requirement([high * b - a for a, b in pairs], strict=False))
    return found


def _ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    below = estimates.mean(second)
    if below <= 0:
        raise SampleError("the second mean is not positive, so the ratio says nothing.")
    return estimates.mean(first) / below, fieller(first, second)


def _short(value: float) -> int | float:
    return int(value) if value == int(value) else value
