"""Dictionaries of growing Nystrom posteriors: the points of a greedy choice in plain loops, and the same moments."""

from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.graphs import run, world
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian, Kernel, Linear, Matern
from coband.simulator.maths.posteriors.growing_nystrom import GrowingNystrom, greedy_choice, relevance_of
from coband.simulator.maths.posteriors.observations import Observations
from tests.every import every
from tests.everyday import everyday
from tests.oracles import nystrom_choice as oracle
from tests.oracles.kernels import plain
from tests.oracles.posterior import Dictionary, nystroem, statistics

LAM = 0.7
KERNELS: list[Any] = [Gaussian(gamma=0.8), Matern(nu=1.5), Linear(bias=0.3)]


def relevance(P: FloatArray) -> FloatArray:
    """Some function of points with values in [-1, 1]."""
    return np.cos(3.0 * P[:, 0])


@every("seed", everyday(3, range(6)))
@every("kernel", KERNELS, ids=repr)
def test_the_posterior_on_a_chosen_dictionary_is_the_plain_one(kernel: Kernel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, n = int(rng.integers(1, 8)), 70
    X, y, arms = rng.uniform(-1, 1, (n, 3)), rng.standard_normal(n), rng.uniform(-1, 1, (6, 3))
    X[30:33] = X[3:6]
    weighted = relevance if seed % 2 else None
    rho = relevance(X).tolist() if weighted else [1.0] * n
    posterior, known = GrowingNystrom(kernel, LAM, size, weighted), 0
    while known < n:
        step = int(rng.integers(1, 15))
        posterior.update(Observations(X[known : known + step], y[known : known + step]))
        known = min(n, known + step)
        chosen = oracle.dictionary(kernel, list(X[:known]), rho, size)
        assert posterior.dictionary.points.tolist() == X[chosen].tolist()
        plainly = statistics(list(zip(X[:known], y[:known].tolist(), strict=True)), Dictionary(X[chosen], kernel))
        mean, deviation = nystroem(arms, plainly, LAM)
        found, variance = posterior.predict(arms)
        assert found == pytest.approx(mean, abs=1e-7)
        assert variance == pytest.approx(deviation**2, abs=1e-7)


def test_no_point_comes_in_twice_and_none_that_says_nothing() -> None:
    rng = np.random.default_rng(0)
    few = rng.uniform(-1, 1, (5, 2))
    P = few[rng.integers(5, size=40)]
    chosen = greedy_choice(Gaussian(gamma=1.0), P, np.ones(40), 12)
    assert len({P[i].tobytes() for i in chosen}) == len(chosen) == 5
    irrelevant = np.where(np.arange(40) % 2, 1.0, 0.0)
    assert all(i % 2 for i in greedy_choice(Gaussian(gamma=1.0), rng.uniform(-1, 1, (40, 2)), irrelevant, 30))


def test_points_that_all_matter_little_are_chosen_as_if_they_mattered_much() -> None:
    P = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    chosen = [greedy_choice(Gaussian(gamma=1.0), P, np.full(20, rho), 6).tolist() for rho in (1.0, 1e-6)]
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == 6


def test_points_of_zeros_make_no_dictionary() -> None:
    posterior = GrowingNystrom(Linear(), LAM, 2)
    posterior.update(Observations(np.zeros((5, 3)), np.ones(5)))
    mean, variance = posterior.predict(np.ones((1, 3)))
    assert (mean.tolist(), variance.tolist(), posterior.log_det) == ([0.0], [pytest.approx(3.0 / LAM)], 0.0)


def test_relevance_is_the_correlation_with_the_same_arm_of_the_own_task() -> None:
    rng, kernel = np.random.default_rng(1), Linear(bias=0.2)
    P, Q = rng.uniform(-1, 1, (150, 3)), rng.uniform(-1, 1, (150, 3))
    P[7] = 0.0
    expected = [(p @ q + 0.2) / np.sqrt((p @ p + 0.2) * (q @ q + 0.2)) for p, q in zip(P, Q, strict=True)]
    assert relevance_of(kernel, P, Q) == pytest.approx(expected)
    assert relevance_of(Linear(), P, Q)[7] == 0.0


@pytest.mark.parametrize("composition", ["product", "sum"])
@pytest.mark.parametrize("estimated", [False, True])
def test_agents_choose_points_of_own_and_similar_tasks(composition: str, estimated: bool) -> None:
    """Everybody hears of everything in the next trial, so what an agent has learnt is all pulls, by trial and agent."""
    gaussian, matern = {"kind": "gaussian", "gamma": 0.9}, {"kind": "matern", "nu": 1.5, "length_scale": 0.8}
    problem = {
        "kind": "network",
        "arms": {"kind": "ball", "dimension": 2, "count": 5},
        "contexts": {"kind": "ball", "dimension": 2},
        "kernel": matern,
        "network_kernel": gaussian,
        "shift": 0.5,
    }
    config: dict[str, Any] = {
        "kernel": matern,
        "network_kernel": {"kind": "mmd", "refresh": 3} if estimated else gaussian,
        "composition": composition,
        "posterior": {"kind": "nystrom", "size": 7},
    }
    simulated = run(
        "eager_kernel_ucb",
        config,
        problem,
        topology="complete",
        agents=4,
        schedule={"kind": "rounds", "turns": 9},
        seed=3,
    )
    assert simulated.engine.graph is not None
    truth = world(problem, 3, simulated.engine.graph)
    offered = {(of, trial): truth.arms(of, trial).copy() for trial in range(1, 10) for of in range(4)}
    agents: Any = simulated.engine.agents
    for v, agent in enumerate(agents):
        agent._learn()
        tasks: FloatArray = agent.knowledge._similarities.table if estimated else plain(gaussian)(*[truth.contexts] * 2)

        def kernel(P: FloatArray, Q: FloatArray, tasks: FloatArray = tasks) -> FloatArray:
            K_z = tasks[np.ix_(P[:, 0].astype(int), Q[:, 0].astype(int))]
            K_x = plain(matern)(P[:, 1:], Q[:, 1:])
            return K_z * K_x if composition == "product" else K_z + K_x

        pulls = sorted(simulated.pulls, key=lambda pull: (pull[1], pull[0]))
        points = [np.array([of, *offered[of, trial][arm]]) for of, trial, arm, _ in pulls]
        rewards = [reward for *_, reward in pulls]
        twins = [np.array([v, *point[1:]]) for point in points]
        rho = [
            kernel(p[None], q[None])[0, 0] / np.sqrt(kernel(p[None], p[None])[0, 0] * kernel(q[None], q[None])[0, 0])
            for p, q in zip(points, twins, strict=True)
        ]
        chosen = oracle.dictionary(kernel, points, rho, 7)
        kept = agent.knowledge.posterior.posterior.dictionary.points
        assert kept[:, -2:].tolist() == [points[i][1:].tolist() for i in chosen]
        arms = np.random.default_rng(4).uniform(-0.6, 0.6, (5, 2))
        plainly = statistics(list(zip(points, rewards, strict=True)), Dictionary([points[i] for i in chosen], kernel))
        at = np.column_stack([np.full(5, v), arms])
        mean, deviation = nystroem(at, plainly, 1.0)
        found, variance = agent.knowledge.predict(arms)
        assert found == pytest.approx(mean, abs=1e-7)
        assert variance == pytest.approx(deviation**2, abs=1e-7)
