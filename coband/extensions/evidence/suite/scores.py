"""Scores between Alone (0) and Central (1), pairwise evidence, ranks as far as they are known, and Pareto fronts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from operator import itemgetter

import numpy as np

from coband.extending import Registry, non_dominated, numerals, share_process
from coband.extensions.evidence.e_values import Requirement, closed_ebh, fieller
from coband.extensions.evidence.suite.submission import MEASURED, Outcome, Submission
from coband.extensions.evidence.suite.suites import ALONE, CENTRAL, REFERENCES, Size, Suite, World

RATE = 0.05
"""The false discovery rate of the comparisons within a scenario."""
SURE = math.log(1 / RATE)
"""The log e-value at which wrong answers are more than what is allowed."""


@dataclass
class Row:
    """One algorithm in one scenario.

    Attributes:
        name: with the number of its submission, where several have another result under that name.
        metric: mean of what is compared.
        score: (m_alone - m) / (m_alone - m_central) of the means m; None where the references do not differ.
        interval: its 95 % interval (Fieller 1954).
        means: metric -> mean, such as bits.
        added_time: mean simulated time minus that of Alone on the same seeds.
        rank: the best and the worst place that the evidence leaves; None where there is none.
        pareto: whether no other has a better score, fewer bits or less added time, and all three at least as good.
        tried: number of settings that tuning tried.
        tuned: the parameters in which they differ.
        remark: why it has no score or no rank.
    """

    name: str
    metric: float | None = None
    score: float | None = None
    interval: tuple[float, float] | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    added_time: float = 0.0
    rank: tuple[int, int] | None = None
    pareto: bool = False
    tried: int = 0
    tuned: tuple[str, ...] = ()
    remark: str = ""

    @property
    def score_text(self) -> str:
        """The score with its interval."""
        return "-" if self.score is None else numerals.between(self.score, self.interval)

    @property
    def place(self) -> str:
        """The places that the evidence leaves, such as ``2 to 5``."""
        return " to ".join(str(one) for one in dict.fromkeys(self.rank or ()))

    @property
    def settings(self) -> str:
        """How many settings were tried, and of which parameters, such as ``12: alpha, threshold``."""
        return f"{self.tried}: {', '.join(self.tuned) or 'defaults'}" if self.tried else ""


@dataclass(frozen=True, eq=False)
class Entrant:
    """A finished test with the references on the same seeds."""

    name: str
    group: int
    values: np.ndarray
    alone: np.ndarray


def table(suite: Suite, scenario: str, submissions: Sequence[Submission]) -> list[Row]:
    """All algorithms of some submissions in a scenario: the references, then by score; none where nobody ran it."""
    world, rows, entrants = suite.world(scenario), list[Row](), dict[str, Entrant]()
    most, several = _standing(submissions)
    for number, one in enumerate(submissions, start=1):
        tests = one.tests.get(scenario, {})
        for label, test in tests.items():
            if label in REFERENCES and any(row.name == label for row in rows):
                continue
            name = f"{label} ({number})" if label in several else label
            if len(test.candidates) < most.get((scenario, label, one.algorithms.get(label, "")), 0):
                rows.append(Row(name, remark="is here from a results file that tried more settings"))
                continue
            if why := _misfit(suite, scenario, label, test, one.size):
                rows.append(Row(name, remark=misfit(label, why)))
                continue
            row, fair = _row(name, test, tests, world)
            row.tried, row.tuned = len(test.candidates), test.tuned
            rows.append(row)
            if fair and label not in REFERENCES:
                values, alone = (np.array(part.values[world.metric]) for part in (test, tests[ALONE]))
                entrants[name] = Entrant(name, number, values, alone)
        for name, why in one.unfit.get(scenario, {}).items():
            rows.append(Row(name, remark=misfit(name, why)))
    ranks = ranked(list(entrants.values()))
    for row in rows:
        row.rank = ranks.get(row.name) if row.metric is not None else None
    _mark_front([row for row in rows if row.name in entrants])
    return sorted(rows, key=lambda row: (row.name not in REFERENCES, row.score is None, -(row.score or 0.0)))


def present(suite: Suite, submissions: Sequence[Submission]) -> list[str]:
    """The scenarios that somebody ran, in the order of the suite."""
    return [name for name in suite.definition.scenarios if any(name in one.tests for one in submissions)]


def misfit(name: str, why: str) -> str:
    """Why an algorithm does not fit, without its name, which stands before it."""
    return f"does not fit: {why.removeprefix(f'{name}: ').removeprefix(f'{name} ')}"


def _misfit(suite: Suite, scenario: str, label: str, test: Outcome, size: Size) -> str:
    """Why what broke off before anything was tried would not start today; empty where it would.

    What older versions found in a run, such as noise that would hide nothing, is now found before it.
    """
    algorithm = Registry.installed().algorithms.get(label)
    if not test.failure or test.candidates or algorithm is None:
        return ""
    return suite.why_not(scenario, algorithm, size)


def _standing(submissions: Sequence[Submission]) -> tuple[dict[tuple[str, str, str], int], set[str]]:
    """Which results stand: of the same code in the same scenario those that tried most settings.

    Returns:
        (scenario, label, origin) -> the most settings that were tried; and the labels that need the number of their
        submission, as several results stand in a scenario, or as the codes differ.
    """
    tried = [
        ((name, label, one.algorithms.get(label, "")), len(test.candidates))
        for one in submissions
        for name, tests in one.tests.items()
        for label, test in tests.items()
        if label not in REFERENCES
    ]
    most = {key: max(count for _, count in found) for key, found in groupby(sorted(tried), itemgetter(0))}
    stand = Counter((name, label) for (name, label, origin), count in tried if count == most[name, label, origin])
    codes = Counter(label for label, _ in {(label, origin) for _, label, origin in most})
    return most, {label for (_, label), count in stand.items() if count > 1 or codes[label] > 1}


def _row(name: str, test: Outcome, tests: Mapping[str, Outcome], world: World) -> tuple[Row, bool]:
    """The row of a test, and whether it takes part in the ranking."""
    if test.failure:
        return Row(name, remark=f"broke off: {test.failure}"), False
    values = test.values[world.metric]
    row = Row(name, float(np.mean(values)), means={key: float(np.mean(test.values[key])) for key in MEASURED})
    if not tests[ALONE].failure:
        row.added_time = row.means["simulated_time"] - float(np.mean(tests[ALONE].values["simulated_time"]))
    if tests[ALONE].failure or tests[CENTRAL].failure:
        row.remark = "the references broke off"
        return row, not tests[ALONE].failure
    alone, central = (np.array(tests[one].values[world.metric]) for one in REFERENCES)
    gained, most = alone - np.array(values), alone - central
    row.interval = fieller(gained.tolist(), most.tolist())
    if row.interval is None:
        row.remark = "Alone and Central are not told apart"
        return row, True
    if most.mean() <= 0:
        row.interval, row.remark = None, "Central is worse than Alone"
        return row, True
    row.score = float(gained.mean() / most.mean())
    if world.error is not None:
        metric, allowed = world.error
        wrong = int(sum(test.values[metric]))
        if share_process(wrong, len(values), allowed) >= SURE:
            row.remark, row.score, row.interval = f"wrong answers: {wrong} of {len(values)}", None, None
            return row, False
    return row, True


def ranked(entrants: Sequence[Entrant]) -> dict[str, tuple[int, int]]:
    """Name -> the best and the worst place, of places from 1.

    Differences of two tests are paired, by common seeds within a submission; between submissions the reference Alone,
    which has the same mean in both, is subtracted from each. Which differences are known follows from t e-processes
    and closed e-BH over all pairs, so that at most `RATE` of them are expected to be wrong, whenever one looks. Two
    whose values are the same throughout share their places. A difference that is the same throughout, as between
    numbers of samples, counts by its sign.
    """
    pairs = [pair for pair in combinations(entrants, 2) if _difference(*pair).any()]
    evidence = (Requirement(_difference(*pair).tolist(), coarse=True).evidence() for pair in pairs)
    found = [(one.holds, one.fails) for one in evidence]
    better = [more > less for more, less in found]  # whether the second has the smaller mean
    wrong, right = [max(pair) for pair in found], [min(pair) for pair in found]
    known = closed_ebh(wrong, right, RATE)
    above, below = dict.fromkeys((one.name for one in entrants), 0), dict.fromkeys((one.name for one in entrants), 0)
    for (first, second), second_wins, certain in zip(pairs, better, known, strict=True):
        if certain:
            winner, loser = (second, first) if second_wins else (first, second)
            above[loser.name] += 1
            below[winner.name] += 1
    return {one.name: (1 + above[one.name], len(entrants) - below[one.name]) for one in entrants}


def _difference(first: Entrant, second: Entrant) -> np.ndarray:
    """One number per replication, whose mean is that of the first minus that of the second."""
    if first.group == second.group:
        found: np.ndarray = first.values - second.values
        return found
    count = min(len(first.values), len(second.values))
    found = (first.values - first.alone)[:count] - (second.values - second.alone)[:count]
    return found


def _mark_front(rows: Sequence[Row]) -> None:
    """Mark what nothing dominates in mean score, bits and added time, which seeds of submissions do not change."""
    scored = [(row, row.score) for row in rows if row.score is not None]
    points = [(-score, row.means["bits"], row.added_time) for row, score in scored]
    for (row, _), free in zip(scored, non_dominated(np.array(points).reshape(-1, 3)), strict=True):
        row.pareto = free
