"""Differences between contenders with confidence intervals, and rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from coband.simulator.analysis.report.data import Contender, RunComparison
from coband.simulator.analysis.report.measures import Measure
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.anytime import confidence_sequence, mean_processes
from coband.simulator.experiments.statistics.estimates import LEVEL, Estimate
from coband.simulator.experiments.statistics.evidence import mean_of_logs

Interval = tuple[float, float]
BOOTSTRAP_SEED = 0
ROUNDING = 1e-12
MAX_NAMED = 4
MIN_BOOTSTRAP = 8
"""Smallest number of pairs with a bootstrap interval: resamples of fewer values are too alike, and it is too narrow."""


@dataclass(frozen=True)
class Difference:
    """``first`` minus ``second`` on one measure.

    Attributes:
        paired: whether the replications are paired (same arms and noise); otherwise the means are independent.
        count: number of pairs, or of replications of the smaller side.
        relative: the difference divided by the mean of ``second``; None if that is 0.
        student: 95 % t interval (Welch's if unpaired); None for one replication.
        bootstrap: 95 % percentile interval of the bootstrap; None for fewer than :data:`MIN_BOOTSTRAP` pairs.
        strict: interval at the Bonferroni level, at which the intervals of all pairs hold together with 95 %.
        any_time: 95 % confidence sequence of paired differences: with 95 % it covers at every number of replications,
            so that one may add some after a look; None where there are too few.
        e_value: against "no difference", of the same process; 20 or more is seen at any time with at most 5 %.
        early: whether replications go on until something is known (`until:`). Then the confidence sequence decides
            instead of the t and bootstrap intervals, which are for a number of replications that is fixed beforehand.
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
    any_time: Interval | None = None
    e_value: float | None = None
    early: bool = False

    @property
    def verdict(self) -> str:
        """The better label if all intervals exclude 0, in words."""
        if self.student is None:
            return "one replication: no statement about chance"
        if self.better is not None:
            return f"{self.better} {self.measure.better}"
        return "equal" if self.student == (0.0, 0.0) else "undecided"

    @property
    def better(self) -> str | None:
        """The label that is better by all intervals; None if they do not agree or include 0."""
        deciding = (self.any_time,) if self.early else (self.student, self.bootstrap)
        signs = {self._sign(one) for one in deciding if one is not None}
        return self.first if signs == {-1} else self.second if signs == {1} else None

    def is_certain(self, winner: str) -> bool:
        """Whether ``winner``, one of the two labels, is better at the Bonferroni level."""
        return self._sign(self.strict) == (-1 if winner == self.first else 1)

    def _sign(self, interval: Interval | None) -> int:
        """-1 if the interval shows that the first label is better, 1 if the second, else 0."""
        sign = 0 if interval is None else _sign(interval)
        return -sign if self.measure.better == "higher" else sign


def _sign(interval: Interval) -> int:
    """-1 or 1 if the interval is below or above 0, else 0."""
    return -1 if interval[1] < 0 else int(interval[0] > 0)


@dataclass(frozen=True)
class Ranking:
    """The ranking of the labels on one measure.

    Attributes:
        order: (label, mean), the best mean first.
        leaders: the labels with the best mean; several if their means are equal.
        undecided: the other labels whose difference from a leader is not certain.
        sentence: the result in words.
    """

    measure: Measure
    order: tuple[tuple[str, Estimate], ...]
    leaders: tuple[str, ...]
    undecided: tuple[str, ...]
    sentence: str


def differences(comparison: RunComparison, measure: Measure) -> list[Difference]:
    """The differences of all pairs of contenders, in their order."""
    pairs = list(combinations(comparison.contenders, 2))
    return [_difference(comparison, measure, one, other, len(pairs)) for one, other in pairs]


def against(found: Sequence[Difference], label: str) -> list[Difference]:
    """The differences that involve ``label``, each as other label minus ``label``."""
    return [_reversed(one) if one.first == label else one for one in found if label in (one.first, one.second)]


def _reversed(one: Difference) -> Difference:
    def turn(interval: Interval | None) -> Interval | None:
        return None if interval is None else (-interval[1], -interval[0])

    base = None if one.relative is None else one.mean / one.relative if one.relative else None
    first = None if base is None else base + one.mean
    relative = 0.0 if one.relative == 0 else None if not first else -one.mean / first
    swapped = replace(one, first=one.second, second=one.first, mean=-one.mean, relative=relative)
    swapped = replace(swapped, student=turn(one.student), bootstrap=turn(one.bootstrap))
    return replace(swapped, strict=turn(one.strict), any_time=turn(one.any_time))


def _difference(
    comparison: RunComparison, measure: Measure, one: Contender, other: Contender, pairs: int
) -> Difference:
    first, second = one.values(measure.key), other.values(measure.key)
    common = sorted(first.keys() & second.keys())
    paired = not comparison.why_unpaired(one, other) and bool(common)
    strict_level = 1.0 - (1.0 - LEVEL) / pairs
    if paired:
        lefts, rights = [first[r] for r in common], [second[r] for r in common]
        estimate = statistics.paired_difference(lefts, rights)
        strict = statistics.paired_difference(lefts, rights, strict_level).interval
        gaps = np.subtract(lefts, rights)
        any_time = confidence_sequence(gaps.tolist(), LEVEL)
        if early := any("until" in comparison.scenarios[comparison.runs.index(side.run)] for side in (one, other)):
            strict = confidence_sequence(gaps.tolist(), strict_level)
        e_value = math.exp(mean_of_logs([float(log_e) for log_e in mean_processes(gaps)])) if gaps.any() else 0.0
    else:
        any_time, e_value, early = None, None, False
        lefts, rights = list(first.values()), list(second.values())
        estimate = statistics.unpaired_difference(lefts, rights)
        strict = statistics.unpaired_difference(lefts, rights, strict_level).interval
    bootstrap = _bootstrap(lefts, rights, paired=paired) if estimate.count >= MIN_BOOTSTRAP else None
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
        any_time,
        e_value if estimate.count > 1 else None,
        early,
    )


def _bootstrap(lefts: list[float], rights: list[float], *, paired: bool) -> Interval:
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    if paired:
        draws = statistics.bootstrap_means([a - b for a, b in zip(lefts, rights, strict=True)], rng)
    else:
        draws = statistics.bootstrap_means(lefts, rng) - statistics.bootstrap_means(rights, rng)
    return statistics.percentile_interval(draws)


def ranking(comparison: RunComparison, measure: Measure, found: Sequence[Difference]) -> Ranking:
    """Find the best mean, and the labels whose difference from it is not certain.

    The leader is chosen by looking at the data. Its differences are therefore judged at the Bonferroni level, at which
    the intervals of all pairs hold together with 95 %.
    """
    estimates = [
        (one.label, statistics.estimate(list(one.values(measure.key).values()))) for one in comparison.contenders
    ]
    order = tuple(sorted(estimates, key=lambda item: item[1].mean, reverse=measure.better == "higher"))
    best = order[0][1].mean
    leaders = [label for label, estimate in order if abs(estimate.mean - best) <= ROUNDING * abs(best)]
    others = [label for label, _ in order if label not in leaders]
    undecided = tuple(label for label in others if not all(_is_certain(found, leader, label) for leader in leaders))
    single = any(estimate.count < 2 for _, estimate in order)
    sentence = _sentence(measure, leaders, others, undecided, single)
    return Ranking(measure, order, tuple(leaders), undecided, sentence)


def _is_certain(found: Sequence[Difference], leader: str, other: str) -> bool:
    return next(one for one in found if {one.first, one.second} == {leader, other}).is_certain(leader)


def _sentence(
    measure: Measure, leaders: Sequence[str], others: Sequence[str], undecided: Sequence[str], single: bool
) -> str:
    if not others:
        return "All are equal." if len(leaders) > 1 else f"{leaders[0]} is alone."
    if len(leaders) > 1:
        best = f"{_few(leaders, 'labels')} share the {measure.end} mean"
    elif not undecided and not single:
        return f"{leaders[0]} {measure.verb}."
    else:
        best = f"{leaders[0]} has the {measure.end} mean"
    if single:
        return f"{best}, in one replication: that says nothing about chance."
    if not undecided:
        return f"{best}."
    if len(undecided) == len(others):
        return f"Undecided: {best}, but no difference from it is certain."
    return f"{best}, but {'is' if len(leaders) == 1 else 'are'} not told apart from {_few(undecided)}."


def _few(labels: Sequence[str], what: str = "others") -> str:
    return _list(labels) if len(labels) <= MAX_NAMED else f"{len(labels)} {what}"


def _list(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
