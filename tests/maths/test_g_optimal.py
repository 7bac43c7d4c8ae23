"""G-optimal designs for several clients: certificates, known optima, the min-max solver, few arms, bad cases."""

from typing import Any

import numpy as np
import pytest

from coband.simulator.maths.exploration import g_optimal as module
from coband.simulator.maths.exploration.design import Design, DesignError, min_max_design
from coband.simulator.maths.exploration.g_optimal import core, g_optimal
from tests.every import every


def instance(seed: int) -> tuple[Any, Any, Any]:
    """1 to 7 clients with 2 to 8 arms each; even seeds: one parameter for all, odd ones: one for each arm."""
    rng = np.random.default_rng((42, seed))
    sizes = rng.integers(2, 9, int(rng.integers(1, 8)))
    features = rng.standard_normal((int(sizes.sum()), int(rng.integers(1, 5)))) * rng.uniform(0.1, 3.0)
    arms = np.concatenate([np.arange(size) for size in sizes])
    return np.repeat(np.arange(len(sizes)), sizes), arms * (seed % 2), features


def largest(clients: Any, blocks: Any, features: Any, weights: Any) -> tuple[float, int]:
    """G(pi) and the sum of ranks, by definition."""
    V = {b: (features[blocks == b].T * weights[blocks == b]) @ features[blocks == b] for b in set(blocks.tolist())}
    g = [
        e @ np.linalg.pinv(V[b], rcond=1e-9, hermitian=True) @ e for b, e in zip(blocks.tolist(), features, strict=True)
    ]
    ranks = sum(int(np.linalg.matrix_rank(features[blocks == b])) for b in V)
    return sum(max(g[k] for k in np.flatnonzero(clients == i)) for i in set(clients.tolist())), ranks


@every("gap", [0.1, 1e-5])
@every("seed", range(40))
def test_the_certificate_is_true(seed: int, gap: float) -> None:
    clients, blocks, features = instance(seed)
    found = g_optimal(clients, blocks, features, gap)
    value, ranks = largest(clients, blocks, features, found.weights)
    assert found.value == pytest.approx(value, rel=1e-6)
    assert ranks - 1e-6 <= value <= ranks + gap + 1e-6
    assert found.bound == pytest.approx(ranks, rel=1e-6)
    assert (found.weights >= 0).all()
    assert np.bincount(clients, found.weights) == pytest.approx(1.0)


@every("seed", range(0, 20, 2))
def test_for_one_client_it_is_the_min_max_design_of_the_arms_themselves(seed: int) -> None:
    _, _, features = instance(seed)
    one = np.zeros(len(features), dtype=np.int64)
    if len(features) < features.shape[1]:
        return
    found, other = g_optimal(one, one, features, 1e-6), min_max_design(features, features, 0.0)
    assert found.value == pytest.approx(other.value, rel=1e-5)
    assert found.value == pytest.approx(features.shape[1], rel=1e-5)


@every("d", [1, 4, 8])
def test_few_arms_keep_weight(d: int) -> None:
    """Within twice the optimum, on hardly more arms than span all; as near as one likes, on d (d + 1) / 2 or so."""
    X = np.random.default_rng(d).standard_normal((200, d))
    coarse, fine = core(X, float(d)), core(X, 0.01)
    assert coarse.value <= 2 * d + 1e-9
    assert np.count_nonzero(coarse.weights) <= 2 * d
    assert fine.value <= d + 0.01 + 1e-9
    assert np.count_nonzero(fine.weights) <= d * (d + 1) / 2 + d


def test_few_arms_of_a_subspace() -> None:
    X = np.random.default_rng(1).standard_normal((50, 2)) @ np.random.default_rng(2).standard_normal((2, 6))
    found = core(X, 1e-3)
    assert found.bound == pytest.approx(2.0)
    assert found.value <= 2.0 + 1e-3 + 1e-9


def test_the_basis_vectors_get_equal_weights() -> None:
    one = np.zeros(3, dtype=np.int64)
    assert g_optimal(one, one, 2.0 * np.eye(3), 1e-9).weights == pytest.approx(1.0 / 3.0)


def test_arms_of_length_0_and_single_arms() -> None:
    found = g_optimal(np.array([0, 0, 0, 1]), np.zeros(4, dtype=np.int64), np.array([[0.0], [1], [0], [1]]), 1e-9)
    assert found.weights == pytest.approx([0, 1, 0, 1])
    assert isinstance(found, Design)


def test_a_gap_that_is_not_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SWEEPS", 1)
    clients, blocks, features = instance(2)
    with pytest.raises(DesignError, match=r"the design's G is \S+ after 1 sweeps, above its bound \d \+ 1e-09"):
        g_optimal(clients, blocks, features, 1e-9)
