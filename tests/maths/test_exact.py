"""Exact posteriors: the growing factors equal one dense solve, however the data came."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian, Kernel
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.posteriors.finite_domain import Domain, DomainLog
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import ExactPosterior, LogPosterior, SharedLog
from tests.every import every
from tests.maths.evaluation import evaluated
from tests.maths.test_kernels import EVERY_KERNEL


def dense(kernel: Kernel, lam: float, X: FloatArray, y: FloatArray, arms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Li et al. 2023, eq. 1, by one solve with K + lam I."""
    K, k = kernel(X, X), kernel(X, arms)
    solved = np.linalg.solve(K + lam * np.eye(len(X)), np.column_stack([y, k]))
    variance = (kernel.diag(arms) - np.sum(k * solved[:, 1:], axis=0)) / lam
    return k.T @ solved[:, 0], np.sqrt(np.maximum(variance, 0.0))


def dense_log_det(kernel: Kernel, lam: float, X: FloatArray) -> float:
    return float(np.linalg.slogdet(np.eye(len(X)) + kernel(X, X) / lam)[1])


def data(seed: int, n: int, d: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points with duplicates and near-duplicates among them, rewards, and arms of which one was seen."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    X[n // 2] = X[0]
    X[n // 3] = X[1] + 1e-9
    arms = rng.normal(size=(6, d)) / np.sqrt(d)
    arms[2] = X[1]
    return X, rng.normal(size=n), arms


def assert_close(actual: tuple[FloatArray, FloatArray], expected: tuple[FloatArray, FloatArray]) -> None:
    np.testing.assert_allclose(actual[0], expected[0], atol=1e-8)
    np.testing.assert_allclose(actual[1] ** 2, expected[1] ** 2, atol=1e-8)


@every("kernel", EVERY_KERNEL, ids=repr)
@every(("d", "lam"), [(1, 1e-3), (2, 0.1), (20, 1.0), (20, 10.0)])
def test_mean_and_deviation_equal_the_dense_solve(kernel: Kernel, d: int, lam: float) -> None:
    X, y, arms = data(d, 60, d)
    posterior = ExactPosterior(kernel, lam)
    posterior.update(Observations(X, y))
    assert_close(evaluated(posterior, arms), dense(kernel, lam, X, y, arms))
    assert posterior.log_det == pytest.approx(dense_log_det(kernel, lam, X), rel=1e-9)
    assert posterior.size == 60


@pytest.mark.parametrize("lam", [1e-12, 1e-6, 1.0])
def test_choosing_evaluated_arms_one_by_one_keeps_the_factor_exact_and_the_variance_positive(lam: float) -> None:
    rng = np.random.default_rng(5)
    posterior, X, y = ExactPosterior(Gaussian(gamma=0.5), lam), [], []
    for _ in range(150):
        arms = rng.integers(-2, 3, size=(8, 2)) / 2.0
        mean, sigma = evaluated(posterior, arms)
        assert np.isfinite(mean).all()
        assert np.isfinite(sigma).all()
        chosen = int(np.argmax(mean + sigma))
        X.append(arms[chosen])
        y.append(float(np.sin(arms[chosen]).sum()))
        posterior.update(Observations(arms[chosen : chosen + 1], np.array(y[-1:])))
    grid = rng.normal(size=(20, 2))
    if lam >= 1e-6:
        mean, sigma = dense(Gaussian(gamma=0.5), lam, np.array(X), np.array(y), grid)
        np.testing.assert_allclose(evaluated(posterior, grid)[0], mean, atol=1e-6)
        np.testing.assert_allclose(lam * evaluated(posterior, grid)[1] ** 2, lam * sigma**2, atol=1e-9)
    assert np.isfinite(posterior.log_det)


@pytest.mark.parametrize("sizes", [[1] * 150, [150], [63, 1, 1, 64, 21], [5, 0, 100, 45]])
def test_the_growing_factor_is_the_cholesky_factor(sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(150, 40))
    M, B = root @ root.T, rng.normal(size=(150, 3))
    factor = GrowingCholesky(0.5)
    for p in sizes:
        n = factor.size
        corner = factor.append(M[n : n + p, :n], M[n : n + p, n : n + p])
        np.testing.assert_allclose(corner, np.linalg.cholesky(M + 0.5 * np.eye(150))[n : n + p, n : n + p], atol=1e-11)
    for size in (0, 1, 64, 65, 128, 150):
        L = np.linalg.cholesky(M[:size, :size] + 0.5 * np.eye(size))
        np.testing.assert_allclose(factor.solve(B[:size]), np.linalg.solve(L, B[:size]), atol=1e-11)
        assert factor.log_det(size) == pytest.approx(np.linalg.slogdet(np.eye(size) + 2.0 * M[:size, :size])[1])
    assert factor.size == 150


@pytest.mark.parametrize("lam", [0.0, -1.0, float("nan")])
def test_a_ridge_that_is_not_positive_is_refused(lam: float) -> None:
    with pytest.raises(ValueError, match=r"lam\(=.*\) must be > 0"):
        GrowingCholesky(lam)


def test_the_log_takes_each_row_once() -> None:
    X, y, _ = data(1, 30, 2)
    log = SharedLog(Gaussian(gamma=1.0), 1.0)
    log.extend(0, Observations(X[:10], y[:10]))
    log.extend(0, Observations(X[:10], y[:10]))
    log.extend(4, Observations(X[4:20], y[4:20]))
    log.extend(20, Observations(X[20:20], y[20:20]))
    log.extend(20, Observations(X[20:], y[20:]))
    np.testing.assert_array_equal(log.points, X)
    np.testing.assert_array_equal(log.rewards, y)
    assert log.size == 30
    with pytest.raises(ValueError, match=r"start\(=31\) must be at most the 30 rows held"):
        log.extend(31, Observations(X[:1], y[:1]))


@settings(max_examples=60, deadline=None)
@given(
    owners=st.lists(st.booleans(), min_size=5, max_size=90),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), max_size=25),
    lam=st.sampled_from([1e-2, 1.0]),
)
def test_an_agent_on_the_log_equals_an_agent_of_its_own(
    owners: list[bool], steps: list[tuple[int, int]], lam: float
) -> None:
    """The log's rows belong to the agent or to others; the agent acts and learns prefixes in any order."""
    X, y, arms = data(len(owners), len(owners), 2)
    own_rows = [row for row, own in enumerate(owners) if own]
    kernel = Gaussian(gamma=1.0)
    log = SharedLog(kernel, lam)
    agent, acted, known = LogPosterior(log), 0, 0
    for pulls, learned in steps:
        for row in own_rows[acted : acted + pulls]:
            evaluated(agent, np.vstack([arms, X[row]]))
            agent.update(Observations(X[row : row + 1], y[row : row + 1]))
        acted = min(acted + pulls, len(own_rows))
        # Own rows cannot be in the log before they were pulled.
        limit = own_rows[acted] if acted < len(own_rows) else len(owners)
        grown = max(known, min(known + learned, limit))
        taken = sum(known <= row < grown for row in own_rows[:acted])
        log.extend(known, Observations(X[known:grown], y[known:grown]))
        agent.adopt(grown, taken)
        known = grown
        rows = [*range(known), *(row for row in own_rows[:acted] if row >= known)]
        exact = ExactPosterior(kernel, lam)
        exact.update(Observations(X[rows], y[rows]))
        assert_close(evaluated(agent, arms), evaluated(exact, arms))
        prefix = dense_log_det(kernel, lam, X[:known])
        assert agent.log_det_gain == pytest.approx(dense_log_det(kernel, lam, X[rows]) - prefix, abs=1e-8)
        assert (agent.known, agent.own_size) == (known, len(rows) - known)


@pytest.mark.parametrize(
    ("known", "own_taken", "message"),
    [
        (1, 0, r"known\(=1\) must be between 2 and the 5 rows held"),
        (6, 0, r"known\(=6\) must be between 2 and the 5 rows held"),
        (3, 2, r"own_taken\(=2\) must be between 0 and the 1 own points"),
    ],
)
def test_impossible_adoptions_are_refused(known: int, own_taken: int, message: str) -> None:
    X, y, _ = data(4, 5, 2)
    kernel = Gaussian(gamma=1.0)
    for log in (SharedLog(kernel, 1.0), DomainLog(Domain(kernel, ArmSet.fixed(X)), 1.0)):
        log.extend(0, Observations(X, y))
        agent = log.posterior()
        agent.adopt(2, 0)
        agent.update(Observations(X[:1], np.array([0.5])))
        with pytest.raises(ValueError, match=message):
            agent.adopt(known, own_taken)


@pytest.mark.parametrize("known", [1, 20, 51, 90])
def test_equal_points_are_solved_for_to_the_same_bits(known: int) -> None:
    """Wherever they stand among others, so that ties between equal arms are exact."""
    rng = np.random.default_rng(known)
    log = SharedLog(Gaussian(gamma=0.5), 1.0)
    log.extend(0, Observations(rng.uniform(-1, 1, (known, 3)), rng.standard_normal(known)))
    two, which = rng.uniform(-1, 1, (2, 3)), rng.integers(2, size=51)
    V = log.solve(two[which], known)
    for point in (0, 1):
        alike = V[:, which == point]
        assert (alike == alike[:, :1]).all()
