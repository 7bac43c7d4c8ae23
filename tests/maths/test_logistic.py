"""Logistic regression: projection against a general solver, gradients against differences, descent to its bound."""

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from coband.simulator.maths.logistic import (
    STEEPEST,
    AcceleratedGradient,
    Smoothness,
    flattest,
    loss_gradient,
    newton_step,
    project,
)
from coband.simulator.scenario_errors import BrokenOff
from tests.every import every


def random_inverse(rng: np.random.Generator, d: int, spread: float) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    inverse: np.ndarray = Q @ np.diag(np.geomspace(1.0, 1.0 / spread, d)) @ Q.T
    return inverse


@every("case", range(12))
def test_projection_is_that_of_a_general_solver(case: int) -> None:
    rng = np.random.default_rng(case)
    d, radius = 1 + case % 6, float(rng.uniform(0.2, 2.0))
    inverse = random_inverse(rng, d, float(rng.choice([1.0, 30.0, 1000.0])))
    theta = rng.standard_normal(d)
    theta *= radius * float(rng.uniform(1.01, 5.0)) / np.linalg.norm(theta)
    v: Any = cp.Variable(d)
    root = np.linalg.cholesky(np.linalg.inv(inverse))
    cp.Problem(cp.Minimize(cp.sum_squares(root.T @ (v - theta))), [cp.norm(v) <= radius]).solve(solver=cp.CLARABEL)
    projected = project(theta, inverse, radius)
    assert np.linalg.norm(projected) == pytest.approx(radius, rel=1e-12)
    assert projected == pytest.approx(v.value, abs=5e-3 * radius)  # the solver's accuracy, along flat directions
    assert np.linalg.norm(root.T @ (projected - theta)) <= np.linalg.norm(root.T @ (v.value - theta)) * (1 + 1e-6)


@every("distance", [1.0 + 1e-15, 1.0 + 1e-9, 1.5, 1e6])
@every("spread", [1.0, 1e3, 1e6])
def test_projection_satisfies_its_conditions(distance: float, spread: float) -> None:
    """On the sphere, and A (theta - v) is a non-negative multiple of v."""
    rng = np.random.default_rng(7)
    inverse = random_inverse(rng, 5, spread)
    theta = rng.standard_normal(5)
    theta *= distance / np.linalg.norm(theta)
    v = project(theta, inverse, 1.0)
    assert np.linalg.norm(v) == pytest.approx(1.0, rel=1e-12)
    normal = inverse @ v  # theta - v = nu A^(-1) v
    nu = float((theta - v) @ normal / (normal @ normal))
    assert nu >= -1e-9
    assert theta - v == pytest.approx(nu * normal, abs=1e-9 * distance)


def test_points_of_the_ball_stay() -> None:
    theta = np.array([0.6, 0.8])
    assert project(theta, np.diag([1.0, 5.0]), 1.0) is theta


def test_the_link_is_flattest_at_the_rim() -> None:
    for radius in (2.0, 30.0, 40.0, 200.0):  # from 37 on 1 - mu(S) is 0 in floating point
        z = np.linspace(-radius, radius, 4001)
        derivative = np.exp(-z) / (1 + np.exp(-z)) ** 2
        assert flattest(radius) == pytest.approx(derivative[z > 0].min(), rel=1e-12)
    assert pytest.approx(derivative.max()) == STEEPEST


def loss(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    z = X @ theta
    return float((np.log1p(np.exp(z)) - y * z).sum())


def test_gradients_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    X, y, theta = rng.standard_normal((9, 4)), rng.uniform(-0.3, 1.3, 9), rng.standard_normal(4)
    assert loss_gradient(X, y, theta) == pytest.approx(approx_fprime(theta, loss, 1e-7, X, y), abs=1e-5)
    assert loss_gradient(np.empty((0, 4)), np.empty(0), theta) == pytest.approx(np.zeros(4))
    x, A = X[0], np.eye(4) + X.T @ X
    z = float(x @ theta)
    expected = theta - np.linalg.inv(A) @ loss_gradient(X[:1], y[:1], theta) / 0.2
    assert newton_step(theta, np.linalg.solve(A, x), z, float(y[0]), 0.2) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("smoothness", ["unit_ball", "data"])
def test_descent_ends_within_its_bound_of_the_minimum(smoothness: Smoothness, scale: float) -> None:
    rng = np.random.default_rng(1)
    n, d, lam = 200, 5, 0.5
    X = rng.standard_normal((n, d))
    X *= scale * rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    y = (rng.random(n) < 0.7).astype(float)

    def objective(theta: np.ndarray) -> float:
        return (loss(theta, X, y) + lam / 2 * float(theta @ theta)) / n

    descent = AcceleratedGradient(np.zeros(d), X.T @ X, n, lam, smoothness, 1000)
    while not descent.done:
        descent.descend(loss_gradient(X, y, descent.iterate))
    best = minimize(objective, np.zeros(d), method="BFGS", options={"gtol": 1e-9}).fun
    assert descent.converged
    assert descent.rounds < 300
    assert objective(descent.iterate) - best <= 1.0 / n**2
    gradient = (loss_gradient(X, y, descent.iterate) + lam * descent.iterate) / n
    assert np.linalg.norm(gradient) <= math.sqrt(2 * lam / n**3)


def test_descent_stops_after_so_many_gradients_with_the_last_step_taken() -> None:
    X, y = np.eye(2), np.ones(2)
    descent = AcceleratedGradient(np.zeros(2), X.T @ X, 2, 0.01, "unit_ball", 1)
    gradient = loss_gradient(X, y, descent.iterate)
    descent.descend(gradient)
    assert (descent.done, descent.converged, descent.rounds) == (True, False, 1)
    assert descent.iterate == pytest.approx(-gradient / 2 / (0.25 + 0.005))


def test_features_that_are_too_large_are_refused_once_descent_does_not_converge() -> None:
    """A plane separates rewards, so that only lam bounds the minimum."""
    X = 1e5 * np.random.default_rng(0).standard_normal((30, 3))
    y = (X[:, 0] > 0).astype(float)
    descent = AcceleratedGradient(np.zeros(3), X.T @ X, 30, 1.0, "unit_ball", 1000)
    for _ in range(999):
        descent.descend(loss_gradient(X, y, descent.iterate))
    with pytest.raises(BrokenOff, match=r"in max_rounds\(=1000\), and needs some 3e.* too large for lam\(=1\)"):
        descent.descend(loss_gradient(X, y, descent.iterate))
