"""Posteriors over a fixed domain equal the plain forms and dense solves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.exploration.duets import Induced, ridge_solve
from coband.simulator.maths.kernels.library import Gaussian, Kernel, Linear, Matern
from coband.simulator.maths.posteriors import finite_domain as domain_exact
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import (
    Domain,
    DomainLog,
    DomainLogPosterior,
    DomainPosterior,
    exact_variance,
)
from coband.simulator.maths.posteriors.nystrom import NystromModel, NystromPosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import LogPosterior, SharedLog
from tests.every import every
from tests.maths.evaluation import evaluated
from tests.maths.test_exact import assert_close, dense, dense_log_det
from tests.maths.test_kernels import EVERY_KERNEL


def points(seed: int, M: int, d: int) -> FloatArray:
    """Random points of which two are equal and two nearly so."""
    U = np.random.default_rng(seed).normal(size=(M, d)) / np.sqrt(d)
    U[M // 2] = U[1]
    U[M // 3] = U[0] + 1e-9
    return U


@pytest.fixture(params=[(2, 512), (8, 4), (64, 512)], ids=str)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, kernel columns one by one, and the usual sizes."""
    monkeypatch.setattr(domain_exact, "BLOCK", request.param[0])
    monkeypatch.setattr("coband.simulator.maths.posteriors.finite_domain.WHOLE_GRAM", request.param[1])


@pytest.mark.usefixtures("sizes")
@every("kernel", EVERY_KERNEL, ids=repr)
@every("lam", [1e-3, 1.0])
def test_a_growing_posterior_equals_the_dense_solve(kernel: Kernel, lam: float) -> None:
    rng = np.random.default_rng(0)
    U = points(1, 15, 3)
    posterior = DomainPosterior(Domain(kernel, ArmSet.fixed(U)), lam)
    pulled = rng.integers(15, size=90)
    y = rng.normal(size=90)
    for start, end in [(0, 1), (1, 40), (40, 40), (40, 90)]:
        posterior.update(Observations(U[pulled[start:end]], y[start:end]))
        assert_close(evaluated(posterior, U), dense(kernel, lam, U[pulled[:end]], y[:end], U))
        assert posterior.log_det == pytest.approx(dense_log_det(kernel, lam, U[pulled[:end]]), rel=1e-8)
    assert posterior.size == 90


@pytest.mark.parametrize("lam", [1e-6, 0.2])
def test_many_pulls_by_upper_bounds_keep_the_posterior_exact(lam: float) -> None:
    """Three thousand pulls of 40 points: equal to the solve with counts and means, and never negative."""
    rng = np.random.default_rng(2)
    kernel, U = Gaussian(length_scale=0.5), points(3, 40, 2)
    f = np.sin(3 * U[:, 0])
    posterior = DomainPosterior(Domain(kernel, ArmSet.fixed(U)), lam)
    counts, sums = np.zeros(40), np.zeros(40)
    for _ in range(3000):
        mean, deviation = evaluated(posterior, U)
        arm = int(np.argmax(mean + np.sqrt(lam) * deviation))
        y = f[arm] + 0.2 * rng.standard_normal()
        posterior.update(Observations(U[arm : arm + 1], np.array([y])))
        counts[arm] += 1
        sums[arm] += y
    seen = counts > 0
    ridge = kernel(U[seen], U[seen]) + np.diag(lam / counts[seen])
    k = kernel(U[seen], U)
    weights = np.linalg.solve(ridge, sums[seen] / counts[seen])
    np.testing.assert_allclose(posterior.predict(U)[0], k.T @ weights, atol=1e-6)
    expected = np.maximum(1.0 - np.sum(k * np.linalg.solve(ridge, k), axis=0), 0.0)
    np.testing.assert_allclose(lam * posterior.predict(U)[1], expected, atol=1e-9)


@pytest.mark.usefixtures("sizes")
@settings(max_examples=60, deadline=None)
@given(
    owners=st.lists(st.booleans(), min_size=5, max_size=90),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), max_size=25),
    ahead=st.integers(0, 30),
)
def test_an_agent_on_the_log_equals_the_plain_form(
    owners: list[bool], steps: list[tuple[int, int]], ahead: int
) -> None:
    """The log's rows belong to the agent or to others; the log may hold more than the agent knows."""
    rng = np.random.default_rng(len(owners))
    kernel, U = Gaussian(gamma=1.0), points(4, 9, 2)
    X, y = U[rng.integers(9, size=len(owners))], rng.normal(size=len(owners))
    own_rows = [row for row, own in enumerate(owners) if own]
    log, plain_log = DomainLog(Domain(kernel, ArmSet.fixed(U)), 0.1), SharedLog(kernel, 0.1)
    agent: DomainLogPosterior = log.posterior()
    plain: LogPosterior = plain_log.posterior()
    acted, known = 0, 0
    for pulls, learned in steps:
        for row in own_rows[acted : acted + pulls]:
            agent.update(Observations(X[row : row + 1], y[row : row + 1]))
            plain.update(Observations(X[row : row + 1], y[row : row + 1]))
        acted = min(acted + pulls, len(own_rows))
        limit = own_rows[acted] if acted < len(own_rows) else len(owners)
        grown = max(known, min(known + learned, limit))
        taken = sum(known <= row < grown for row in own_rows[:acted])
        held = min(max(log.size, grown + ahead), len(owners))
        log.extend(known, Observations(X[known:held], y[known:held]))
        plain_log.extend(known, Observations(X[known:grown], y[known:grown]))
        agent.adopt(grown, taken)
        plain.adopt(grown, taken)
        known = grown
        assert_close(evaluated(agent, U), evaluated(plain, U))
        assert agent.log_det_gain == pytest.approx(plain.log_det_gain, abs=1e-8)
        assert (agent.known, agent.own_size) == (plain.known, plain.own_size)


def test_a_prefix_does_not_depend_on_how_far_the_log_reaches() -> None:
    rng = np.random.default_rng(6)
    U = points(5, 30, 2)
    X, y = U[rng.integers(30, size=50)], rng.normal(size=50)
    near, far = (DomainLog(Domain(Gaussian(gamma=1.0), ArmSet.fixed(U)), 0.5) for _ in range(2))
    near.extend(0, Observations(X[:20], y[:20]))
    far.extend(0, Observations(X, y))
    agents = [near.posterior(), far.posterior()]
    for agent in agents:
        agent.adopt(20, 0)
        agent.update(Observations(U[3:4], np.ones(1)))
    for one, other in zip(agents[0].predict(U), agents[1].predict(U), strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_gap_in_the_log_and_a_strange_point_are_refused() -> None:
    U = points(4, 7, 2)
    log = DomainLog(Domain(Gaussian(gamma=1.0), ArmSet.fixed(U)), 1.0)
    with pytest.raises(ValueError, match=r"start\(=1\) must be at most the 0 rows held"):
        log.extend(1, Observations(U[:1], np.ones(1)))
    with pytest.raises(ValueError, match="a point is not one of the 6 points of the domain"):
        log.extend(0, Observations(U[:1] + 0.5, np.ones(1)))
    with pytest.raises(ValueError, match=r"lam\(=0.0\) must be > 0"):
        DomainLog(Domain(Gaussian(gamma=1.0), ArmSet.fixed(U)), 0.0)


def test_equal_points_of_a_domain_have_equal_moments() -> None:
    U = points(8, 40, 3)
    U = np.vstack([U, U[::-1]])
    domain = Domain(Matern(), ArmSet.fixed(U))
    assert domain.size == 39
    posterior = DomainPosterior(domain, 0.1)
    posterior.update(Observations(U[[3, 60, 7]], np.array([1.0, -1.0, 0.3])))
    for values in posterior.predict(U):
        assert values[:40].tobytes() == values[:39:-1].tobytes()
    np.testing.assert_array_equal(domain.number(np.array([0, 1, 20, 79])), [0, 1, 1, 0])
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])
    np.testing.assert_array_equal(Domain(Matern(), ArmSet.fixed(zeros)).entries(zeros), [0, 0, 1])


@pytest.mark.parametrize("kernel", [Gaussian(length_scale=0.7), Matern(nu=0.5), Linear(bias=0.1)], ids=repr)
@pytest.mark.parametrize("chunk", [7, 4096])
def test_the_largest_exact_variance_equals_a_dense_solve(
    kernel: Kernel, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pavlovic et al. 2024, eq. 4, over all N T_j points, repetitions among them."""
    monkeypatch.setattr("coband.simulator.maths.posteriors.finite_domain.POINTS_AT_ONCE", chunk)
    rng, lam = np.random.default_rng(1), 0.2
    U = points(9, 60, 3)
    pulled = rng.integers(30, size=200)
    counts = np.bincount(pulled, minlength=60)
    seen = np.flatnonzero(counts)
    found = exact_variance(kernel, lam, U[seen], counts[seen], U)
    expected = lam * dense(kernel, lam, U[pulled], np.zeros(200), U)[1] ** 2
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert found.max() == pytest.approx(expected.max(), rel=1e-9)
    np.testing.assert_array_equal(exact_variance(kernel, lam, U[:0], [], U), kernel.diag(U))


@pytest.mark.parametrize("size", [0, 1, 12])
def test_an_agents_nystrom_posterior_over_a_domain_equals_the_plain_form(size: int) -> None:
    rng = np.random.default_rng(size)
    kernel, U, lam = Gaussian(gamma=1.0), points(2, 25, 2), 0.4
    domain, dictionary = Domain(kernel, ArmSet.fixed(U)), Dictionary(kernel).appended(U[3 : 3 + size])
    X, y = U[rng.integers(25, size=30)], rng.normal(size=30)
    base = NystromModel.fit(dictionary, Statistics.of(dictionary.embed(X), y), lam)
    fixed, plain = NystromPosterior(base, domain), NystromPosterior(base)
    for arm in [4, 4, 1, 12, 20, 4]:
        for one, other in zip(fixed.predict(U), plain.predict(U), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
        np.testing.assert_allclose(fixed.base_variance, plain.base_variance, atol=1e-12)
        np.testing.assert_allclose(fixed.base_variance_of(X), plain.base_variance_of(X), atol=1e-12)
        fixed.update(Observations(U[arm : arm + 1], np.array([0.3])))
        plain.update(Observations(U[arm : arm + 1], np.array([0.3])))
    assert fixed.size == plain.size == 6


def test_what_an_inducing_set_makes_of_pulls() -> None:
    """Projection, Gram matrix and weights of DUETS, pull by pull; eq. 6 for the bounds."""
    rng = np.random.default_rng(3)
    kernel, U, lam, beta = Matern(nu=1.5), points(6, 20, 2), 0.3, 0.4
    active = np.array([1, 2, 5, 6, 9, 13, 19])
    induced = Induced(Domain(kernel, ArmSet.fixed(U)), active, U[[5, 13, 1]])
    arms, y = rng.choice(active, size=30), rng.normal(size=30)
    Z = Dictionary(kernel).appended(U[[5, 13, 1]]).embed(U)
    np.testing.assert_allclose(induced.projection(arms, y), Z[arms].T @ y, atol=1e-12)
    G = Z[arms].T @ Z[arms]
    np.testing.assert_allclose(induced.gram(arms), G, atol=1e-12)
    vbar = ridge_solve(induced.gram(arms), lam, induced.projection(arms, y))
    np.testing.assert_allclose(vbar, np.linalg.solve(G + lam * np.eye(3), Z[arms].T @ y), atol=1e-10)
    mean = Z[active] @ vbar
    form = G @ np.linalg.inv(G + lam * np.eye(3))
    sigma = np.sqrt(kernel.diag(U[active]) - np.sum((Z[active] @ form) * Z[active], axis=1))
    kept = active[mean + beta * sigma >= (mean - beta * sigma).max()]
    assert 0 < len(kept) < len(active)
    np.testing.assert_array_equal(induced.kept_by_bounds(vbar, induced.gram(arms), lam, beta), kept)
