"""The oracles of K-armed bandits: first turns by hand, closed forms of message counts, sums that averaging keeps."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.oracles import OracleRun
from tests.oracles.k_armed import KArmed, alone, averaging_matrix, coop_ucb2, ucb1
from tests.oracles.turns import coins, rounds

MEANS = [0.2, 0.5, 0.9]
PATH = [[1], [0, 2], [1]]
EDGES = 2


def cycle(agents: int) -> list[list[int]]:
    return [sorted({(v - 1) % agents, (v + 1) % agents} - {v}) for v in range(agents)]


def complete(agents: int) -> list[list[int]]:
    return [[u for u in range(agents) if u != v] for v in range(agents)]


def play(
    run: Callable[..., OracleRun],
    turns: int = 20,
    adjacency: Any = PATH,
    means: Any = MEANS,
    noise: float = 0.3,
    seed: int = 1,
    schedule: Any = None,
    **config: Any,
) -> OracleRun:
    """Rounds on a path of three unless said otherwise."""
    world = KArmed(means, len(adjacency), turns, seed, noise)
    schedule = schedule or rounds(len(adjacency), turns)
    return run(schedule, world, SimpleNamespace(**config), coins(seed), len(adjacency), adjacency)


def places(run: OracleRun, agent: int) -> list[int]:
    return [place for v, _, place, _, _ in run.pulls if v == agent]


def pulled(run: OracleRun, K: int = 3) -> list[int]:
    return [sum(1 for pull in run.pulls if pull[2] == k) for k in range(K)]


def total(run: OracleRun, name: str = "n") -> list[float]:
    """The sum over the agents of what they know, by arm."""
    return [sum(column) for column in zip(*(state[name] for state in run.state), strict=True)]


@pytest.mark.parametrize("kind", ["metropolis", "max_degree", "neighbours", "n"])
def test_rows_of_averaging_matrices_sum_to_one_and_so_do_columns_but_of_neighbours(kind: str) -> None:
    W = np.array(averaging_matrix([[1, 2, 3], [0], [0, 3], [0, 2]], kind))
    assert np.allclose(W.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(W.sum(axis=0), 1, atol=1e-12) == (kind != "neighbours")
    assert W[2, 3] == pytest.approx(1 / 3 if kind in ("metropolis", "neighbours") else 1 / 4)


def test_ucb1_pulls_each_arm_once_then_the_best_bound_and_a_shared_pull_counts_as_own() -> None:
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="none")
    assert places(run, 0)[:3] == [0, 1, 2] and not run.messages
    first = [reward for v, _, _, reward, _ in run.pulls if v == 0][:3]
    assert places(run, 0)[3] == int(np.argmax(first))  # equal widths
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="all", schedule=[[0], [1], [0], [2]])
    assert [pull[2] for pull in run.pulls] == [0, 1, 2, 0]  # agent 2 heard only of arm 1
    assert run.messages[:2] == [("arm_reward", 0, 1, 2), ("arm_reward", 1, 0, 2)] and run.state[0]["n"] == [1, 1, 1]
    run = play(ucb1.run, alpha=2, sd=0.5, sharing="all", adjacency=complete(3))
    assert len(run.messages) == 2 * 3 * 20 and all(state["n"] == pulled(run) for state in run.state)


def test_agents_alone_count_their_rewards() -> None:
    run = play(alone.thompson_bernoulli, noise=0.0)
    a, b = total(run, "a"), total(run, "b")
    assert [x + y - 6 for x, y in zip(a, b, strict=True)] == pulled(run)
    assert sum(a) - 9 == sum(pull[3] for pull in run.pulls)
    assert play(alone.epsilon_greedy, epsilon=0.0).pulls[-1][2] == 2
    run = play(alone.epsilon_greedy, 3000, epsilon="decay", c=5, d=0.4)
    assert total(run) == pulled(run)
    explored = sum(min(1, 5 * 3 / (0.4**2 * t)) for t in range(1, 3001))
    assert 0.8 * explored < pulled(run)[0] < 1.2 * explored  # a third of the draws of three agents


def test_coop_ucb2_averages_counts_and_keeps_their_sum() -> None:
    config = {"sigma": 0.5, "eta": 2, "gamma": 2.9, "weights": "max_degree", "missing": "own"}
    run = play(coop_ucb2.run, 40, **config)
    assert np.allclose(total(run), pulled(run), rtol=0, atol=1e-9)
    assert len(run.messages) == 2 * EDGES * 40 and run.downlink == 4 * EDGES * 3 * 40
    assert all(places(run, v)[:3] == [0, 1, 2] for v in range(3))
    for missing, count in {"own": 10 / 9, "last": 29 / 27, "reweigh": 7 / 6}.items():
        run = play(coop_ucb2.run, schedule=[[0], [1], [1]], **{**config, "missing": missing})
        assert run.state[0]["n"][0] == pytest.approx(count)
