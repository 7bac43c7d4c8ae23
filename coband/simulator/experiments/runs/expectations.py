"""What a scenario's ``expect:`` section says, compared with what a run gave."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coband.simulator.experiments.runs.code_version import hardware
from coband.simulator.experiments.runs.footing import Footing, Label, at_pulls, at_time, footing, stops_itself
from coband.simulator.experiments.runs.results import Results, numbers
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.evidence import confidence_sequence, mean_processes
from coband.simulator.scenario_errors import RequestError

if TYPE_CHECKING:
    from coband.simulator.experiments.scenario.scenario import Scenario
    from coband.simulator.experiments.store.store import Series

Number = int | float
ROUNDING = 1e-12
"""Relative differences of scores up to which other kernels of BLAS may give another order (`core.nodes.decisions`)."""
TOLERANCE = 1e-9  # relative, for counts that are not whole numbers


class ExpectationError(RequestError):
    """A scenario's expectations cannot be compared; the text says why."""


@dataclass(frozen=True)
class Comparison:
    """One expected count, of one replication or on average.

    Attributes:
        replication: None for all of them together.
        expected: in words, such as "12" or "at most 12".
        got: None when the run did not get so far, or does not count this.
        interval: of ``got``, a mean over replications; of a comparison of two labels, of their paired difference.
        e_value: against "it is not less", at whatever time one looks; None where no labels are compared.
        open: whether the mean is as expected, and its interval too wide to tell.
    """

    label: str
    count: str
    replication: int | None
    expected: str
    got: Number | None
    holds: bool
    interval: tuple[float, float] | None = None
    e_value: float | None = None
    open: bool = False

    @property
    def word(self) -> str:
        return "ok" if self.holds else "undecided" if self.open else "differs"


def require(scenario: Scenario, only: Sequence[str] = (), replications: Sequence[int] = ()) -> None:
    """Make sure, before a long run, that there is something to compare.

    Raises:
        ExpectationError: no ``expect:`` section, none for the chosen labels, too few values for the replications, or
            one replication for a mean.
    """
    if not scenario.expect:
        raise ExpectationError("the scenario has no expect: section, so there is nothing to check; use `coband run`.")
    names = {entry.label: entry.algorithm.name for entry in scenario.algorithms}
    runs = {label for label, name in names.items() if not only or label in only or name in only}
    chosen = [item for item in scenario.expect if item.label in runs and item.other in {None, *runs}]
    if not chosen:
        raise ExpectationError(f"expect: says nothing about {', '.join(only)}.")
    last = max(replications, default=scenario.replications - 1)
    single = (len(set(replications)) or scenario.replications) == 1
    for item in chosen:
        if item.of == "mean" and single:
            raise ExpectationError(
                f"expect: {item.label}: {item.count}: of: mean needs two replications or more: one has no interval."
            )
        if isinstance(item.equals, (list, tuple)) and len(item.equals) <= last:
            raise ExpectationError(
                f"expect: {item.label}: {item.count}: {len(item.equals)} values do not reach replication {last}."
            )


Read = Callable[[str], Iterable["Series"]]
"""Gives the curves of a label."""


def compare(
    scenario: Scenario, report: Results, early: bool = False, read: Read = lambda label: ()
) -> list[Comparison]:
    """Every expectation about labels that ran, for each of their replications or for all together.

    Replications that broke off have no count. A mean or a difference is not as expected without them.

    Args:
        scenario: with its ``expect:`` section.
        report: of its run.
        read: gives the curves of a label, for what is compared during a run or at equal pulls.
        early: whether replications went on until something was known (``until:``). Then confidence sequences take the
            place of Student's intervals, which are for a number of replications that is fixed beforehand.

    Raises:
        ExpectationError: a count that no replication reports.
    """
    finished = {entry["label"]: entry["replications"] for entry in report["results"]}
    broken = [(one["label"], one["replication"]) for one in report.get("failures", ())]
    ran = finished.keys() | {label for label, _ in broken}
    found: list[Comparison] = []
    for item in scenario.expect:
        labels = [label for label in (item.label, item.other) if label is not None]
        if not ran.issuperset(labels):
            continue
        sides = [Label(finished.get(label, ()), partial(read, label)) for label in labels]
        lost = {replication for label, replication in broken if label in labels}
        if item.other is not None:
            found.append(_compare_labels(item, sides, early, lost, lambda: stops_itself(scenario.problem)))
            continue
        each = list(_compare(item, sides[0]))
        found += each if item.of == "each" and each else [_compare_mean(item, each, early, lost)]
    return found


def close_calls(comparisons: Sequence[Comparison], report: Results) -> list[str]:
    """Why counts may differ on another computer: what this one computes with, and how close decisions were."""
    wrong = dict.fromkeys(item.label for item in comparisons if not item.holds)
    if not wrong:
        return []
    computer = "; ".join(f"{part}: {what}" for part, what in hardware().items())
    found = [f"this computer has {computer}; where others were used to find what is expected, last bits differ"]
    for entry in report["results"]:
        gaps = numbers("closest_decision", entry["replications"])
        if entry["label"] in wrong and gaps:
            found.append(f"{entry['label']}: {in_words(min(gaps))}")
    return found


def in_words(gap: float) -> str:
    """What the gap of the closest decision means."""
    certain = "rounding may have decided it" if gap < ROUNDING else "so rounding has not decided"
    return f"the closest decision was won by {gap:.1e} of the larger score, {certain}"


def _compare_mean(item: Any, each: Sequence[Comparison], early: bool, lost: set[int]) -> Comparison:
    """Whether all of the interval of the mean over replications is within the bounds; one replication has none."""
    found = [comparison.got for comparison in each if comparison.got is not None]
    words, tests = _wanted(item, 0)
    words = f"{words} on average" if item.of == "mean" else words
    if lost or len(found) < max(2, len(each)):
        return Comparison(item.label, item.count, None, words, None, False)
    interval = confidence_sequence(found) if early else statistics.interval(found)
    mean, holds = statistics.mean(found), interval is not None and all(test(b) for test in tests for b in interval)
    undecided = not holds and all(test(mean) for test in tests)
    return Comparison(item.label, item.count, None, words, mean, holds, interval, open=undecided)


def _compare(item: Any, side: Label) -> Iterator[Comparison]:
    for replication, number in _counts(item.label, item, side).items():
        wanted, tests = _wanted(item, replication)
        wanted += _where(item) + (", which it does not reach" if number is None and item.at is not None else "")
        holds = number is not None and all(test(number) for test in tests)
        yield Comparison(item.label, item.count, replication, wanted, number, holds)


def _compare_labels(
    item: Any, sides: Sequence[Label], early: bool, lost: set[int], stops: Callable[[], bool]
) -> Comparison:
    """Whether a count is less, or more, than another label's: all of the interval of the paired difference says so.

    Where pulls differ, `runs.footing` says what is compared. Where the expectation says at which moment, the pulls by
    then count, and all replications must reach it. Nothing is shown where one broke off.

    The interval needs two replications; the difference is taken as it is where only one was asked for. After an early
    stop it is a confidence sequence, and where there is none yet, nothing is shown.
    """
    first, second = (
        {replication: number for replication, number in _counts(label, item, side).items() if number is not None}
        for label, side in zip((item.label, item.other), sides, strict=True)
    )
    sign, word, relation = (1, "less", "<") if item.less_than else (-1, "more", ">")
    ground = footing(item.count, sides, stops) if item.at is None else Footing((first, second), _pulls_by(item, sides))
    first, second = ground.values
    where = ground.where if item.at is None else _where(item)
    both = sorted(first.keys() & second.keys())
    asked = lost.union(sides[0].values("replication").keys() & sides[1].values("replication").keys())
    short = bool(lost) or (item.at is not None and len(both) < len(asked))
    if short:
        where += f", which {len(both)} of {len(asked)} replications {'finish' if item.at is None else 'reach'}"
    behind = ground.behind(0, 1)
    if behind:
        few, many = (f"{made:,.0f}" for made in ground.pulls)
        where += f", and no fewer pulls ({few}, not {many})"
    if not both:
        return Comparison(item.label, item.count, None, f"{word} than {item.other}{where}", None, False)
    single = not early and all(len(one.records) == 1 for one in sides)
    gaps = [sign * (first[number] - second[number]) for number in both]
    interval = confidence_sequence(gaps) if early else statistics.interval(gaps)
    less = interval[1] < 0 if interval is not None else single and gaps[0] < 0
    less = less and not behind and not short
    words = f"{word} than {item.other}'s: difference {relation} 0{where}"
    e_value = math.exp(float(mean_processes(-np.asarray(gaps))[0])) if len(gaps) > 1 else None
    gap = statistics.mean(gaps)
    if sign < 0 and interval is not None:
        interval = -interval[1], -interval[0]
    return Comparison(
        label=item.label,
        count=item.count,
        replication=None,
        expected=words,
        got=sign * gap,
        holds=less,
        interval=interval,
        e_value=e_value,
        open=not less and not behind and not lost and gap < 0,
    )


def _pulls_by(item: Any, sides: Sequence[Label]) -> tuple[dict[int, float], ...]:
    """The pulls of some labels by the time that an expectation names, by replication; empty at equal pulls."""
    if item.at.time is None:
        return ()
    return tuple({one.replication: at_time("turns", one, item.at.time) or 0.0 for one in side.series} for side in sides)


def _where(item: Any) -> str:
    """At which moment of a run, with a blank before."""
    if item.at is None:
        return ""
    return f" at time {item.at.time:g}" if item.at.pulls is None else f" at {item.at.pulls:,} pulls"


def _counts(label: str, item: Any, side: Label) -> dict[int, Number | None]:
    """A count of every replication, at its end or at the moment that is asked for.

    Raises:
        ExpectationError: there is no such count.
    """
    count, records = item.count, side.records
    if item.at is not None:
        pick = partial(at_time, place=item.at.time) if item.at.pulls is None else partial(at_pulls, place=item.at.pulls)
        reached = {one.replication: pick(count, one) for one in side.series}
        return {int(one["replication"]): reached.get(int(one["replication"])) for one in records}
    found: dict[int, Number | None] = {}
    for record in records:
        if count not in record:
            near = difflib.get_close_matches(count, record, n=3) or list(record)
            raise ExpectationError(f"{label} does not count {count!r}; there is {', '.join(near)}.")
        got = record[count]
        found[record["replication"]] = got if isinstance(got, (int, float)) else None
    return found


def _wanted(item: Any, replication: int) -> tuple[str, list[Any]]:
    """An expectation in words, and the tests that a count must pass."""
    words, tests = [], []
    if item.equals is not None:
        equals = item.equals[replication] if isinstance(item.equals, (list, tuple)) else item.equals
        words.append(f"{equals:,}")
        tests.append(lambda got: equal(got, equals))
    if item.at_least is not None:
        words.append(f"at least {item.at_least:,}")
        tests.append(lambda got: got >= item.at_least)
    if item.at_most is not None:
        words.append(f"at most {item.at_most:,}")
        tests.append(lambda got: got <= item.at_most)
    return " and ".join(words), tests


def equal(got: Number, expected: Number) -> bool:
    """Whole numbers exactly, others up to rounding."""
    if float(got).is_integer() and float(expected).is_integer():
        return got == expected
    return math.isclose(got, expected, rel_tol=TOLERANCE)
