"""Branin and Hartmann-4D: published values, and their maxima by search."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

from coband.simulator.arrays import FloatArray
from coband.simulator.problems.benchmarks import BRANIN_MAXIMUM, HARTMANN_MAXIMUM, branin, hartmann


def searched(function: Callable[[FloatArray], FloatArray], dimension: int, starts: int) -> tuple[float, FloatArray]:
    """The largest value on the unit cube: the best of many random points, then climbed from the best few."""
    points = np.random.default_rng(0).random((200_000, dimension))
    best = points[np.argsort(-function(points))[:starts]]
    ends = [
        minimize(lambda x: -float(function(x)), x, bounds=[(0, 1)] * dimension, options={"ftol": 1e-15, "gtol": 1e-10})
        for x in best
    ]
    top = min(ends, key=lambda end: float(end.fun))
    return -float(top.fun), np.asarray(top.x)


def test_the_largest_branin() -> None:
    value, _ = searched(branin, 2, 10)
    assert value == pytest.approx(BRANIN_MAXIMUM, abs=1e-10)
    assert pytest.approx(1.0474, abs=5e-5) == BRANIN_MAXIMUM
    maximisers = np.array([[5.0 - np.pi, 12.275], [5.0 + np.pi, 2.275], [14.42478, 2.475]]) / 15.0
    np.testing.assert_allclose(branin(maximisers), BRANIN_MAXIMUM, atol=1e-6)


def test_the_largest_hartmann() -> None:
    value, place = searched(hartmann, 4, 10)
    assert value == pytest.approx(HARTMANN_MAXIMUM, abs=1e-10)
    assert pytest.approx(3.1345, abs=5e-5) == HARTMANN_MAXIMUM
    np.testing.assert_allclose(place, [0.1873, 0.1906, 0.5566, 0.2647], atol=4e-3)


def test_branin_in_its_usual_form() -> None:
    """f(u, v) = (v - b u^2 + c u - 6)^2 + 10 (1 - t) cos(u) + 10, of which the normal form subtracts 54.81."""
    x = np.random.default_rng(1).random((50, 2))
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    usual = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    np.testing.assert_allclose(branin(x), -(usual - 54.81) / 51.95, atol=1e-12)


@pytest.mark.parametrize(("function", "dimension"), [(branin, 2), (hartmann, 4)])
def test_normalised(function: Callable[[FloatArray], FloatArray], dimension: int) -> None:
    """Over the cube: mean near 0, deviation near 1."""
    values = function(np.random.default_rng(2).random((100_000, dimension)))
    assert abs(values.mean()) < 0.1
    assert values.std() == pytest.approx(1.0, abs=0.1)
