from typing import Any

import numpy as np
import pytest

from coband.simulator.problems.contextual import ContextualProblem
from coband.simulator.problems.rkhs import RkhsFunction
from tests.problems.helpers import BALL, POOL, named_streams, problem

KERNELS = [
    {"kind": "gaussian", "gamma": 0.1},
    {"kind": "gaussian", "length_scale": 0.2},
    {"kind": "matern"},
    {"kind": "linear"},
    {"kind": "polynomial"},
]


def draw(config: ContextualProblem) -> RkhsFunction:
    return config.reward.draw(np.random.default_rng(0), config.arms.build(named_streams()))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("norm", [1.0, 2.5])
def test_norm_by_the_double_sum(kernel: dict[str, Any], norm: float) -> None:
    """||f||_k^2 = sum_ij a_i a_j k(c_i, c_j), one kernel value at a time."""
    f = draw(problem(reward={"kind": "rkhs", "kernel": kernel, "norm": norm, "centres": 9}))
    pairs = [
        a * b * f.kernel(c[None], d[None]).item()
        for a, c in zip(f.weights, f.centres, strict=True)
        for b, d in zip(f.weights, f.centres, strict=True)
    ]
    assert sum(pairs) == pytest.approx(norm**2, rel=1e-9)
    assert f.norm == pytest.approx(norm, rel=1e-9)


def test_values_by_the_sum_over_centres() -> None:
    f = draw(problem(reward={"kind": "rkhs", "kernel": KERNELS[0], "centres": 6}))
    arms = np.random.default_rng(1).standard_normal((2, 3, 5))
    for turn, values in zip(arms, f(arms), strict=True):
        for x, value in zip(turn, values, strict=True):
            terms = [a * np.exp(-0.1 * np.sum((c - x) ** 2)) for a, c in zip(f.weights, f.centres, strict=True)]
            assert value == pytest.approx(sum(terms), rel=1e-9, abs=1e-12)


def test_the_norm_bounds_the_values() -> None:
    f = draw(problem(reward={"kind": "rkhs", "kernel": KERNELS[0], "norm": 0.7}))
    assert np.abs(f(np.random.default_rng(1).standard_normal((1, 500, 5)))).max() <= 0.7


def test_centres_come_from_the_pool() -> None:
    config = problem(arms=POOL, reward={"kind": "rkhs", "kernel": KERNELS[0], "centres": 12})
    pool = config.arms.model_copy(update={"count": None}).build(named_streams()).fixed
    assert sorted(draw(config).centres.tolist()) == sorted(pool.tolist())


def test_centres_come_from_the_ball() -> None:
    f = draw(problem(arms={**BALL, "radius": 3.0}, reward={"kind": "rkhs", "kernel": KERNELS[0], "centres": 200}))
    norms = np.linalg.norm(f.centres, axis=1)
    assert 2.5 < norms.max() <= 3.0


def test_description_recovers_the_function() -> None:
    f = draw(problem(reward={"kind": "rkhs", "kernel": KERNELS[0], "centres": 4}))
    truth = f.describe()
    again = RkhsFunction(f.kernel, np.array(truth["centres"]), np.array(truth["weights"]))
    arms = np.random.default_rng(1).standard_normal((1, 10, 5))
    assert np.array_equal(f(arms), again(arms))


def test_a_function_that_vanishes_cannot_be_scaled() -> None:
    config = problem(
        arms={"kind": "pool", "points": [[0.0, 0.0]]}, reward={"kind": "rkhs", "kernel": {"kind": "linear"}}
    )
    with pytest.raises(ValueError, match=r"^norm\(=1.0\) is out of reach: Linear\(.*\) vanishes on the arms' domain"):
        draw(config)
