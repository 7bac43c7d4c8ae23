"""Tasks of agents: f_v(x) = F(z_v, x) with F from the RKHS of K."""

from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.graphs import POOL, graph_of
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.problems.datasets import DataError
from coband.simulator.problems.network import NetworkProblem
from tests.oracles.kernels import matrix

BALL = {"kind": "ball", "dimension": 3, "count": 4}
GAUSSIAN = {"kind": "gaussian", "gamma": 1.0}


def build(agents: int = 6, seed: int = 0, topology: Any = None, **parts: Any) -> Any:
    problem = NetworkProblem.model_validate({"kind": "network", "arms": BALL, "kernel": GAUSSIAN, **parts})
    if topology is None:
        return problem.build(Streams(seed), agents)
    return problem.build_on(graph_of(topology, agents, seed).distances, Streams(seed), agents)


@pytest.mark.parametrize("composition", ["product", "sum"])
@pytest.mark.parametrize(
    "network_kernel", [GAUSSIAN, {"kind": "linear"}, {"kind": "matern", "nu": 1.5, "length_scale": 1.0}]
)
def test_rewards_are_a_function_of_that_norm_in_the_rkhs(composition: str, network_kernel: dict[str, Any]) -> None:
    """Nothing with F's values on some points has a smaller norm than f^T K^(-1) f, nearly F's on many points."""
    parts = {
        "contexts": {"kind": "sphere", "dimension": 2},
        "network_kernel": network_kernel,
        "composition": composition,
        "norm": 2.0,
        "centres": 3,
    }
    truth = build(5, **parts)
    X = np.vstack([truth.arms(v, t) for v in range(5) for t in range(1, 5)])
    f = np.concatenate([truth.means(v, t) for v in range(5) for t in range(1, 5)])
    Z = np.repeat(truth.contexts, 16, axis=0)
    K_z, K_x = matrix(network_kernel, Z, Z), matrix(GAUSSIAN, X, X)
    K = K_z * K_x if composition == "product" else K_z + K_x
    norm = float(np.sqrt(f @ np.linalg.solve(K + 1e-10 * np.eye(len(K)), f)))
    assert 0.3 < norm <= 2.0 + 1e-4
    again = build(5, **parts)
    assert np.array_equal(again.arms(3, 2), truth.arms(3, 2))
    assert again.pull(3, 2, 1) == pytest.approx(truth.pull(3, 2, 1), abs=0)


def test_agents_with_the_same_context_have_the_same_task() -> None:
    truth = build(4, arms=POOL, contexts={"kind": "same"}, network_kernel=GAUSSIAN)
    assert truth.fixed_arms
    assert all(np.array_equal(truth.means(0, 1), truth.means(v, 1)) for v in range(4))
    other = build(4, arms=POOL, contexts={"kind": "sphere", "dimension": 2}, network_kernel=GAUSSIAN)
    assert not np.array_equal(other.means(0, 1), other.means(1, 1))


@pytest.mark.parametrize("hops", [1, 2])
def test_clusters_around_centres_are_near_and_colours_apart(hops: int) -> None:
    distances = graph_of("ring", 12, 0).distances
    near = build(12, topology="ring", contexts={"kind": "clusters", "hops": hops}).contexts
    assert near.sum() == 12
    for column in near.T:
        members = np.flatnonzero(column)
        assert min(distances[c, members].max() for c in members) <= hops
    apart = build(12, topology="ring", contexts={"kind": "clusters", "hops": hops, "around": "colours"}).contexts
    for column in apart.T:
        members = np.flatnonzero(column)
        assert all(distances[v, u] > hops for v in members for u in members if v != u)


def test_shift_moves_the_arms_of_an_agent() -> None:
    parts = {"contexts": {"kind": "sphere", "dimension": 2}, "network_kernel": GAUSSIAN}
    plain, shifted = build(3, **parts), build(3, shift=2.0, **parts)
    for v in range(3):
        moves = shifted.arms(v, 1) - plain.arms(v, 1)
        assert np.ptp(moves, axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
        assert np.linalg.norm(moves[0]) > 0.1


def test_clusters_need_a_graph() -> None:
    with pytest.raises(DataError, match="kind clusters needs a graph of agents"):
        build(3, contexts={"kind": "clusters"})
