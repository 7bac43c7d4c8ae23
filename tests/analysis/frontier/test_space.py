"""What a search may try: ranges, lists, declared ranges, and what is wrong with them."""

from pathlib import Path

import pytest

from coband.simulator.analysis.frontier.explorer import explorer
from coband.simulator.analysis.frontier.planner import Budget, BudgetError
from coband.simulator.analysis.frontier.ranges import Between, Listed, parse
from coband.simulator.analysis.frontier.space import Dimension, Space, labels
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.yaml_nodes import Mark
from coband.simulator.scenario_errors import ScenarioError
from tests.analysis.frontier.searches import GRID, search

MARK = Mark("--vary x")


def space(*texts: str) -> Space:
    found = (Dimension(f"p{i}", f"p{i}", (), parse(text, MARK, "p"), MARK) for i, text in enumerate(texts))
    return Space(0, "A", tuple(found))


@pytest.mark.parametrize(
    ("text", "log", "whole"),
    [
        ("0.01..100", True, False),
        ("0.1..0.5", False, False),
        ("0..1", False, True),
        ("1..50", True, True),
        ("0.5..2 log", True, False),
        ("1..1000 linear", False, True),
    ],
)
def test_ranges(text: str, log: bool, whole: bool) -> None:
    found = parse(text, MARK, "p")
    assert isinstance(found, Between)
    assert (found.log, found.whole) == (log, whole)
    assert [value.number for value in found.ends] == [found.low, found.high]


def test_values_between_have_three_digits_and_stay_within() -> None:
    found = parse("0.0123456..9.87654", MARK, "p")
    assert found.value(1.23456).label == "1.23"
    assert found.value(9.8764).number == 9.87654
    assert found.value(0.01234).number == 0.0123456


def test_lists() -> None:
    found = parse("full, delta", MARK, "p")
    assert isinstance(found, Listed)
    assert ([value.label for value in found.values], found.ordered) == (["full", "delta"], False)
    assert parse("[0.1, 1e3]", MARK, "p").value(1).number == 1000.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1..", "is not a range"),
        ("a..b", "is not a range"),
        ("1..2 cubic", "is not a range"),
        ("2..1", "must be below"),
        ("0..1 log", "begins above 0"),
        ("1, 1", "differ"),
        ("[1, ", "--vary x"),
    ],
)
def test_what_is_no_range(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse(text, MARK, "p")


def test_all_points_of_a_space() -> None:
    found = space("1..3", "a,b")
    assert found.size == 6
    assert list(map(labels, found.points())) == [(x, y) for x in ("1", "2", "3") for y in ("a", "b")]
    assert space("0.5..1").size is None
    assert list(map(labels, Space(0, "A").points())) == [()]


def test_a_sampler_proposes_each_point_once_and_the_same_ones_again() -> None:
    pytest.importorskip("optuna", reason="pip install 'coband[frontier]'")
    wide = space("0.01..100", "x,y,z", "0..9")

    def proposed(seed: int) -> list[tuple[str, ...]]:
        found = explorer(wide, 40, 2, seed)
        seen, left = [], 40
        while left and (points := found.ask(left)):
            left -= len(points)
            for point in points:
                number = point[0].number or 0.0
                found.tell(point, None if point[1].label == "z" else (number, 1 / number))
            seen += map(labels, points)
        return seen

    first = proposed(3)
    assert len(set(first)) == 40
    assert proposed(3) == first != proposed(4)


def test_a_small_space_is_used_up() -> None:
    pytest.importorskip("optuna", reason="pip install 'coband[frontier]'")
    found = explorer(space("1..5", "a,b"), 9, 2, 0)
    seen = []
    while points := found.ask(20):
        seen += map(labels, points)
        for point in points:
            found.tell(point, (1.0, 2.0))
    assert len(seen) == len(set(seen)) == 10


def test_budgets_are_shared() -> None:
    spaces = [space("0.01..100"), Space(1, "B"), space("a,b,c,d,e,f"), space("0.1..1")]
    budget = Budget(400, 3, 10)
    found = budget.candidates(spaces)
    assert found[1:3] == [1, 6]
    assert abs(found[0] - found[3]) <= 1
    assert 3 * sum(found) <= 200
    assert budget.finalists(3 * sum(found)) == (400 - 3 * sum(found)) // 17
    with pytest.raises(BudgetError, match="at least 107 are needed"):
        Budget(106, 3, 10).candidates(spaces)
    assert sum(Budget(107, 3, 10).candidates(spaces)) == 13


def test_what_varies(tmp_path: Path) -> None:
    def dimensions(*arguments: str, more: str = "", **request: object) -> dict[str, list[str]]:
        found = search(tmp_path, more, *arguments, jobs=5000, **request)
        return {one.label: [each.path for each in one.dimensions] for one in found.spaces}

    expected = {"Async": ["algorithms.Async.alpha"], "Alone": ["algorithms.Alone.alpha"]}
    assert dimensions(vary=("algorithms.*.alpha=0.1,1",)) == expected
    assert dimensions(vary=("algorithms.*.threshold=0.1,1",)) == {"Async": ["algorithms.Async.threshold"], "Alone": []}
    assert dimensions(vary=("algorithms.Async.kernel.gamma=0.1,1",), only=("Async",)) == {
        "Async": ["algorithms.Async.kernel.gamma"]
    }
    assert len(dimensions(more=GRID)["Async"]) == 3
    assert len(dimensions("algorithms.Async.q=0.1", more=GRID)["Async"]) == 2


def test_declared_ranges_are_searched_where_nothing_else_is_said(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="pip install 'coband[frontier]'")
    (one,) = search(tmp_path, jobs=200, only=("Async",)).spaces
    assert [each.name for each in one.dimensions] == list(Registry.installed().algorithms["async_kernel_ucb"].search)


def test_declared_ranges_are_allowed_values() -> None:
    for name, algorithm in Registry.installed().algorithms.items():
        for parameter, text in algorithm.search.items():
            assert parameter.split(".")[0] in algorithm.config.model_fields, name
            for value in parse(text, MARK, parameter).ends:
                algorithm.config(**{parameter: value.number})


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("problem.noise=0.1,1", "fix this key with --set"),
        ("algorithms.Asink.alpha=0.1,1", "did you mean Async"),
        ("algorithms.Async.alpha", "must be KEY=LOW..HIGH"),
        ("algorithms.Async.alpha=-1..1", "--vary algorithms.Async.alpha=-1..1"),
        ("algorithms.Async.thresold=1,2", "threshold"),
    ],
)
def test_what_cannot_vary(tmp_path: Path, vary: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        search(tmp_path, vary=(vary,))


def test_whole_ends_mean_whole_numbers_only_where_fractions_are_wrong(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="pip install 'coband[frontier]'")
    (one,) = search(tmp_path, vary=("algorithms.Async.alpha=0..10",), only=("Async",), jobs=5000).spaces
    assert isinstance(one.dimensions[0].range, Between)
    assert not one.dimensions[0].range.whole
    (one,) = search(tmp_path, vary=("algorithms.Async.horizon=10..20",), only=("Async",), jobs=5000).spaces
    assert one.size == 11


@pytest.mark.parametrize(
    ("names", "message"),
    [(("regret", "skalars"), "did you mean scalars"), (("regret",), "2 to 4"), (("regret", "regret"), "different")],
)
def test_objectives(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        search(tmp_path, GRID, objectives=names, jobs=5000)


@pytest.mark.parametrize("names", [(), ("regret", "scalars")])
def test_a_number_with_a_limit_is_an_objective(tmp_path: Path, names: tuple[str, ...]) -> None:
    study = search(tmp_path, GRID, objectives=names, limited=("bits", "regret"), jobs=5000)
    assert [metric.name for metric in study.chosen] == ["regret", "scalars", "bits"]


def test_nothing_varies(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="nothing to search"):
        search(tmp_path, only=("Alone",))
    with pytest.raises(ScenarioError, match="no algorithm or label 'Nobody'"):
        search(tmp_path, GRID, only=("Nobody",))
    with pytest.raises(ScenarioError, match="change together"):
        search(tmp_path, "zip: {algorithms.Async.alpha: [1, 2], algorithms.Async.q: [1, 2]}\n")
