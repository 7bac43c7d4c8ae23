"""How many replications are added."""

from types import SimpleNamespace
from typing import Any

import pytest

from coband.simulator.experiments.runs.planner import (
    FRESH,
    Tally,
    Task,
    all_of,
    choose,
    more,
    sent,
    still_wide,
    tuned,
)
from coband.simulator.experiments.scenario.document import Tuning, Until


@pytest.mark.parametrize(
    ("rule", "values", "done", "added"),
    [
        ({"half_width": 100.0}, [1.0, 2.0, 3.0], 3, 0),
        ({"half_width": 0.001}, [1.0, 2.0, 3.0], 3, 3),  # at most doubled
        ({"half_width": 0.001, "max_replications": 4}, [1.0, 2.0, 3.0], 3, 1),
        ({"half_width": 0.001, "max_replications": 3}, [1.0, 2.0, 3.0], 3, 0),
        ({"half_width": 9.4}, [1.0, 2.0, 3.0], 3, 1),  # half-width 16.36 / sqrt(3) = 9.445: 3.03 are needed
        ({"relative": 0.5}, [5.0], 1, 1),
        ({"half_width": 1.0}, [], 3, 0),  # all have failed
    ],
)
def test_more(rule: dict[str, float], values: list[float], done: int, added: int) -> None:
    assert more(Until.model_validate(rule), values, done) == added


def test_shares_that_were_all_alike_are_not_known() -> None:
    """Of 0 errors in n runs the share is not known to be 0: with 3 nothing is, with 300 it is below .03."""
    rule = Until.model_validate({"on": "error", "half_width": 0.02, "max_replications": 1000})
    assert more(rule, [0.0, 0.0, 0.0], 3, proportion=True) == 3
    assert more(rule, [0.0] * 300, 300, proportion=True) == 0
    assert more(rule, [1.0, 0.0] * 150, 300, proportion=True) > 0


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"half_width": 9.0, "max_replications": 3}, "known to ± 9.44 after 3 replications"),
        ({"relative": 0.5, "max_replications": 3}, "it asks for ± 1"),
        ({"half_width": 10.0, "max_replications": 3}, ""),
        ({"half_width": 9.0}, ""),  # more will follow
    ],
)
def test_a_mean_that_stays_unknown_is_told(rule: dict[str, float], said: str) -> None:
    until = Until.model_validate(rule)
    assert still_wide(until, [], 3) == ""
    sentence = still_wide(until, [1.0, 2.0, 3.0], 3)
    assert said in sentence
    assert bool(said) == bool(sentence)
    assert still_wide(until, [1.0, 2.0], 2) == ""


def test_a_task_that_is_asked_for_twice_runs_once() -> None:
    task, planner = Task(0, FRESH, 0), all_of([Task(0, FRESH, 0)] * 2)
    assert list(next(planner)) == [task]
    with pytest.raises(StopIteration) as ended:
        planner.send((task, {"replication": 0}))
    assert ended.value.value == [{"replication": 0}]


def test_candidates_are_judged_as_their_own_problem_says() -> None:
    """In a grid of problems, where algorithms on the last one decide themselves when to stop."""
    problems = [SimpleNamespace(kind=kind) for kind in ("contextual", "pure_exploration") for _ in range(2)]
    variants: Any = [
        SimpleNamespace(number=number, entry="A", context=("A", one.kind), scenario=SimpleNamespace(problem=one))
        for number, one in enumerate(problems)
    ]
    tally = Tally(variants, ["A"])
    planner = tuned(variants, Tuning(replications=1, on="scalars"), tally, [])
    tasks = list(next(planner))
    for task in tasks:
        turns, scalars = (100, 250)[task.variant % 2], (1.0, 2.0)[task.variant % 2]
        tally.take(task, {"replication": task.replication, "turns": turns, "scalars": scalars})
        sent(planner, (task, None))
    assert [choice.variant for choice in tally.choices] == [1, 2]


def test_replications_that_broke_off_are_some_of_the_most() -> None:
    until = Until.model_validate({"half_width": 9.0, "max_replications": 4})
    told = "after 3 replications and 1 that broke off, the most that until: allows"
    assert still_wide(until, [1.0, 2.0, 3.0], 4) == f"regret is known to ± 9.44 {told}; it asks for ± 9"
    assert still_wide(until, [1.0, 2.0], 4).startswith("regret has no interval after 2 replications and 2 that broke")


def test_a_candidate_with_a_failed_replication_is_none() -> None:
    from coband.simulator.experiments.scenario.document import Tuning

    found = {0: [1.0], 1: [3.0, 2.0], 2: [2.5, 2.5]}
    assert choose(Tuning(replications=2), ("A",), found).variant == 1
    assert choose(Tuning(replications=3), ("A",), found).variant is None
