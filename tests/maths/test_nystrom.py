"""Nystrom posteriors: the nested Cholesky root equals the paper's eigen-root, and updates equal fresh fits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian, Kernel, Linear, Matern
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics, transformation
from coband.simulator.maths.posteriors.nystrom import EMBED_BELOW, NystromModel, NystromPosterior
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.shared_log import ExactPosterior
from tests.every import every
from tests.maths.evaluation import evaluated
from tests.maths.test_kernels import EVERY_KERNEL


def eigen_root(kernel: Kernel, S: FloatArray) -> FloatArray:
    """K_SS^(-1/2) (m, m) as Lambda^(-1/2) U^T, with the null space left out."""
    values, vectors = np.linalg.eigh(kernel(S, S))
    kept = values > 1e-12 * values.max()
    root: FloatArray = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
    return root


def plain(
    kernel: Kernel, lam: float, S: FloatArray, X: FloatArray, y: FloatArray, arms: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Li et al. 2023, eq. 2, with the eigen-root and one solve."""
    root = eigen_root(kernel, S)
    Z, z = kernel(X, S) @ root.T, kernel(arms, S) @ root.T
    A = Z.T @ Z
    ridge = A + lam * np.eye(len(A))
    mean = z @ np.linalg.solve(ridge, Z.T @ y)
    variance = (kernel.diag(arms) - np.sum(z * (A @ np.linalg.solve(ridge, z.T)).T, axis=1)) / lam
    return mean, np.sqrt(np.maximum(variance, 0.0))


def fitted(kernel: Kernel, lam: float, S: FloatArray, X: FloatArray, y: FloatArray) -> NystromModel:
    dictionary = Dictionary(kernel).appended(S)
    return NystromModel.fit(dictionary, Statistics.of(dictionary.embed(X), y), lam)


def points(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Points about one length scale apart in any dimension, so that an eigen-root has digits to compare."""
    if d > 2:
        return rng.uniform(size=(n, d))
    grid = np.stack(np.unravel_index(np.arange(n), (n,) if d == 1 else (10, 10)), axis=1)
    return 1.3 * rng.permutation(grid) + rng.uniform(0.0, 0.4, size=(n, d))


def assert_close(
    actual: tuple[FloatArray, FloatArray], expected: tuple[FloatArray, FloatArray], pivot: float = 1.0
) -> None:
    """Equal up to rounding, which the quadratic form multiplies by about 1/pivot for a dictionary's smallest pivot."""
    atol = max(1e-8, 2e-13 / pivot)
    np.testing.assert_allclose(actual[0], expected[0], atol=atol)
    np.testing.assert_allclose(actual[1] ** 2, expected[1] ** 2, atol=atol)


@every("kernel", EVERY_KERNEL, ids=repr)
@every(("d", "lam"), [(1, 1.0), (1, 10.0), (2, 0.1), (20, 1e-3), (20, 1.0)])
def test_mean_and_deviation_equal_the_eigen_root(kernel: Kernel, d: int, lam: float) -> None:
    rng = np.random.default_rng(d)
    X, y, arms = points(rng, 80, d), rng.normal(size=80), points(rng, 10, d)
    if not isinstance(kernel, Gaussian | Matern):
        X, arms = rng.uniform(-2.0, 2.0, size=(80, d)), rng.uniform(-2.0, 2.0, size=(10, d))
        X[:5, 0] = np.linspace(-2.0, 2.0, 5)
    S = np.vstack([X[:5], X[3], X[1], X[0] + 1e-2])
    posterior = fitted(kernel, lam, S, X, y)
    assert_close(evaluated(posterior, arms), plain(kernel, lam, S, X, y, arms))
    np.testing.assert_allclose(posterior.variance(arms), evaluated(posterior, arms)[1] ** 2, rtol=1e-14)
    assert posterior.dictionary.skipped >= 2


@every("d", [1, 2, 5])
@every(("lam", "allowed"), [(1e-3, 1e-3), (0.1, 1e-5), (1.0, 1e-6), (10.0, 1e-7)])
def test_a_dictionary_of_all_points_gives_the_exact_posterior(d: int, lam: float, allowed: float) -> None:
    """Even with pivots down to the skipping threshold 1e-10, which leaves errors of about 1e-10/lam^2."""
    rng = np.random.default_rng(d)
    X, y, arms = rng.normal(size=(150, d)), rng.normal(size=150), rng.normal(size=(20, d))
    kernel = Gaussian(gamma=0.5)
    posterior, exact = fitted(kernel, lam, X, X, y), ExactPosterior(kernel, lam)
    exact.update(Observations(X, y))
    mean, sigma = evaluated(posterior, arms)
    np.testing.assert_allclose(mean, evaluated(exact, arms)[0], atol=allowed)
    np.testing.assert_allclose(lam * sigma**2, lam * evaluated(exact, arms)[1] ** 2, atol=1e-7)


def test_without_a_dictionary_the_prior_is_returned() -> None:
    posterior = NystromModel.fit(Dictionary(Linear()), Statistics.zero(0), 0.25)
    mean, sigma = evaluated(posterior, np.array([[3.0, 4.0]]))
    assert (mean.tolist(), sigma.tolist()) == ([0.0], [10.0])
    assert posterior.dictionary.embed(np.ones((3, 2))).shape == (3, 0)


def test_embeddings_and_their_weights_are_products_with_the_inverse_root() -> None:
    """Also with skipped points; and the dictionary is as it was."""
    rng = np.random.default_rng(3)
    S, X = rng.standard_normal((9, 3)), rng.standard_normal((50, 3))
    S[4] = S[2]
    dictionary = Dictionary(Gaussian(gamma=0.5)).appended(S)
    assert dictionary.skipped == 1
    before = dictionary.embed(X)
    assert before.flags.c_contiguous
    np.testing.assert_allclose(before, dictionary.cross(X) @ dictionary.inverse_root.T, rtol=1e-13, atol=1e-14)
    H = rng.standard_normal((9, 2))
    for weights in (H, H.T.copy().T, H[:, 0], H[:, :0]):
        given = weights.copy()
        found = dictionary.dual(weights)
        np.testing.assert_allclose(found, dictionary.inverse_root.T @ weights, rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(weights, given)
    np.testing.assert_array_equal(dictionary.embed(X), before)


def test_skipped_points_keep_a_coordinate_that_is_always_zero() -> None:
    rng = np.random.default_rng(0)
    S = rng.normal(size=(6, 3))
    dictionary = Dictionary(Gaussian(gamma=1.0)).appended(S).appended(np.vstack([S[2], S[4] + 1.0, S[0] + 1e-9]))
    assert (dictionary.size, dictionary.skipped) == (9, 2)
    Z = dictionary.embed(rng.normal(size=(5, 3)))
    assert np.array_equal(Z[:, [6, 8]], np.zeros((5, 2)))
    assert np.abs(Z[:, 7]).min() > 0.0
    zero = Dictionary(Linear()).appended(np.zeros((2, 3)))
    assert zero.skipped == 2


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=5), d=st.sampled_from([1, 2, 20]), seed=st.integers(0, 99))
def test_a_dictionary_grown_in_blocks_equals_one_made_at_once(cuts: list[int], d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, X = points(rng, 40, d), points(rng, 9, d)
    S[20] = S[3]
    at_once = Dictionary(Gaussian(gamma=1.0)).appended(S)
    grown = Dictionary(Gaussian(gamma=1.0))
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 40], strict=True):
        before = grown
        grown = before.appended(S[start:end])
        np.testing.assert_allclose(grown.embed(X)[:, :start], before.embed(X), atol=1e-12)
        assert before.is_prefix_of(grown)
    assert (grown.size, grown.skipped) == (at_once.size, at_once.skipped)
    z, Z = at_once.embed(X), grown.embed(X)
    np.testing.assert_allclose(Z @ Z.T, z @ z.T, atol=1e-8)


def test_prefixes_are_told_from_other_dictionaries() -> None:
    S = np.random.default_rng(0).normal(size=(5, 2))
    empty = Dictionary(Gaussian(gamma=1.0))
    whole = empty.appended(S)
    assert empty.is_prefix_of(whole)
    assert whole.is_prefix_of(whole)
    assert not whole.is_prefix_of(empty.appended(S[:3]))
    assert not empty.appended(S[1:]).is_prefix_of(whole)
    assert not Dictionary(Gaussian(gamma=2.0)).appended(S[:3]).is_prefix_of(whole)
    assert whole.appended(S[:0]) is whole


@pytest.mark.parametrize("kernel", [Gaussian(gamma=1.0), Matern(nu=1.5)], ids=repr)
def test_the_transformation_to_a_longer_dictionary_is_zero_padding(kernel: Kernel) -> None:
    rng = np.random.default_rng(4)
    S, X, y = points(rng, 20, 20), points(rng, 30, 20), rng.normal(size=30)
    S[4] = S[1]
    old = Dictionary(kernel).appended(S[:12])
    new = old.appended(S[12:])
    identity = np.eye(12, 20)
    identity[4, 4] = 0.0
    T = transformation(old, new)
    np.testing.assert_allclose(T, identity, atol=1e-12)
    statistics = Statistics.of(old.embed(X), y)
    padded = statistics.reexpressed(old, new)
    np.testing.assert_allclose(padded.A, T.T @ statistics.A @ T, atol=1e-12)
    np.testing.assert_allclose(padded.b, T.T @ statistics.b, atol=1e-12)
    np.testing.assert_array_equal(padded.A, statistics.padded(20).A)


def test_reexpression_between_unrelated_dictionaries_equals_the_papers_eigen_form() -> None:
    """Li et al. 2023, eq. 5: T = Lambda_old^(-1/2) U_old^T K_old,new U_new Lambda_new^(-1/2)."""
    rng = np.random.default_rng(6)
    kernel, lam = Gaussian(gamma=0.5), 0.1
    S_old, S_new, X, arms = (points(rng, n, 5) for n in (8, 10, 50, 7))
    y = rng.normal(size=50)
    root_old, root_new = eigen_root(kernel, S_old), eigen_root(kernel, S_new)
    T = root_old @ kernel(S_old, S_new) @ root_new.T
    Z, z = kernel(X, S_old) @ root_old.T, kernel(arms, S_new) @ root_new.T
    A, b = T.T @ Z.T @ Z @ T, T.T @ Z.T @ y
    ridge = A + lam * np.eye(len(A))
    mean = z @ np.linalg.solve(ridge, b)
    variance = (1.0 - np.sum(z * np.linalg.solve(ridge, A @ z.T).T, axis=1)) / lam
    old, new = Dictionary(kernel).appended(S_old), Dictionary(kernel).appended(S_new)
    statistics = Statistics.of(old.embed(X), y).reexpressed(old, new)
    assert_close(evaluated(NystromModel.fit(new, statistics, lam), arms), (mean, np.sqrt(variance)))


def test_statistics_add_up_and_refuse_other_sizes() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(9, 4)), rng.normal(size=9)
    total = Statistics.of(Z[:5], y[:5]) + Statistics.of(Z[5:], y[5:])
    np.testing.assert_allclose(total.A, sum(np.outer(z, z) for z in Z), atol=1e-13)
    np.testing.assert_allclose(total.b, sum(z * r for z, r in zip(Z, y, strict=True)), atol=1e-13)
    extended = Statistics.of(Z[:5, :3], y[:5]).extended(Z[5:], y[5:])
    expected = Statistics.of(Z[:5, :3], y[:5]).padded(4) + Statistics.of(Z[5:], y[5:])
    np.testing.assert_allclose(extended.A, expected.A, atol=1e-13)
    np.testing.assert_allclose(extended.b, expected.b, atol=1e-13)
    with pytest.raises(ValueError, match="statistics over 4 and 3 points cannot be added"):
        total + Statistics.zero(3)
    with pytest.raises(ValueError, match=r"m\(=3\) must be at least the present size 4"):
        total.padded(3)
    with pytest.raises(ValueError, match="must be square"):
        Statistics(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="statistics over 4 points do not fit a dictionary of 0"):
        NystromModel.fit(Dictionary(Linear()), total, 1.0)


@pytest.mark.parametrize(("d", "gamma", "lam"), [(1, 1.0, 1e-3), (2, 0.3, 1e-3), (2, 1.0, 1.0), (20, 0.5, 10.0)])
def test_a_long_run_of_updates_stays_with_the_fresh_fit(d: int, gamma: float, lam: float) -> None:
    """Growing dictionaries, skipped points and refits on the way; the plain statistics are summed apart."""
    rng = np.random.default_rng(d)
    dictionary = Dictionary(Gaussian(gamma=gamma))
    posterior = NystromModel.fit(dictionary, Statistics.zero(0), lam)
    total, arms = Statistics.zero(0), rng.normal(size=(30, d)) / np.sqrt(d)
    for step in range(150):
        X, y = rng.normal(size=(5, d)) / np.sqrt(d), rng.normal(size=5)
        sampled = rng.random(5) < np.minimum(1.0, 0.3 * lam * posterior.variance(X))
        dictionary = dictionary.appended(X[sampled])
        Z = dictionary.embed(X)
        posterior = posterior.updated(dictionary, Z, y)
        total = total.padded(dictionary.size) + Statistics.of(Z, y)
        if step % 15 == 0:
            assert_close(evaluated(posterior, arms), evaluated(NystromModel.fit(dictionary, total, lam), arms))
    np.testing.assert_allclose(posterior.statistics.A, total.A, atol=1e-10)
    assert dictionary.size - dictionary.skipped > 5


def test_drift_is_bounded_by_a_refit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    S, X, y = points(rng, 40, 20), points(rng, 300, 20), rng.normal(size=300)
    fits: list[int] = []
    fit = NystromModel.fit

    def counted(*given: Any) -> NystromModel:
        fits.append(1)
        return fit(*given)

    monkeypatch.setattr(NystromModel, "fit", counted)
    posterior = fitted(Gaussian(gamma=0.5), 1.0, S, X, y)
    for _ in range(130):
        posterior = posterior.updated(posterior.dictionary, posterior.dictionary.embed(X[:2]), y[:2])
    assert len(fits) == 3  # the first one, and one every 64 updates
    posterior._P[0, 0] += 1e-3  # a damaged inverse shows in the residual at the next update
    repaired = posterior.updated(posterior.dictionary, posterior.dictionary.embed(X[2:4]), y[2:4])
    assert len(fits) == 4
    assert_close(evaluated(repaired, X), evaluated(fit(repaired.dictionary, repaired.statistics, 1.0), X))


def test_a_predictor_kept_from_an_old_version_never_changes() -> None:
    rng = np.random.default_rng(3)
    X, y, arms = points(rng, 60, 20), rng.normal(size=60), points(rng, 5, 20)
    posterior = fitted(Gaussian(gamma=0.5), 1.0, X[:10], X[:20], y[:20])
    kept = posterior.predictor
    before = evaluated(posterior, arms)
    for start in range(20, 60, 4):
        dictionary = posterior.dictionary.appended(X[start : start + 2])
        new = slice(start, start + 4)
        posterior = posterior.updated(dictionary, dictionary.embed(X[new]), y[new])
    assert (kept.size, posterior.predictor.size) == (10, 30)
    np.testing.assert_array_equal(evaluated(kept, arms), before)
    assert (posterior.variance(arms) < kept.variance(arms)).all()


def test_an_update_needs_a_dictionary_that_continues_the_present_one() -> None:
    S = np.random.default_rng(0).normal(size=(6, 2))
    posterior = fitted(Gaussian(gamma=1.0), 1.0, S[:4], S, np.ones(6))
    other = Dictionary(Gaussian(gamma=1.0)).appended(S[1:])
    with pytest.raises(ValueError, match="dictionary of 4 points must be a prefix of the new one of 5 points"):
        posterior.updated(other, other.embed(S), np.ones(6))


@pytest.mark.parametrize("lam", [1e-12, 1e-3, 1.0])
def test_deviations_are_real_and_never_exceed_the_prior(lam: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1))
    posterior = fitted(Gaussian(gamma=0.5), lam, X[:60], X, rng.normal(size=400))
    mean, sigma = evaluated(posterior, X)
    assert np.isfinite(mean).all()
    assert ((sigma >= 0.0) & (lam * sigma**2 <= 1.0 + 1e-9)).all()


def test_a_ridge_below_the_rounding_of_the_statistics_still_gives_the_limit() -> None:
    """A = c z z^T with c/lam = 1e17: sigma^2 = (1 - (z_x . z)^2/||z||^2)/lam, the direction of z being known."""
    rng = np.random.default_rng(2)
    dictionary = Dictionary(Gaussian(gamma=0.5)).appended(points(rng, 20, 20))
    arms = points(rng, 5, 20)
    z, lam = dictionary.embed(arms[:1])[0], 1e-9
    posterior = NystromModel.fit(dictionary, Statistics(1e8 * np.outer(z, z), 1e8 * z), lam)
    known = (dictionary.embed(arms) @ z) ** 2 / (z @ z)
    np.testing.assert_allclose(lam * posterior.variance(arms), 1.0 - known, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(own=st.integers(0, 30), d=st.sampled_from([1, 2, 20]), crowded=st.booleans(), seed=st.integers(0, 99))
def test_local_points_equal_a_fit_on_the_enlarged_statistics(own: int, d: int, crowded: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, lam = Gaussian(gamma=0.5), 0.1
    S, X, arms = (points(rng, n, d) * (0.2 if crowded else 1.0) for n in (20, 50 + own, 6))
    y = rng.normal(size=50 + own)
    base = fitted(kernel, lam, S, X[:50], y[:50])
    before = evaluated(base, arms)
    local = NystromPosterior(base)
    for row in range(50, 50 + own):
        local.update(Observations(X[row : row + 1], y[row : row + 1]))
    assert local.size == own
    pivot = max(base.dictionary.smallest_pivot, EMBED_BELOW)  # below, forms are evaluated through the embedding
    assert_close(evaluated(local, arms), evaluated(fitted(kernel, lam, S, X, y), arms), pivot)
    np.testing.assert_array_equal(evaluated(base, arms), before)


def test_local_points_without_a_dictionary_teach_nothing() -> None:
    local = NystromPosterior(NystromModel.fit(Dictionary(Gaussian(gamma=1.0)), Statistics.zero(0), 4.0))
    local.update(Observations(np.ones((1, 2)), np.array([3.0])))
    mean, sigma = evaluated(local, np.ones((1, 2)))
    assert (mean.tolist(), sigma.tolist()) == ([0.0], [0.5])


@every("alpha", [0.0, 0.1, 1.0, 20.0])
@every("size", [0, 1, 25])
def test_scores_of_several_arm_sets_are_exact_where_an_arm_may_win(alpha: float, size: int) -> None:
    rng = np.random.default_rng(size)
    X, y, stack = rng.normal(size=(60, 4)), 2.0 * rng.normal(size=60), rng.normal(size=(5, 7, 4))
    stack[0, 3] = stack[0, 0]
    model = (
        fitted(Gaussian(gamma=0.3), 0.5, X[:size], X, y)
        if size
        else NystromModel.fit(Dictionary(Gaussian(gamma=0.3)), Statistics.zero(0), 0.5)
    )
    scores, variances = model.predictor.scores_stack(stack, alpha)
    for arms, row, variance in zip(stack, scores, variances, strict=True):
        mean, expected = model.predict(arms)
        exact, kept = mean + alpha * np.sqrt(expected), np.isfinite(row)
        np.testing.assert_allclose(row[kept], exact[kept], atol=1e-10)
        np.testing.assert_allclose(variance[kept], expected[kept], atol=1e-10)
        assert kept[exact == exact.max()].all()
        assert (variance >= expected - 1e-10).all()
    assert scores[0, 3] == scores[0, 0]
    if size == 25:
        assert np.isfinite(scores).all() == (alpha == 20.0)
