"""Differences between contenders, with intervals, and who wins on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coband.simulator.experiments.report.data import Comparison, Contender
from coband.simulator.experiments.report.measures import Measure
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import LEVEL, Estimate

Interval = tuple[float, float]
BOOTSTRAP_SEED = 0
ROUNDING = 1e-12
MOST_NAMED = 4


@dataclass(frozen=True)
class Difference:
    """``first`` minus ``second`` on one measure.

    Attributes:
        paired: over the same replications in the same worlds; otherwise between two independent means.
        count: replications (pairs, or those of the smaller side).
        mean: the difference of the means; ``relative`` to that of ``second``, None when that is 0.
        student: 95 % t interval (Welch's when unpaired), None for one replication.
        bootstrap: 95 % percentile interval.
        strict: t interval at the level that lets all pairs of the measure hold together (Bonferroni).
    """

    measure: Measure
    first: str
    second: str
    paired: bool
    count: int
    mean: float
    relative: float | None
    student: Interval | None
    bootstrap: Interval | None
    strict: Interval | None

    @property
    def verdict(self) -> str:
        """In words: who is lower, or higher where that is better, when both intervals say so."""
        if self.student is None or self.bootstrap is None:
            return "one replication: no statement about chance"
        if self.better is not None:
            return f"{self.better} {self.measure.better}"
        return "equal" if self.student == self.bootstrap == (0.0, 0.0) else "undecided"

    @property
    def better(self) -> str | None:
        """The one of the two that is better by both intervals; None when they do not say."""
        signs = {self._sign(interval) for interval in (self.student, self.bootstrap)}
        return self.first if signs == {-1} else self.second if signs == {1} else None

    def settled(self, winner: str) -> bool:
        """Whether ``winner``, one of the two, is better even after allowing for the number of comparisons."""
        return self._sign(self.strict) == (-1 if winner == self.first else 1)

    def _sign(self, interval: Interval | None) -> int:
        """-1 when the interval says that the first is better, 1 when it says so of the second, else 0."""
        sign = 0 if interval is None else _sign(interval)
        return -sign if self.measure.better == "higher" else sign


def _sign(interval: Interval) -> int:
    """-1 or 1 when the interval lies on one side of 0, else 0."""
    return -1 if interval[1] < 0 else int(interval[0] > 0)


@dataclass(frozen=True)
class Ranking:
    """Who wins on one measure.

    Attributes:
        order: (label, mean) from the best mean on.
        leaders: the labels with the best mean; several when they share it exactly.
        level: the others whose difference from a leader is not settled.
        sentence: the verdict in words.
    """

    measure: Measure
    order: tuple[tuple[str, Estimate], ...]
    leaders: tuple[str, ...]
    level: tuple[str, ...]
    sentence: str


def differences(comparison: Comparison, measure: Measure) -> list[Difference]:
    """All pairs of contenders, in their order."""
    pairs = list(combinations(comparison.contenders, 2))
    return [_difference(comparison, measure, one, other, len(pairs)) for one, other in pairs]


def against(found: Sequence[Difference], label: str) -> list[Difference]:
    """The pairs of which ``label`` is one, each as other minus ``label``."""
    return [_turned(one) if one.first == label else one for one in found if label in (one.first, one.second)]


def _turned(one: Difference) -> Difference:
    def turn(interval: Interval | None) -> Interval | None:
        return None if interval is None else (-interval[1], -interval[0])

    base = None if one.relative is None else one.mean / one.relative if one.relative else None
    first = None if base is None else base + one.mean
    relative = 0.0 if one.relative == 0 else None if not first else -one.mean / first
    return Difference(
        one.measure,
        one.second,
        one.first,
        one.paired,
        one.count,
        -one.mean,
        relative,
        turn(one.student),
        turn(one.bootstrap),
        turn(one.strict),
    )


def _difference(comparison: Comparison, measure: Measure, one: Contender, other: Contender, pairs: int) -> Difference:
    first, second = one.values(measure.key), other.values(measure.key)
    common = sorted(first.keys() & second.keys())
    paired = not comparison.why_unpaired(one, other) and bool(common)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    strict_level = 1.0 - (1.0 - LEVEL) / pairs
    if paired:
        lefts, rights = [first[r] for r in common], [second[r] for r in common]
        estimate = statistics.paired_difference(lefts, rights)
        strict = statistics.paired_difference(lefts, rights, strict_level).interval
        draws = statistics.bootstrap_means([a - b for a, b in zip(lefts, rights, strict=True)], rng)
    else:
        lefts, rights = list(first.values()), list(second.values())
        estimate = statistics.unpaired_difference(lefts, rights)
        strict = statistics.unpaired_difference(lefts, rights, strict_level).interval
        draws = statistics.bootstrap_means(lefts, rng) - statistics.bootstrap_means(rights, rng)
    bootstrap = None if estimate.interval is None else statistics.percentile_interval(draws)
    base = statistics.mean(rights)
    return Difference(
        measure,
        one.label,
        other.label,
        paired,
        estimate.count,
        estimate.mean,
        estimate.mean / base if base else None,
        estimate.interval,
        bootstrap,
        strict,
    )


def ranking(comparison: Comparison, measure: Measure, found: Sequence[Difference]) -> Ranking:
    """Who has the best mean, and from whom it cannot be told apart.

    The leader is chosen by looking at the data, so its differences are judged at a level at which all pairs hold
    together with 95 % (Bonferroni).
    """
    estimates = [
        (one.label, statistics.estimate(list(one.values(measure.key).values()))) for one in comparison.contenders
    ]
    order = tuple(sorted(estimates, key=lambda item: item[1].mean, reverse=measure.better == "higher"))
    best = order[0][1].mean
    leaders = [label for label, estimate in order if abs(estimate.mean - best) <= ROUNDING * abs(best)]
    others = [label for label, _ in order if label not in leaders]
    unsettled = tuple(label for label in others if not all(_settled(found, leader, label) for leader in leaders))
    single = any(estimate.count < 2 for _, estimate in order)
    sentence = _sentence(measure, leaders, others, unsettled, single)
    return Ranking(measure, order, tuple(leaders), unsettled, sentence)


def _settled(found: Sequence[Difference], leader: str, other: str) -> bool:
    return next(one for one in found if {one.first, one.second} == {leader, other}).settled(leader)


def _sentence(
    measure: Measure, leaders: Sequence[str], others: Sequence[str], unsettled: Sequence[str], single: bool
) -> str:
    if not others:
        return "All are equal." if len(leaders) > 1 else f"{leaders[0]} is alone."
    if len(leaders) > 1:
        best = f"{_list(leaders)} share the {measure.end} mean"
    elif not unsettled and not single:
        return f"{leaders[0]} {measure.verb}."
    else:
        best = f"{leaders[0]} has the {measure.end} mean"
    if single:
        return f"{best}, in one replication: that says nothing about chance."
    if not unsettled:
        return f"{best}."
    if len(unsettled) == len(others):
        return f"Undecided: {best}, but no difference from it is certain."
    return f"{best}, but {'is' if len(leaders) == 1 else 'are'} not told apart from {_few(unsettled)}."


def _few(labels: Sequence[str]) -> str:
    return _list(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} others"


def _list(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
