"""Min-max designs against general solvers, the gap against the truth, rounding against equation 6 of Du et al. 2023."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.exploration import design as designs
from coband.simulator.maths.exploration.pairs import Pairs, pairs_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles.cope import inverse_norms, rho


def instance(seed: int, kernel: bool = False) -> tuple[FloatArray, FloatArray]:
    """Random features of uneven scale (or of a Gaussian kernel) and the differences within random groups."""
    rng = np.random.default_rng((8, seed))
    m = int(rng.integers(6, 16))
    features = rng.standard_normal((m, int(rng.integers(2, 6)))) * rng.uniform(0.1, 2.0)
    features[:, 0] *= 5
    if kernel:
        features = designs.root(np.exp(-(((features[:, None] - features) ** 2).sum(axis=2))))
    groups = [list(range(0, m // 2)), sorted(rng.choice(np.arange(m // 2, m), 3, replace=False).tolist())]
    return features, designs.differences(features, groups)


@every("seed", everyday(5, range(12)))
@every("xi", [0.0, 1e-6, 0.1])
def test_against_a_general_convex_solver(seed: int, xi: float) -> None:
    cp: Any = pytest.importorskip("cvxpy", reason="cvxpy, the general solver to compare with, is not installed")
    features, directions = instance(seed)
    found = designs.min_max_design(features, directions, xi)
    weights, level = cp.Variable(len(features), nonneg=True), cp.Variable()
    A = xi * np.eye(features.shape[1]) + features.T @ cp.diag(weights) @ features
    constraints = [cp.sum(weights) == 1, *(cp.matrix_frac(y, A) <= level for y in directions)]
    best = cp.Problem(cp.Minimize(level), constraints).solve(solver="CLARABEL")
    assert found.value == pytest.approx(best, rel=1e-4)
    assert found.bound <= best * (1 + 1e-6)


@every("seed", range(8))
@every("xi", [1e-3, 0.1])
def test_against_a_local_solver_on_kernel_values(seed: int, xi: float) -> None:
    """SLSQP on the formulas of appendix C.2, which see the kernel alone."""
    features, _ = instance(seed, kernel=True)
    gram = features @ features.T
    arms = list(range(5))
    directions = designs.differences(features, [arms])
    found = designs.min_max_design(features, directions, xi)
    assert found.value == pytest.approx(rho(gram, [(i, j) for i in arms for j in arms[:i]], xi), rel=1e-4)


@given(seed=st.integers(0, 10_000), xi=st.sampled_from([0.0, 1e-8, 1e-3, 1.0]), kernel=st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_certified_gap(seed: int, xi: float, kernel: bool) -> None:
    features, directions = instance(seed, kernel)
    found = designs.min_max_design(features, directions, xi)
    assert 0 <= found.gap <= designs.TOLERANCE
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.min() > 0
    assert designs.norms(features, found.weights, directions, xi).max() == pytest.approx(found.value, rel=1e-9)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(features)))
    assert designs.norms(features, 0.5 * other + 0.5 / len(other), directions, xi).max() >= found.bound


@pytest.mark.parametrize("xi", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("kind", ["table", "kernel", "paper"])
def test_thirty_arms_to_eight_digits(kind: str, xi: float) -> None:
    """Asymmetric instances of the paper's size, and all pairs across agents."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((30, 10)) * rng.uniform(0.01, 3.0, 10)
    if kind == "kernel":
        points = rng.random((30, 3))
        features = designs.root(np.exp(-2.0 * ((points[:, None] - points) ** 2).sum(axis=2)))
    elif kind == "paper":
        table = np.array([[i in pair for i in range(4)] for pair in combinations(range(4), 2)], dtype=float)
        features = np.vstack([np.kron(np.eye(2)[block], table) for block in (0, 0, 1, 1, 1)])
    for groups in ([[0, 1, 2, 3, 4, 5], [6, 9], [12, 13, 16], [20], [25, 27, 28, 29]], [list(range(30))]):
        found = designs.min_max_design(features, designs.differences(features, groups), xi)
        assert 0 <= found.gap <= 1e-8


def test_equal_arms_share_equally() -> None:
    features = np.repeat(np.eye(3), [1, 2, 3], axis=0)
    found = designs.min_max_design(features, designs.differences(features, [[0, 1, 3]]), 0.0)
    assert found.weights == pytest.approx([1 / 3, *[1 / 6] * 2, *[1 / 9] * 3], rel=1e-4)


def test_features_must_span_their_space() -> None:
    features = np.array([[1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(designs.DesignError, match="the features do not span their space; give a ridge"):
        designs.min_max_design(features, designs.differences(features, [[0, 1]]), 0.0)


def test_designs_are_remembered_and_not_changed() -> None:
    gram = instance(3)[0] @ instance(3)[0].T
    pairs, alive = pairs_of(gram, 1), np.ones((1, len(gram)), dtype=np.bool_)
    found = pairs.design(alive, 1e-3)
    assert pairs_of(gram.copy(), 1).design(alive, 1e-3) is found
    assert pairs.design(alive, 1e-2) is not found
    assert Pairs(gram, 1).design(alive, 1e-3).weights.tolist() == found.weights.tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0] = 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_start_changes_the_way_and_not_the_value(seed: int) -> None:
    features, directions = instance(seed)
    first = designs.min_max_design(features, directions, 1e-6)
    fewer = directions[: max(1, len(directions) // 2)]
    warm = designs.min_max_design(features, fewer, 1e-6, first.weights)
    assert warm.value == pytest.approx(designs.min_max_design(features, fewer, 1e-6).value, rel=1e-4)
    assert warm.value <= first.value * (1 + 1e-4)


def test_known_values() -> None:
    """Orthonormal arms: A = diag(lambda), equal weights are best, and each pair has 1/lambda_i + 1/lambda_j = 2d."""
    for d in (2, 3, 7):
        directions = designs.differences(np.eye(d), [list(range(d))])
        assert designs.min_max_design(np.eye(d), directions, 0.0).value == pytest.approx(2.0 * d, rel=1e-4)
    assert designs.min_max_design(np.eye(3), np.empty((0, 3)), 0.0).value == 0.0


def test_kernel_and_features_give_the_same() -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2, (12, 4)).astype(float)
    pairs = Pairs(table @ table.T, 2)
    assert pairs.features.shape[1] == np.linalg.matrix_rank(table)
    weights = rng.dirichlet(np.ones(12))
    directions = designs.differences(table, [[0, 1, 2, 3]])
    by_root = designs.norms(pairs.features, weights, designs.differences(pairs.features, [[0, 1, 2, 3]]), 0.3)
    by_table = designs.norms(table, weights, directions, 0.3)
    by_kernel = inverse_norms(table @ table.T, weights, 0.3, [(i, j) for i in range(4) for j in range(i + 1, 4)])
    assert sorted(by_root) == pytest.approx(sorted(by_table))
    assert by_root.max() == pytest.approx(by_kernel.max())


def test_repeated_differences_count_once() -> None:
    features = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert len(designs.differences(features, [[0, 1, 2], [2, 3]])) == 1


@given(seed=st.integers(0, 10_000), total=st.integers(1, 10**7))
@settings(max_examples=100, deadline=None)
def test_apportionment(seed: int, total: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(int(rng.integers(1, 12)), 0.3)) + 1e-12
    weights /= weights.sum()
    total += len(weights)
    counts = designs.apportion(weights, total)
    assert counts.sum() == total
    assert (counts >= total * weights * (1 - len(weights) / total) - 1e-6).all()


@every("seed", range(12))
@every("epsilon", [0.1, 0.5])
def test_rounding_keeps_equation_6(seed: int, epsilon: float) -> None:
    """From tau samples on the factor is at most 1 + epsilon, half of what equation 6 allows."""
    features, directions = instance(seed)
    found = designs.min_max_design(features, directions, 1e-4)
    planned = designs.norms(features, found.weights, directions, 1e-4).max()
    for more in (0, 7, 1000):
        counts = designs.apportion(found.weights, designs.fewest_samples(found.weights, epsilon) + more)
        factor, total = designs.check_rounding(features, directions, 1e-4, planned, counts, epsilon), counts.sum()
        assert factor <= 1 + epsilon + 1e-9
        rounded = designs.norms(features, counts.astype(float), directions, total * 1e-4).max()
        exact = designs.norms(features, total * found.weights, directions, total * 1e-4).max()
        assert factor == pytest.approx(rounded / exact, rel=1e-9)


def test_a_bad_rounding_is_refused() -> None:
    directions = designs.differences(np.eye(3), [[0, 1, 2]])
    planned = designs.norms(np.eye(3), np.full(3, 1 / 3), directions, 1e-6).max()
    with pytest.raises(designs.DesignError, match="equation 6 of Du et al. 2023 allows 2.2"):
        designs.check_rounding(np.eye(3), directions, 1e-6, planned, np.array([98, 1, 1]), 0.1)
