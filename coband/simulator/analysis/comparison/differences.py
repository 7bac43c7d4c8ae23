"""Differences between contenders with confidence intervals, and rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from coband.simulator.analysis.comparison.data import Contender, RunComparison
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.runs.footing import AT_THE_END, Footing, footing
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import LEVEL, Estimate
from coband.simulator.experiments.statistics.evidence import confidence_sequence, mean_of_logs, mean_processes
from coband.simulator.metrics import Metric

Interval = tuple[float, float]
BOOTSTRAP_SEED = 0
ROUNDING = 1e-12
MAX_NAMED = 4
MIN_BOOTSTRAP = 8
"""Smallest number of pairs with a bootstrap interval: resamples of fewer values are too alike, and it is too narrow."""


@dataclass(frozen=True, eq=False)
class Difference:
    """``first`` minus ``second`` on one measure.

    Numbers are found when they are asked for: a ranking of many labels needs one interval of each pair, a table all.

    Attributes:
        strict_level: the Bonferroni level, at which the intervals of all pairs hold together with 95 %.
        turned: whether the contenders are compared in the opposite order, so that numbers change sign only.
        ground: what the two are compared by among others; None for the two by themselves.
    """

    measure: Metric
    comparison: RunComparison
    contenders: tuple[Contender, Contender]
    strict_level: float
    turned: bool = False
    ground: Footing | None = None

    @property
    def first(self) -> str:
        return self.contenders[self.turned].label

    @property
    def second(self) -> str:
        return self.contenders[not self.turned].label

    @cached_property
    def paired(self) -> bool:
        """Whether the replications are paired (same arms and noise); otherwise the means are independent."""
        return not self.comparison.why_unpaired(*self.contenders) and bool(self._common)

    @property
    def count(self) -> int:
        """Number of pairs, or of replications of the smaller side."""
        return self._estimate.count

    @property
    def mean(self) -> float:
        return -self._estimate.mean if self.turned else self._estimate.mean

    @property
    def relative(self) -> float | None:
        """The difference divided by the mean of ``second``; None if that is 0."""
        base = statistics.mean(self._samples[not self.turned])
        return self.mean / base if base else None

    @property
    def student(self) -> Interval | None:
        """95 % t interval (Welch's if unpaired); None for one replication."""
        return self._turn(self._estimate.interval)

    @cached_property
    def bootstrap(self) -> Interval | None:
        """95 % percentile interval of the bootstrap; None for fewer than :data:`MIN_BOOTSTRAP` pairs."""
        enough = self.count >= MIN_BOOTSTRAP
        return self._turn(_bootstrap(*self._samples, paired=self.paired)) if enough else None

    @cached_property
    def strict(self) -> Interval | None:
        """Interval at the Bonferroni level."""
        if not self.early:
            return self._turn(self._estimated(self.strict_level).interval)
        return self._turn(confidence_sequence(self._gaps.tolist(), self.strict_level)) if self.paired else None

    @cached_property
    def any_time(self) -> Interval | None:
        """95 % confidence sequence of paired differences: with 95 % it covers at every number of replications, so that
        one may add some after a look; None where there are too few."""
        return self._turn(confidence_sequence(self._gaps.tolist(), LEVEL)) if self.paired else None

    @cached_property
    def e_value(self) -> float | None:
        """Against "no difference", of the same process; 20 or more is seen at any time with at most 5 %."""
        if not self.paired or self.count < 2:
            return None
        return math.exp(mean_of_logs(list(map(float, mean_processes(self._gaps))))) if self._gaps.any() else 0.0

    @property
    def early(self) -> bool:
        """Whether replications go on until something is known (`until:`). Then the confidence sequence decides instead
        of the t and bootstrap intervals, which are for a number of replications that is fixed beforehand. Unpaired
        replications have none, and stay undecided."""
        runs, scenarios = self.comparison.runs, self.comparison.scenarios
        return any("until" in scenarios[runs.index(side.run)] for side in self.contenders)

    @property
    def verdict(self) -> str:
        """The better label if all intervals exclude 0, in words."""
        if self.student is None:
            return "one replication: no statement about chance"
        if self.better is not None:
            return f"{self.better} {self.measure.better}{self.footing.where}"
        if self._lead is not None:
            few, many = sorted(self.footing.pulls)
            ahead = f"{self._lead} {self.measure.better}{self.footing.where}"
            return f"undecided: {ahead}, but makes {few:,.0f} pulls, not {many:,.0f}"
        if self.early and not self.paired:
            return "undecided: until: ended a run, and unpaired replications have no interval at any time"
        return "equal" if self.student == (0.0, 0.0) else "undecided"

    @property
    def better(self) -> str | None:
        """The label that is better by all intervals and not behind in pulls; None if they do not agree or include 0."""
        return None if self._lead is None or self._behind(self._lead) else self._lead

    def _behind(self, label: str) -> bool:
        place = int(self.contenders[1].label == label)
        return self.footing.behind(place, 1 - place)

    @property
    def _lead(self) -> str | None:
        """The label that is better by all intervals."""
        deciding = (self.any_time,) if self.early else (self.student, self.bootstrap)
        signs = {self._sign(one) for one in deciding if one is not None}
        return self.first if signs == {-1} else self.second if signs == {1} else None

    def is_certain(self, winner: str) -> bool:
        """Whether ``winner``, one of the two labels, is better at the Bonferroni level."""
        return self._sign(self.strict) == (-1 if winner == self.first else 1) and not self._behind(winner)

    def _sign(self, interval: Interval | None) -> int:
        """-1 if the interval shows that the first label is better, 1 if the second, else 0."""
        sign = 0 if interval is None else _sign(interval)
        return -sign if self.measure.better == "higher" else sign

    def _turn(self, interval: Interval | None) -> Interval | None:
        return (-interval[1], -interval[0]) if interval is not None and self.turned else interval

    @cached_property
    def footing(self) -> Footing:
        """What the two are compared by."""
        return self.ground or footing(self.measure.name, self.contenders, self.comparison.stops_itself)

    @property
    def pulls(self) -> dict[str, float]:
        """Label -> its mean number of pulls, where these differ."""
        return dict(zip((one.label for one in self.contenders), self.footing.pulls, strict=False))

    @property
    def _values(self) -> tuple[dict[int, float], ...]:
        return self.footing.values

    @property
    def _common(self) -> list[int]:
        return sorted(self._values[0].keys() & self._values[1].keys())

    @cached_property
    def _samples(self) -> tuple[list[float], list[float]]:
        """The values of both contenders, in the order of the pairs if they are paired."""
        one, other = self._values
        if not self.paired:
            return list(one.values()), list(other.values())
        return [one[r] for r in self._common], [other[r] for r in self._common]

    @property
    def _gaps(self) -> FloatArray:
        return np.subtract(*self._samples)

    @cached_property
    def _estimate(self) -> Estimate:
        return self._estimated(LEVEL)

    def _estimated(self, level: float) -> Estimate:
        estimated = statistics.paired_difference if self.paired else statistics.unpaired_difference
        return estimated(*self._samples, level)


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

    measure: Metric
    order: tuple[tuple[str, Estimate], ...]
    leaders: tuple[str, ...]
    undecided: tuple[str, ...]
    sentence: str


def differences(comparison: RunComparison, measure: Metric) -> list[Difference]:
    """The differences of all pairs of contenders, in their order."""
    pairs = list(combinations(comparison.contenders, 2))
    return [Difference(measure, comparison, pair, 1.0 - (1.0 - LEVEL) / len(pairs)) for pair in pairs]


def against(found: Sequence[Difference], label: str) -> list[Difference]:
    """The differences that involve ``label``, each as other label minus ``label``."""
    return [
        replace(one, turned=not one.turned) if one.first == label else one
        for one in found
        if label in (one.first, one.second)
    ]


def _bootstrap(lefts: list[float], rights: list[float], *, paired: bool) -> Interval:
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    if paired:
        draws = statistics.bootstrap_means([a - b for a, b in zip(lefts, rights, strict=True)], rng)
    else:
        draws = statistics.bootstrap_means(lefts, rng) - statistics.bootstrap_means(rights, rng)
    return statistics.percentile_interval(draws)


def ranking(comparison: RunComparison, measure: Metric, found: Sequence[Difference]) -> Ranking:
    """Find the best mean, and the labels whose difference from it is not certain.

    The leader is chosen by looking at the data. Its differences are therefore judged at the Bonferroni level, at which
    the intervals of all pairs hold together with 95 %.
    """
    late = frozenset[str]() if measure.name in AT_THE_END else comparison.waiting
    rivals = [one for one in comparison.contenders if one.label not in late]
    ground = footing(measure.name, rivals, comparison.stops_itself)
    estimates = [
        (one.label, statistics.estimate(list(values.values())))
        for one, values in zip(rivals, ground.values, strict=True)
    ]
    order = tuple(sorted(estimates, key=lambda item: item[1].mean, reverse=measure.better == "higher"))
    best = order[0][1].mean
    leaders = [label for label, estimate in order if abs(estimate.mean - best) <= ROUNDING * abs(best)]
    others = [label for label, _ in order if label not in leaders]
    between = {
        pair: replace(one, ground=ground.of(*map(rivals.index, one.contenders)))
        for one in found
        if not late & (pair := frozenset((one.first, one.second)))
    }
    undecided = tuple(
        label for label in others if not all(between[frozenset((one, label))].is_certain(one) for one in leaders)
    )
    single = any(estimate.count < 2 for _, estimate in order)
    sentence = _sentence(measure, leaders, others, undecided, single)
    if undecided and len(found) > 1 and not single:
        sentence = f"{sentence[:-1]} with all pairs judged at once."
    sentence = f"{sentence[:-1]}{ground.where}."
    if late:
        few = _few(sorted(late))
        sentence = "" if len(order) == 1 else f"{sentence} "
        sentence += f"Not ranked, as they make less than half of the pulls of others: {few}."
    return Ranking(measure, order, tuple(leaders), undecided, sentence)


def _sentence(
    measure: Metric, leaders: Sequence[str], others: Sequence[str], undecided: Sequence[str], single: bool
) -> str:
    if not others:
        return "All are equal." if len(leaders) > 1 else f"{leaders[0]} is alone."
    if len(leaders) > 1:
        best = f"{_few(leaders, 'labels')} share the {measure.end} mean"
    elif not undecided and not single:
        return f"{leaders[0]} {measure.praise}."
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
    if len(labels) > MAX_NAMED:
        return f"{len(labels)} {what}"
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
