"""What labels are compared by where they make different numbers of pulls: no judge prefers who waits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from coband.extensions.evidence.claims.comparisons import Difference
from coband.extensions.evidence.claims.samples import Sample, SampleError
from coband.extensions.evidence.suite.submission import Outcome, Runner
from coband.simulator.analysis.comparison import differences as comparisons
from coband.simulator.analysis.comparison.data import RunComparison
from coband.simulator.analysis.frontier import objectives
from coband.simulator.core.metrics import CORE
from coband.simulator.experiments.runs.expectations import compare
from coband.simulator.experiments.runs.footing import Label, choosable, footing, judged, snapshots, waiting
from coband.simulator.experiments.runs.planner import choose
from coband.simulator.experiments.scenario.document import Tuning
from coband.simulator.experiments.statistics.dominance import standings
from coband.simulator.experiments.store.store import Series
from coband.simulator.metrics import by_name
from tests.experiments.runs.fakes import FakeExpect, FakeScenario

METRICS = by_name(CORE)
LOWER = ("regret", "scalars", "simulated_time", "messages", "uplink_scalars")


class Stored:
    metrics: ClassVar[dict[str, Any]] = {}


RUN = Stored()


@dataclass(frozen=True)
class Fake:
    """A label with some pulls in each replication, whose regret falls with them."""

    label: str
    pulls: int
    rate: float = 1.0
    power: float = 0.5
    run: Any = RUN
    variant: Any = None
    own_scenario: Any = None

    @property
    def records(self) -> dict[int, dict[str, Any]]:
        return {one["replication"]: one for one in self.records_of()}

    @property
    def series(self) -> list[Series]:
        turns = np.arange(1, self.pulls + 1)
        regret = self.rate * turns**self.power
        return [
            Series(r, turns, 40 * turns / self.pulls, regret + 0.01 * r, 3 * turns, None, turns - regret - 0.01 * r)
            for r in range(9)
        ]

    def records_of(self) -> list[dict[str, Any]]:
        found = []
        for one in self.series:
            assert one.reward is not None
            ends = {
                "regret": one.regret[-1],
                "reward": one.reward[-1],
                "simulated_time": one.times[-1] - 0.1 * self.rate,
            }
            counts = dict.fromkeys(("scalars", "messages", "uplink_scalars"), float(one.scalars[-1]))
            found.append({"replication": one.replication, "turns": self.pulls, **ends, **counts})
        return found

    def values(self, key: str) -> dict[int, float]:
        return Label(self.records_of()).values(key)

    @property
    def side(self) -> Label:
        return Label(self.records_of(), lambda: self.series)


WAITS, WORKS = Fake("Waits", 12), Fake("Works", 400)


def ranked(key: str, first: Fake, second: Fake) -> set[str]:
    compared = RunComparison(cast(Any, (RUN,)), ({},), cast(Any, (first, second)), ())
    (found,) = comparisons.differences(compared, METRICS[key])
    ranking = comparisons.ranking(compared, METRICS[key], [found])
    return {str(found.better), *(() if "Undecided" in ranking.sentence else ranking.leaders)}


def expected(key: str, first: Fake, second: Fake) -> set[str]:
    both = {one.label: one for one in (first, second)}
    report: Any = {"results": [{"label": name, "replications": one.records_of()} for name, one in both.items()]}
    claims = [FakeExpect(a, key, less_than=b) for a, b in ((first.label, second.label), (second.label, first.label))]
    scenario: Any = FakeScenario(expect=tuple(claims))
    return {one.label for one in compare(scenario, report, read=lambda name: both[name].series) if one.holds}


def tuned(key: str, first: Fake, second: Fake) -> set[str]:
    values = choosable(key, {0: first.side, 1: second.side}, lambda: False)
    numbers = {number: list(values.get(number, {}).values()) for number in (0, 1)}
    chosen = choose(Tuning(replications=9, on=key), ("A",), numbers).variant
    return {(first, second)[chosen].label} if chosen is not None else set()


def on_the_front(key: str, first: Fake, second: Fake) -> set[str]:
    both = objectives.values([METRICS[key]], {0: first.side, 1: second.side}, lambda: False)
    ready = [number for number in both if both[number]]
    stand = standings([both[number] for number in ready])
    return {(first, second)[n].label for n, one in zip(ready, stand, strict=True) if one.verdict == "frontier"}


def in_the_suite(key: str, first: Fake, second: Fake) -> set[str]:
    tests = {one.label: Outcome(values={"regret": [1.0]}) for one in (first, second)}
    study: Any = type("Study", (), {"variants": [type("Variant", (), {"scenario": FakeScenario()})]})
    Runner._leave_out_waiting([(tests[one.label], one.side) for one in (first, second)], study)
    return {label for label, test in tests.items() if not test.failure}


def claimed(key: str, first: Fake, second: Fake) -> set[str]:
    both = {one.label: [Sample(record, []) for record in one.records_of()] for one in (first, second)}
    claim = Difference(kind="difference", of=key, first=first.label, second=second.label, relation="less")
    with pytest.raises(SampleError, match="Waits: makes fewer than half of the others' pulls"):
        claim.rows(lambda term: both[term.label])
    return set()


def at_the_same_time(key: str, first: Fake, second: Fake) -> set[str]:
    return {one.label for one in snapshots({one.label: one.series for one in (first, second)}) if one.verdict}


JUDGES: Mapping[str, Callable[[str, Fake, Fake], set[str]]] = {
    one.__name__: one for one in (ranked, expected, tuned, on_the_front, in_the_suite, claimed, at_the_same_time)
}


@pytest.mark.parametrize("key", LOWER)
@pytest.mark.parametrize("judge", JUDGES)
def test_who_waits_never_wins(judge: str, key: str) -> None:
    """Twelve pulls cost less of everything than four hundred; whoever comes first."""
    for pair in ((WAITS, WORKS), (WORKS, WAITS)):
        assert "Waits" not in JUDGES[judge](key, *pair)


@pytest.mark.parametrize("judge", ["ranked", "expected", "tuned", "on_the_front"])
def test_regret_is_judged_at_equal_pulls(judge: str) -> None:
    """Over the whole run the better learner has more regret, since it made more pulls."""
    better, worse = Fake("Better", 400), Fake("Worse", 300, 1.1)
    assert min(better.values("regret").values()) > max(worse.values("regret").values())
    assert JUDGES[judge]("regret", better, worse) == {"Better"}
    ground = footing("regret", [better, worse])
    assert (ground.at, ground.pulls, ground.values[0][0]) == (300, (400, 300), pytest.approx(np.sqrt(300)))


def test_a_ranking_judges_all_labels_at_the_same_pulls() -> None:
    """After 200 pulls, which is all that one of them makes, the first has less regret than the second; later more."""
    labels = Fake("First", 400), Fake("Second", 400, 1.76, 0.4), Fake("Third", 200, 2.0)
    compared = RunComparison(cast(Any, (RUN,)), ({},), cast(Any, labels), ())
    found = comparisons.differences(compared, METRICS["regret"])
    assert [one.better for one in found] == ["Second", "First", "Second"]
    ranking = comparisons.ranking(compared, METRICS["regret"], found)
    assert ranking.sentence == "First has the lowest regret at equal pulls (200 on average)."


def test_what_candidates_were_judged_by_is_said() -> None:
    fewer = [WORKS.side, Fake("Fewer", 300).side, Label([])]
    assert judged("regret", fewer, lambda: False) == "regret at equal pulls"
    assert judged("reward", fewer, lambda: False) == "reward over the whole run"
    assert judged("messages", fewer, lambda: False).startswith("messages over the whole run (there is no curve of it)")
    assert judged("regret", fewer, lambda: True) == judged("regret", [WORKS.side] * 2, lambda: False) == ""


def test_nothing_changes_where_pulls_are_equal_or_what_is_judged() -> None:
    one, other = Fake("One", 30), Fake("Other", 30)
    assert footing("regret", [one, other]).values == (one.values("regret"), other.values("regret"))
    assert footing("scalars", [one, WORKS], lambda: True).pulls == ()


@pytest.mark.parametrize(
    ("key", "at", "got"),
    [("turns", {"time": 20.0}, 200), ("simulated_time", {"pulls": 100}, 10.0), ("reward", {"pulls": 401}, None)],
)
def test_a_number_at_a_moment(key: str, at: dict[str, float], got: float | None) -> None:
    from coband.simulator.experiments.scenario.document import Place

    scenario: Any = FakeScenario(expect=(FakeExpect("Works", key, at_least=1, at=Place(**cast(Any, at))),))
    report: Any = {"results": [{"label": "Works", "replications": WORKS.records_of()}]}
    found = compare(scenario, report, read=lambda label: WORKS.series)
    assert [one.got for one in found] == [got] * 9


def test_a_candidate_that_broke_off_changes_nothing_for_the_others() -> None:
    for sides in ({0: Label([]), 1: WAITS.side, 2: WORKS.side}, {0: WORKS.side, 1: WAITS.side, 2: Label([])}):
        (left,) = choosable("regret", sides, lambda: False)
        assert sides[left].values("turns") == WORKS.values("turns")


def test_fewer_pulls_or_replications_at_a_moment_are_not_less() -> None:
    from coband.simulator.experiments.scenario.document import Place

    both = {one.label: one for one in (WAITS, WORKS)}
    for at, word in (
        (Place(time=40.0), "no fewer pulls (12, not 400)"),
        (Place(pulls=100), "which 0 of 9 replications"),
    ):
        scenario: Any = FakeScenario(expect=(FakeExpect("Waits", "regret", less_than="Works", at=at),))
        report: Any = {"results": [{"label": name, "replications": one.records_of()} for name, one in both.items()]}
        (found,) = compare(scenario, report, read=lambda name: both[name].series)
        assert not found.holds
        assert word in str(found.expected)


def test_what_has_no_curve_is_no_reason_to_choose_who_pulls_less() -> None:
    """Whether no run has one, or those of these runs are not stored."""
    assert tuned("uplink_scalars", Fake("Fewer", 300), WORKS) == {"Works"}
    sides = {number: Label(one.records_of()) for number, one in enumerate((Fake("Fewer", 300), WORKS))}
    assert list(choosable("regret", sides, lambda: False)) == [1]
    assert judged("regret", sides.values(), lambda: False).startswith("regret over the whole run")


def test_pulls_are_compared_in_the_replications_that_both_have() -> None:
    """Runs of the second replication and later ones are longer; one label has not finished them."""
    short, both = (Label([{"replication": r, "turns": 100 + 400 * r} for r in range(most)]) for most in (1, 9))
    slower = Label([{"replication": r, "turns": 0.995 * (100 + 400 * r)} for r in range(9)])
    assert waiting([short, both]) == [False, False]
    ground = footing("turns", [short, both, slower])
    assert ground.pulls == (100.0, 100.0, 99.5)
    assert not any(ground.behind(*pair) for pair in permutations(range(3), 2))


def test_a_label_of_which_nothing_has_finished_leaves_others_at_equal_pulls() -> None:
    ground = footing("regret", [Label([]), WORKS, Fake("Fewer", 300)])
    assert (ground.at, ground.pulls) == (300, (0, 400, 300))
    assert not ground.behind(0, 1)


def test_labels_are_compared_at_the_times_of_the_fastest() -> None:
    """One takes a turn every time unit, one every four."""

    def series(pace: float) -> list[Series]:
        turns = np.arange(1, 9)
        return [Series(r, turns, pace * turns + 10 * r, 0.5 * turns, 3 * turns) for r in (0, 1)]

    rows = list(snapshots({"slow": series(4.0), "fast": series(1.0), "none": []}))
    assert [(row.time, row.label) for row in rows] == [
        (time, label) for time in (7.0, 9.0, 11.0, 13.0) for label in ("slow", "fast")
    ]
    last = {row.label: row for row in rows[-2:]}
    # at time 13: fast has taken 8 turns and 3, slow 3 and none
    assert (last["fast"].turns, last["fast"].regret, last["fast"].scalars) == (5.5, 2.75, 16.5)
    assert (last["slow"].turns, last["slow"].scalars) == (1.5, 4.5)
    assert last["slow"].regret_per_turn == pytest.approx(0.5)
