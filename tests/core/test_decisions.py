"""The closest decision of a run: what counts as one, and that looking at it changes nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.extensions.conformance.runs import run
from coband.simulator.core.nodes import decisions
from coband.simulator.core.nodes.decisions import ClosestDecision, gaps
from coband.simulator.core.nodes.node import NoBestArm

FINITE = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def naive(scores: list[float]) -> float:
    """The gap of one decision, in plain words."""
    best = max(scores)
    lower = [score for score in scores if score < best and score != -np.inf]
    if not lower:
        return np.inf
    return (best - max(lower)) / max(abs(best), abs(max(lower)))


@given(st.lists(st.lists(FINITE | st.just(-np.inf), min_size=1, max_size=6).filter(lambda row: max(row) > -np.inf)))
def test_the_smallest_gap_of_each_agent(rows: list[list[float]]) -> None:
    closest = ClosestDecision(3)
    expected = [np.inf] * 3
    for number, row in enumerate(rows):
        closest.note(number % 3, np.array(row))
        expected[number % 3] = min(expected[number % 3], naive(row))
    found = closest.of_agents()
    assert found == [float(f"{gap:.1e}") if gap < np.inf else None for gap in expected]


def test_who_has_not_decided_has_no_gap() -> None:
    closest = ClosestDecision(2)
    closest.note(1, np.array([1.0, 2.0]))
    assert closest.of_agents() == [None, 0.5]


@pytest.mark.parametrize("row", [[1.0, 1.0], [np.inf, 1.0], [np.nan, 1.0], [1.0, -np.inf], [0.0, 0.0], [3.0]])
def test_no_gap(row: list[float]) -> None:
    assert gaps(np.array([row])).tolist() == [np.inf]


def test_arrays_may_be_used_again_and_many_decisions_are_looked_at() -> None:
    closest, scores = ClosestDecision(1), np.array([1.0, 2.0])
    for step in range(2 * decisions.ROWS + 3):
        scores[:] = (3.0, 4.0) if step == 7 else (1.0, 3.0)
        closest.note(0, scores)
    scores[:] = 1.0, 1.001
    assert closest.of_agents() == [0.25]


def test_few_scores_are_kept_until_there_are_many_and_many_are_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a long run takes no more memory than a short one."""
    looked: list[int] = []
    monkeypatch.setattr(decisions, "gaps", lambda table: looked.append(len(table)) or gaps(table))
    closest = ClosestDecision(1)
    for _ in range(2 * decisions.ROWS + 3):
        closest.note(0, np.array([1.0, 2.0]))
    assert looked == [decisions.ROWS, decisions.ROWS]
    for _ in range(2):
        closest.note(0, np.zeros(decisions.MANY + 1))
    assert sum(looked) == 2 * decisions.ROWS + 5
    assert looked[-1] == 1


def test_a_run_says_how_close_it_was() -> None:
    found = run("async_kernel_ucb", {}).result
    gaps_found = [gap for gap in found.closest if gap is not None]
    assert found.closest_decision == min(gaps_found) > 0
    assert len(found.closest) == len(found.agents)


def test_agents_that_choose_together_are_noted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    monkeypatch.setattr(
        ClosestDecision, "note_together", lambda self, agents, table: noted.extend(agents), raising=True
    )
    agents = run("async_kernel_ucb", {}).result.agents
    noted.clear()
    chosen = type(agents[0]).best_together(agents[:2], np.array([1.0, 2.0, 5.0, 4.0]), [2, 2])
    assert (chosen, noted) == ([1, 0], [0, 1])


def test_a_score_that_is_not_a_number_is_nobodys_best() -> None:
    agents = run("async_kernel_ucb", {}).result.agents
    with pytest.raises(NoBestArm, match="agent 1 cannot choose an arm: its score of arm 2 is not a number"):
        agents[1].best(np.array([1.0, 7.0, np.nan]))
    with pytest.raises(NoBestArm, match="agent 1 .* arm 0 is not a number"):
        type(agents[0]).best_together(agents[:2], np.array([1.0, 2.0, np.nan, 4.0]), [2, 2])
    assert agents[0].best(np.array([-np.inf, 1.0])) == 1
