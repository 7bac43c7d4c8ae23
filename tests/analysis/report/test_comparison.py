from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from coband.simulator.analysis.comparison import data, tables
from coband.simulator.analysis.comparison import differences as comparisons
from coband.simulator.analysis.comparison.data import Contender, RunComparison
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics import evidence
from coband.simulator.experiments.store.store import open_run
from coband.simulator.metrics import Metric
from tests.analysis.traces import runs

REGRET = Metric("regret", "reward", "regret of all pulls", better="lower")
ACCURACY = Metric("accuracy", "", "share of right answers", better="higher")


class FakeContender(Contender):
    def values(self, key: str) -> dict[int, float]:
        return {} if key == "turns" else dict(enumerate(self.given))

    given: tuple[float, ...]


def compared(scenarios: tuple[dict[str, Any], ...] = ({},), **regrets: list[float]) -> RunComparison:
    """Contenders by name; ``other_...`` belong to a second run when there are two scenarios."""
    runs: Any = tuple(Path(str(number)) for number in range(len(scenarios)))
    contenders = []
    for name, values in regrets.items():
        contender = FakeContender(name, name, "fake", runs[-1] if name.startswith("other") else runs[0])
        object.__setattr__(contender, "given", tuple(values))
        contenders.append(contender)
    return RunComparison(runs, scenarios, tuple(contenders), ())


def sentence(comparison: RunComparison) -> str:
    found = comparisons.differences(comparison, REGRET)
    return comparisons.ranking(comparison, REGRET, found).sentence


def test_differences_are_paired_in_one_world() -> None:
    (found,) = comparisons.differences(compared(a=[101.0, 203.0, 302.0], b=[100.0, 200.0, 300.0]), REGRET)
    expected = statistics.paired_difference([101.0, 203.0, 302.0], [100.0, 200.0, 300.0])
    assert (found.paired, found.count, found.mean, found.student) == (True, 3, 2.0, expected.interval)
    assert found.relative == pytest.approx(0.01)
    assert found.verdict == "undecided"  # three pairs: the t interval is from -0.5 to 4.5


class Unordered(FakeContender):
    """A contender whose results came in another order, and not all of them."""

    came: tuple[int, ...]

    def values(self, key: str) -> dict[int, float]:
        return {} if key == "turns" else {number: self.given[number] for number in self.came}


@pytest.mark.parametrize("scenarios", [({"seed": 1},), ({"seed": 1}, {"seed": 1})])
def test_differences_are_paired_by_replication_whatever_came_first(scenarios: tuple[dict[str, Any], ...]) -> None:
    """Worlds differ by much more than the labels, so that pairs of other replications give another interval."""
    runs: Any = tuple(Path(str(number)) for number in range(len(scenarios)))
    given = {"a": ((7, 2, 0, 5, 1, 3, 4, 6, 9), 1.0), "b": ((1, 2, 3, 4, 5, 6, 7, 8, 0), 0.0)}
    contenders = []
    for run, (name, (came, more)) in zip((runs[0], runs[-1]), given.items(), strict=True):
        contender = Unordered(name, name, "fake", run)
        object.__setattr__(
            contender, "given", tuple(100.0 * number + more * (1 + 0.1 * number) for number in range(10))
        )
        object.__setattr__(contender, "came", came)
        contenders.append(contender)
    (found,) = comparisons.differences(RunComparison(runs, scenarios, tuple(contenders), ()), REGRET)
    common = [1.0 + 0.1 * number for number in range(8)]
    expected = statistics.estimate(common)
    assert (found.paired, found.count) == (True, 8)
    assert found.mean == pytest.approx(expected.mean)
    assert found.student == pytest.approx(expected.interval)
    assert 1.0 < found.bootstrap[0] < found.bootstrap[1] < 1.7
    assert found.verdict == "b lower"


def test_the_bootstrap_needs_eight_pairs() -> None:
    lower, higher = [101.0, 203.0, 302.0, 401.0], [100.0, 200.0, 300.0, 400.0]
    (found,) = comparisons.differences(compared(a=lower * 2, b=higher * 2), REGRET)
    assert found.count == comparisons.MIN_BOOTSTRAP == 8
    assert 1.0 <= found.bootstrap[0] < found.mean < found.bootstrap[1] <= 3.0
    assert found.verdict == "b lower"
    (fewer,) = comparisons.differences(compared(a=(lower * 2)[:7], b=(higher * 2)[:7]), REGRET)
    assert (fewer.count, fewer.bootstrap, fewer.verdict) == (7, None, "b lower")
    assert "needs 8 pairs" in tables._row(fewer)  # said in place of the interval
    (single,) = comparisons.differences(compared(a=[1.0], b=[2.0]), REGRET)
    assert "1 pair" in tables._row(single)
    worlds = ({"seed": 1}, {"seed": 2})
    (apart,) = comparisons.differences(compared(worlds, a=lower, other=higher * 2), REGRET)
    assert (apart.paired, apart.count, apart.bootstrap) == (False, 4, None)


def test_differences_are_unpaired_between_worlds() -> None:
    worlds = ({"seed": 1, "problem": {"noise": 0.1}}, {"seed": 2, "problem": {"noise": 0.1}})
    comparison = compared(worlds, a=[101.0, 203.0, 302.0], other=[100.0, 200.0, 300.0])
    (found,) = comparisons.differences(comparison, REGRET)
    assert not found.paired
    assert found.student == statistics.unpaired_difference([101.0, 203.0, 302.0], [100.0, 200.0, 300.0]).interval
    assert comparison.why_unpaired(*comparison.contenders) == ("seed",)


def test_verdicts_need_both_intervals() -> None:
    (found,) = comparisons.differences(compared(a=[1.0, 1.1, 0.9, 1.0], b=[2.0, 2.1, 2.0, 1.9]), REGRET)
    assert found.verdict == "a lower"
    (found,) = comparisons.differences(compared(a=[1.0, 2.0], b=[1.0, 2.0]), REGRET)
    assert found.verdict == "equal"
    (found,) = comparisons.differences(compared(a=[1.0], b=[2.0]), REGRET)
    assert (found.student, found.bootstrap) == (None, None)
    assert found.verdict == "one replication: no statement about chance"


def test_turning_a_difference_around() -> None:
    found = comparisons.differences(compared(a=[2.0, 4.0, 6.0], b=[1.0, 2.0, 4.0], c=[1.0, 1.0, 1.0]), REGRET)
    turned = comparisons.against(found, "a")
    assert [(one.first, one.second) for one in turned] == [("b", "a"), ("c", "a")]
    (direct,) = comparisons.differences(compared(b=[1.0, 2.0, 4.0], a=[2.0, 4.0, 6.0]), REGRET)
    expected = (direct.mean, pytest.approx(direct.relative), pytest.approx(direct.student))
    assert (turned[0].mean, turned[0].relative, turned[0].student) == expected
    nothing = comparisons.differences(compared(a=[2.0, 4.0, 6.0], b=[0.0, 0.0, 0.0]), REGRET)
    (less,) = comparisons.against(nothing, "a")
    assert (less.mean, less.relative) == (-4.0, -1.0)


@pytest.mark.parametrize(
    ("regrets", "words"),
    [
        ({"a": [1.0, 1.1, 0.9], "b": [9.0, 9.1, 9.2]}, "a has the lowest regret."),
        (
            {"a": [1.0, 5.0, 9.0], "b": [2.0, 5.0, 9.5]},
            "Undecided: a has the lowest mean, but no difference from it is certain.",
        ),
        (
            {"a": [1.0, 5.0, 9.0], "b": [1.1, 5.2, 8.8], "c": [90.0, 94.1, 98.0]},
            "a has the lowest mean, but is not told apart from b with all pairs judged at once.",
        ),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, "All are equal."),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [8.0, 9.0]}, "a and b share the lowest mean."),
        ({"a": [1.0], "b": [2.0]}, "a has the lowest mean, in one replication: that says nothing about chance."),
        ({"a": [1.0]}, "a is alone."),
    ],
)
def test_who_wins_in_words(regrets: dict[str, list[float]], words: str) -> None:
    assert sentence(compared(**regrets)) == words


def test_the_winner_is_judged_at_a_level_for_all_pairs() -> None:
    rng = np.random.default_rng(0)
    values = {f"x{number}": rng.normal(size=6).tolist() for number in range(5)}
    found = comparisons.differences(compared(**values), REGRET)
    for one in found:
        assert one.student is not None
        assert one.strict is not None
        assert one.strict == statistics.paired_difference(values[one.first], values[one.second], 0.995).interval


def test_a_ranking_takes_one_interval_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many labels each pair's bootstrap takes longer than all else of a report."""
    bootstrap = Mock(wraps=comparisons._bootstrap)
    monkeypatch.setattr(comparisons, "_bootstrap", bootstrap)
    comparison = compared(**{f"x{number}": [number + place / 9 for place in range(9)] for number in range(4)})
    found = comparisons.differences(comparison, REGRET)
    assert comparisons.ranking(comparison, REGRET, found).sentence == "x0 has the lowest regret."
    assert bootstrap.call_count == 0
    assert [one.verdict for one in comparisons.against(found, "x3")] == [f"x{number} lower" for number in range(3)]
    assert bootstrap.call_count == 3


def test_more_can_be_better() -> None:
    comparison = compared(a=[1.0, 1.1, 0.9, 1.0], b=[2.0, 2.1, 2.0, 1.9])
    (found,) = comparisons.differences(comparison, ACCURACY)
    assert (found.verdict, found.better, found.mean) == ("b higher", "b", pytest.approx(-1.0))
    ranking = comparisons.ranking(comparison, ACCURACY, [found])
    assert [label for label, _ in ranking.order] == ["b", "a"]
    assert (ranking.leaders, ranking.sentence) == (("b",), "b has the highest accuracy.")
    level = compared(a=[1.0, 2.0, 3.0], b=[1.1, 1.8, 3.3])
    unsettled = comparisons.ranking(level, ACCURACY, comparisons.differences(level, ACCURACY))
    assert unsettled.sentence == "Undecided: b has the highest mean, but no difference from it is certain."


def test_after_an_early_stop_the_confidence_sequence_decides() -> None:
    """A t interval that just excludes 0 is not a verdict where one could have looked at every replication."""
    close = {"a": [1.0, 1.2, 0.9, 1.1, 1.0], "b": [1.2, 1.3, 1.1, 1.15, 1.4]}
    (planned,) = comparisons.differences(compared(**close), REGRET)
    (early,) = comparisons.differences(compared(({"until": {"on": "regret"}},), **close), REGRET)
    gaps = np.subtract(close["a"], close["b"]).tolist()
    assert planned.student == early.student
    assert planned.any_time == early.any_time == evidence.confidence_sequence(gaps)
    assert early.any_time[1] > 0 > early.student[1]  # type: ignore[index]
    assert (planned.verdict, early.verdict) == ("a lower", "undecided")
    both = np.exp([float(one) for one in evidence.mean_processes(np.array(gaps))])
    assert planned.e_value == early.e_value == pytest.approx(both.mean())
    (clear,) = comparisons.differences(
        compared(({"until": {}},), a=[1.0 + x / 99 for x in range(9)], b=[2.0] * 9), REGRET
    )
    assert (clear.verdict, clear.is_certain("a")) == ("a lower", True)
    (equal,) = comparisons.differences(compared(a=[1.0, 2.0], b=[1.0, 2.0]), REGRET)
    assert (equal.e_value, equal.verdict) == (0.0, "equal")


@pytest.mark.parametrize("kinds", [("linear", "pure_exploration"), ("pure_exploration", "linear")])
def test_the_aim_is_that_of_the_problems_that_labels_face(
    kinds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sweep over problems, those of an environment, and not that of the run's first point."""
    monkeypatch.setattr(FakeContender, "records", {0: {"error": 0.0}})
    monkeypatch.setattr(RunComparison, "metrics", {"error": Metric("error", "0 or 1", "wrong", better="lower")})
    comparison = compared(({"problem": {"kind": kinds[0]}},), a=[1.0], b=[1.0])
    for one, kind in zip(comparison.contenders, kinds, strict=True):
        scenario = {"problem": {"kind": kind}}
        object.__setattr__(one, "variant", SimpleNamespace(faced={"kind": kind}, scenario=lambda own=scenario: own))
        assert replace(comparison, contenders=(one,)).stops_itself() == (kind == "pure_exploration")
    assert comparison.aim == "regret"


def test_after_an_early_stop_nothing_decides_between_worlds() -> None:
    """There is no confidence sequence of a difference between replications that are not paired."""
    for until in ({}, {"until": {"on": "regret"}}):
        comparison = compared(({"seed": 1, **until}, {"seed": 2}), a=[1.0, 1.1, 1.2], other=[9.0, 9.1, 9.2])
        (found,) = comparisons.differences(comparison, REGRET)
        assert (found.better is None, found.is_certain("a")) == (bool(until), not until)
        assert found.verdict.startswith("undecided: until: ended a run" if until else "a lower")
        assert ("at any time decides" in tables._caption([found])) == bool(until)


def test_labels_are_not_compared_on_an_aim_that_a_result_lacks(tmp_path: Path) -> None:
    """As when the number of a problem is not finite."""
    runs.perform(runs.TASKS, tmp_path / "run")
    with open_run(tmp_path / "run") as run:
        assert data.load([run]).aim == "error"
        (job,) = run.jobs
        job.record["error"] = None
        assert data.load([run]).aim == "regret"
