"""Ridge regression by low-rank updates against dense inverses, and the drift of a long run."""

from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import graphs
from coband.simulator.maths.linalg.gram import Downdate, Gram, GrowingGram, MeanInverse, ScaledIdentity
from coband.simulator.maths.linalg.matrices import NotDefiniteError
from coband.simulator.maths.linalg.quadratic_forms import LARGE, is_sparse, quadratic, times
from coband.simulator.maths.posteriors.choose import ridge
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import DiagonalRidge, Ridge, RidgeRegression
from tests.every import every


def dense(rows: np.ndarray, lam: float) -> np.ndarray:
    return lam * np.eye(rows.shape[1]) + rows.T @ rows


@every("sizes", [[1] * 30, [3, 1, 5], [40], [2, 50, 1]])
@every("cadence", [1, 7, 500])
def test_full_is_the_dense_inverse(sizes: list[int], cadence: int) -> None:
    rng = np.random.default_rng(0)
    kept, rows = RidgeRegression(6, 0.3, cadence), np.empty((0, 6))
    for size in sizes:
        G = rng.standard_normal((size, 6))
        kept.add_squares(G)
        rows = np.vstack([rows, G])
        V = dense(rows, 0.3)
        b = rng.standard_normal(6)
        assert kept.inverse() == pytest.approx(np.linalg.inv(V), abs=1e-10)
        assert kept.solve(b) == pytest.approx(np.linalg.solve(V, b), abs=1e-10)
        assert kept.variance(G) == pytest.approx(np.einsum("ij,ij->i", G, np.linalg.solve(V, G.T).T), abs=1e-10)
        assert kept.log_det == pytest.approx(np.linalg.slogdet(V / 0.3)[1], abs=1e-9)
        assert kept.diagonal == pytest.approx(np.diag(V), abs=1e-9)


def test_diagonal_keeps_the_diagonal() -> None:
    G, b = np.random.default_rng(1).standard_normal((9, 4)), np.arange(4.0)
    kept = DiagonalRidge(4, 0.5)
    kept.add_squares(G)
    V = np.diag(dense(G, 0.5))
    assert kept.diagonal == pytest.approx(V)
    assert kept.inverse() == pytest.approx(1 / V)
    assert kept.solve(b) == pytest.approx(b / V)
    assert kept.variance(G) == pytest.approx((G**2 / V).sum(axis=1))
    assert kept.log_det == pytest.approx(np.log(V / 0.5).sum())


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_fork_grows_by_itself(diagonal: bool) -> None:
    rng = np.random.default_rng(2)
    first: Ridge = ridge(5, 1.0, diagonal)
    G, H = rng.standard_normal((4, 5)), rng.standard_normal((8, 5))
    first.add_squares(G)
    before = first.inverse()
    second = first.forked().forked()
    second.add_squares(H)  # more rows than features: factored afresh
    second.add_squares(H[:1])
    everything: Ridge = ridge(5, 1.0, diagonal)
    everything.add_squares(np.vstack([G, H, H[:1]]))
    assert second.inverse() == pytest.approx(everything.inverse(), abs=1e-12)
    assert second.log_det == pytest.approx(everything.log_det)
    assert np.array_equal(first.inverse(), before)


@pytest.mark.parametrize("block", [1, 3])
def test_inverses_that_were_given_out_stay_as_they_are(block: int) -> None:
    rng = np.random.default_rng(7)
    kept, rows = RidgeRegression(4, 0.5, block=block), np.empty((0, 4))
    for _ in range(6):
        G = rng.standard_normal((2, 4))
        given, fork = kept.inverse(), kept.forked()
        kept.add_squares(G)
        kept.add_squares(G[:1])
        for before in (given, fork.inverse()):
            assert before.dense() == pytest.approx(np.linalg.inv(dense(rows, 0.5)), abs=1e-12)
        rows = np.vstack([rows, G, G[:1]])
        assert kept.inverse().dense() == pytest.approx(np.linalg.inv(dense(rows, 0.5)), abs=1e-12)


def test_refactoring_bounds_the_drift() -> None:
    """Large features and a small lam are hard on updates: the error of V^(-1) stays what a few hundred of them do."""
    rng = np.random.default_rng(3)
    p, lam = 30, 1e-4
    errors = {}
    rows = 30.0 * rng.standard_normal((2100, p)) * np.geomspace(1.0, 1e-3, p)
    inverse = np.linalg.inv(dense(rows, lam))
    for cadence in (100, 10**9):
        kept = RidgeRegression(p, lam, cadence)
        for row in rows:
            kept.add_squares(row[None])
        errors[cadence] = float(np.abs(kept.inverse() - inverse).max() / np.abs(inverse).max())
    assert errors[100] < 1e-11
    assert errors[100] < errors[10**9] / 100


@every(("lam", "length"), [(1e-8, 1.0), (1e-10, 1.0), (1e-14, 1.0), (1e-2, 1e6), (1.0, 1e7)])
def test_a_small_lam_leaves_no_errors_behind(lam: float, length: float) -> None:
    """Beside a dense solve, which is exact where there are more observations than features."""
    rng = np.random.default_rng(4)
    kept, rows, rewards = RidgeRegression(6, lam), length * rng.standard_normal((80, 6)), rng.standard_normal(80)
    for row, reward in zip(rows, rewards, strict=True):
        kept.update(Observations(row[None], np.array([reward])))
    V, fork = dense(rows, lam), kept.forked()
    for one in (kept, fork):
        assert one.theta == pytest.approx(np.linalg.solve(V, rows.T @ rewards), rel=1e-12)
        assert one.variance(rows) == pytest.approx(np.einsum("ij,ji->i", rows, np.linalg.solve(V, rows.T)), rel=1e-12)
        assert one.log_det == pytest.approx(np.linalg.slogdet(V)[1] - 6 * np.log(lam), rel=1e-12)


def test_a_lam_below_rounding_is_told_of() -> None:
    kept = RidgeRegression(3, 1e-40)
    with pytest.raises(NotDefiniteError, match=r"not positive definite \(pivot .\), lam\(=1e-40\); give a larger lam"):
        kept.add_squares(np.ones((1, 3)))


@every("name", ["sw_lin_ucb", "discounted_lin_ucb", "club", "lin_ts", "dis_lin_ucb"])
def test_runs_whose_lam_is_below_rounding_say_what_to_change(name: str) -> None:
    with pytest.raises(NotDefiniteError, match="; give a larger lam"):
        graphs.run_anywhere(name, {"lam": 1e-17}, schedule={"kind": "rounds", "turns": 20})


def test_gram_matrices_are_immutable_and_count_all_entries() -> None:
    from coband.simulator.core.nodes.message import size_of

    growing, rng = GrowingGram(4, cadence=5), np.random.default_rng(4)
    told, expected, rows = [], [], np.empty((0, 4))
    for size in (1, 2, 2, 1, 7, 1):
        G = rng.standard_normal((size, 4))
        growing.add(G)
        rows = np.vstack([rows, G])
        told.append(growing.matrix)
        expected.append(rows.T @ rows)
    for gram, W in zip(told, expected, strict=True):
        assert gram.dense() == pytest.approx(W)
        assert gram.diagonal == pytest.approx(np.diag(W))
        assert size_of(gram) == gram.size == 16
        assert np.array(gram.tolist()) == pytest.approx(W)
    assert size_of((Gram(rows), np.ones(3), 1.0)) == 20


def test_quadratic_forms() -> None:
    rng = np.random.default_rng(5)
    G, P = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))
    P = P @ P.T
    assert quadratic(G, P) == pytest.approx([g @ P @ g for g in G])
    assert quadratic(G, np.diag(P)) == pytest.approx([g @ np.diag(np.diag(P)) @ g for g in G])


def sparse_rows(rng: np.random.Generator, rows: int, p: int) -> np.ndarray:
    """Rows with one entry in ten different from zero, each elsewhere."""
    G = rng.standard_normal((rows, p))
    for row in G:
        row[rng.permutation(p)[p // 10 :]] = 0.0
    return G


def test_sparse_features_give_what_dense_ones_do() -> None:
    rng, p = np.random.default_rng(8), LARGE + 5
    P = rng.standard_normal((p, p))
    P = P @ P.T
    G = np.array([sparse_rows(rng, 3, p), rng.standard_normal((3, p)), sparse_rows(rng, 3, p)])
    assert [is_sparse(part) for part in G] == [True, False, True]
    plain = np.einsum("snp,pq,snq->sn", G, P, G, optimize=True)
    assert quadratic(G, P) == pytest.approx(plain)
    assert quadratic(G, Downdate(sparse_rows(rng, 2, p) / 100, P)).shape == (3, 3)
    for part in G:
        assert np.array_equal(quadratic(part, P), quadratic(G, P)[[np.array_equal(part, one) for one in G]][0])
        assert times(P, part[0]) == pytest.approx(P @ part[0])


@pytest.mark.parametrize("p", [7, LARGE + 5])
def test_a_multiple_of_the_identity_gives_the_bits_of_its_entries(p: int) -> None:
    rng, multiple = np.random.default_rng(10), ScaledIdentity(p, 1.0 / 0.3)
    P, rows = multiple.dense(), rng.standard_normal((2, p)) / 100
    assert np.array_equal(P, np.eye(p) / 0.3)
    G = np.array([sparse_rows(rng, 3, p), rng.standard_normal((3, p))])
    for part in (G, G[0], G[1]):
        assert np.array_equal(quadratic(part, Downdate(rows, multiple)), quadratic(part, Downdate(rows, P)))
        assert np.array_equal(quadratic(part, Downdate(rows[:0], multiple)), quadratic(part, Downdate(rows[:0], P)))
    for g in (G[0][0], G[1][0]):
        assert np.array_equal(times(multiple, g), times(P, g))
    kept, plain = Downdate(rows, multiple), Downdate(rows, P)
    assert np.array_equal(kept.dense(), plain.dense())
    assert np.array_equal(kept.diagonal, plain.diagonal)
    assert np.array_equal(kept.padded(p + 2).dense(), plain.padded(p + 2).dense())
    assert np.array_equal(MeanInverse().follow([kept, plain]).dense(), MeanInverse().follow([plain, plain]).dense())


@pytest.mark.parametrize("together", [1, 3])
def test_a_prior_is_kept_as_one_number_until_updates_are_added_up(together: int) -> None:
    rng, p = np.random.default_rng(11), 6
    kept, plain = RidgeRegression(p, 0.5, block=9), RidgeRegression(p, 0.5, block=9)
    plain._base = np.eye(p) / 0.5
    assert isinstance(kept.inverse().base, ScaledIdentity)
    plain.inverse()
    for _ in range(10):
        G = rng.standard_normal((together, p))
        kept.add_squares(G)
        plain.add_squares(G)
        assert np.array_equal(kept.inverse().dense(), plain.inverse().dense())
        assert np.array_equal(kept.variance(G), plain.variance(G))
        assert kept.log_det == plain.log_det
    assert isinstance(kept.inverse().base, np.ndarray)


def test_updates_by_sparse_features() -> None:
    rng, p = np.random.default_rng(9), LARGE + 1
    G = sparse_rows(rng, 5, p)
    kept = RidgeRegression(p, 0.5)
    kept.add_squares(G[:1])
    kept.add_squares(G[1:4])
    kept.add_squares(G[4:])
    V = dense(G, 0.5)
    assert kept.variance(G) == pytest.approx(np.einsum("ij,ij->i", G, np.linalg.solve(V, G.T).T))
    assert kept.log_det == pytest.approx(np.linalg.slogdet(V / 0.5)[1])


def test_lam_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"lam\(=0\) must be > 0"):
        ridge(3, 0, False)


def test_the_average_of_inverses_that_change() -> None:
    rng, mean = np.random.default_rng(6), MeanInverse()
    kept = [RidgeRegression(5, 0.5, cadence) for cadence in (500, 7, 40)]
    for turn in range(60):
        for one in kept:
            one.add_squares(rng.standard_normal((1 + turn % 2, 5)))
        average = mean.follow([one.inverse() for one in kept])
        dense_average = np.mean([one.inverse().dense() for one in kept], axis=0)
        assert average.dense() == pytest.approx(dense_average, abs=1e-12)
        G = rng.standard_normal((3, 5))
        assert quadratic(G, average) == pytest.approx(quadratic(G, dense_average), abs=1e-12)


def test_an_inverse_told_once_does_not_change() -> None:
    rng, kept = np.random.default_rng(7), RidgeRegression(4, 1.0)
    told, expected = [], []
    for _ in range(70):
        kept.add_squares(rng.standard_normal((1, 4)))
        told.append(kept.inverse())
        expected.append(kept.inverse().dense())
    assert all(np.array_equal(one.dense(), dense) for one, dense in zip(told, expected, strict=True))


@pytest.mark.parametrize("kind", [Gram, Downdate])
@pytest.mark.parametrize("base", [ScaledIdentity(2, 3.0), np.array([[5.0, 1.0], [1.0, 4.0]]), None])
def test_further_rows_and_columns_are_zeros_and_nothing_is_lost(kind: type[Gram], base: Any) -> None:
    rows = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]])
    expected = np.zeros((4, 4))
    expected[:2, :2] = kind.sign * np.array([[10.0, 2.0], [2.0, 5.0]])
    if base is not None:
        expected[:2, :2] += base.dense() if isinstance(base, ScaledIdentity) else base
    wider = kind(rows, base).padded(4)
    assert type(wider) is kind
    assert wider.shape == (4, 4)
    assert np.array_equal(wider.dense(), expected)
    assert np.array_equal(wider.diagonal, np.diag(expected))


def test_a_sum_that_was_added_up_keeps_growing_in_more_dimensions() -> None:
    rng = np.random.default_rng(12)
    growing, rows = GrowingGram(2, cadence=3), rng.standard_normal((7, 2))
    for row in rows:
        growing.add(row[None])
    assert growing.matrix.base is not None
    wider, news = growing.padded(3), rng.standard_normal((4, 3))
    wider.add(news)
    whole = np.vstack([np.hstack([rows, np.zeros((7, 1))]), news])
    assert wider.matrix.dense() == pytest.approx(whole.T @ whole)
    assert growing.matrix.dense() == pytest.approx(rows.T @ rows)
