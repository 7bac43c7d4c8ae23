"""The Gaussian width and its design against random draws, a general solver and values in closed form."""

from itertools import combinations, pairwise
from math import pi

import numpy as np
import pytest

from coband.simulator.maths.exploration import pairs as widths
from coband.simulator.maths.exploration.design import min_max_design, root
from coband.simulator.maths.exploration.pairs import pairs_of
from tests.oracles import cope_alone

TABLE = np.array([[float(i in chosen) for i in range(4)] for chosen in combinations(range(4), 2)])


@pytest.mark.parametrize("dimension", [1, 2, 4, 9])
def test_directions_are_like_normal_ones(dimension: int) -> None:
    eta = widths.directions(dimension)
    assert eta.shape == (2 * widths.POINTS, dimension)
    assert np.abs(eta.sum(axis=0)).max() < 1e-9
    normal = np.random.default_rng(0).standard_normal((400_000, dimension))
    assert np.linalg.norm(eta, axis=1).mean() == pytest.approx(np.linalg.norm(normal, axis=1).mean(), rel=5e-3)
    second = eta.T @ eta / len(eta)
    assert second == pytest.approx(second[0, 0] * np.eye(dimension), abs=1e-9)


def test_two_arms_in_closed_form() -> None:
    """E max of two is ||phi - phi'||_{A^-1} / sqrt(2 pi); the smallest norm here is 2."""
    for arms in ([0, 1], [0, 5], [2, 4]):
        assert widths.width_design(TABLE, arms).value == pytest.approx(4 / (2 * pi), rel=5e-3)


@pytest.mark.parametrize("arms", [[0, 5], [3, 9]])
def test_two_arms_whose_best_designs_are_many(arms: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their vectors share a coordinate; no single step shows that its design is nearly the best."""
    monkeypatch.setattr(widths, "_STEPS", 200)
    table = np.array([[float(i in chosen) for i in range(5)] for chosen in combinations(range(5), 2)])
    found = widths.width_design(root(table @ table.T), arms)
    norm = min_max_design(table, table[arms[:1]] - table[arms[1:]], 0.0).value
    assert found.value == pytest.approx(norm / (2 * pi), rel=5e-3)
    assert 0 <= found.gap <= 2 * widths.ACCURACY


def test_an_arm_whose_factor_was_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smooth kernel and even weights: errors of the sum say so of an arm that the best design needs."""
    monkeypatch.setattr(widths, "_STEPS", 200)
    rng = np.random.default_rng(15)
    points = rng.random((11, 2))
    features = root(np.exp(-np.square(points[:, None] - points).sum(axis=2) / (2 * 4.5**2)))
    arms = sorted(rng.permutation(11)[:7].tolist())
    factors = widths._factors(features, arms, np.full(11, 1 / 11), widths.directions(features.shape[1]))[1]
    assert factors.min() < 0
    found = widths.width_design(features, arms)
    assert 0 <= found.gap <= 2 * widths.ACCURACY
    assert found.weights[factors.argmin()] > 5 * widths._EVEN / 11  # far more than every arm gets


def test_one_arm_has_no_width() -> None:
    found = widths.width_design(TABLE, [3])
    assert found.value == 0
    assert found.weights == pytest.approx(np.full(6, 1 / 6))


def test_the_instance_of_paper_003() -> None:
    """Three rounds: log2 of gamma is between 2 and 3; by symmetry the best design is uniform."""
    found = widths.width_design(TABLE, list(range(6)))
    assert found.value == pytest.approx(
        cope_alone.width(TABLE @ TABLE.T, np.full(6, 1 / 6), list(range(6))) ** 2, rel=0.02
    )
    assert found.weights == pytest.approx(np.full(6, 1 / 6), abs=0.005)
    assert np.ceil(np.log2(found.value)) == 3


@pytest.mark.parametrize("seed", range(10))
def test_against_random_draws_and_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng((9, seed))
    Phi = rng.standard_normal((int(rng.integers(4, 8)), int(rng.integers(2, 4)))) * rng.uniform(0.3, 3)
    arms = sorted(rng.choice(len(Phi), int(rng.integers(2, len(Phi) + 1)), replace=False).tolist())
    pairs = pairs_of(Phi @ Phi.T, 1)
    found = pairs.gaussian_width(arms)
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights.min() > 0
    assert found.value == pytest.approx(cope_alone.width(pairs.gram, found.weights, arms) ** 2, rel=0.04)
    assert found.value == pytest.approx(cope_alone.gamma(pairs.gram, arms), rel=0.04)
    assert 0.9 * found.value <= found.bound <= found.value


def test_a_larger_set_is_wider() -> None:
    rng = np.random.default_rng(3)
    Phi = rng.standard_normal((9, 4))
    sizes = [widths.width_design(Phi, list(range(size))).value for size in range(1, 10)]
    assert all(after > before * 0.999 for before, after in pairwise(sizes))
