"""How hard an instance is and whether theorems hold, against kernel formulas in plain loops."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.runs import world
from coband.simulator.maths.exploration import conditions
from coband.simulator.maths.exploration.pairs import Pairs, pairs_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import conditions as oracle
from tests.oracles.kernels import plain

KERNEL = {
    "kind": "product",
    "factors": [
        {"kind": "gaussian", "length_scale": 0.6, "columns": [0]},
        {"kind": "gaussian", "length_scale": 0.5, "columns": [1, 2]},
    ],
}
TABLES = [{"kind": "table", "tasks": tasks, "size": 3, "ones": 1} for tasks in ("same", "similar", "different")]
DRAWN = [{"kind": "kernel", "kernel": KERNEL, "count": 4, "spread": spread} for spread in (0.0, 0.8)]

THEOREMS = [(1e-2, 0.1), (1e-4, 0.5)]
"""xi and epsilon."""


def instance(features: dict[str, Any], agents: int = 3, gap: float = 0.5, seed: int = 1) -> tuple[Pairs, Any]:
    made = world({"kind": "pure_exploration", "features": features, "gap": gap}, seed, agents)
    points = np.ascontiguousarray(made.knowledge().reshape(-1, made.dimension))
    kernel = plain({"kind": "linear"} if features["kind"] == "table" else KERNEL)
    return pairs_of(kernel(points, points), agents), np.stack([made.means(agent, 1) for agent in range(agents)])


@pytest.mark.parametrize("xi", [1e-2, 1e-3])
@pytest.mark.parametrize("features", [*TABLES, *DRAWN])
def test_hardness_is_the_smallest_over_all_designs(features: dict[str, Any], xi: float) -> None:
    pairs, F = instance(features)
    found = conditions.difficulty(pairs, F, xi)
    design = pairs.towards(("hardness", F.tobytes()), lambda: pytest.fail("is remembered"), xi)
    assert found.hardness == pytest.approx(oracle.hardness_at(pairs.gram, F, xi, design.weights), rel=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.maximum(design.weights * np.exp(rng.normal(0, 0.3, len(F.ravel()))), 1e-9)
        assert found.hardness <= oracle.hardness_at(pairs.gram, F, xi, other / other.sum()) * (1 + 1e-6)


@pytest.mark.parametrize("xi", [1e-2, 1e-3])
@pytest.mark.parametrize("features", [*TABLES, *DRAWN])
def test_effective_dimension(features: dict[str, Any], xi: float) -> None:
    """Against weights found by small steps uphill from the uniform ones."""
    pairs, _ = instance(features)
    K = pairs.gram
    weights = np.full(len(K), 1 / len(K))
    for _ in range(4000):
        roots = np.sqrt(weights)
        inner = np.linalg.inv(xi * np.eye(len(K)) + roots[:, None] * K * roots)
        gain = np.diag(K - (K * roots) @ inner @ (roots[:, None] * K)) / xi
        weights = weights * gain**0.5
        weights = weights / weights.sum()
    assert conditions.effective_dimension(pairs.features, xi) == oracle.effective_dimension(K, weights, xi)


@pytest.mark.parametrize(("features", "rank"), [*zip(TABLES, (1, 2, 3), strict=True), (DRAWN[0], 1), (DRAWN[1], 3)])
def test_rank_of_the_tasks(features: dict[str, Any], rank: int) -> None:
    assert conditions.task_rank(instance(features)[0]) == rank


@every(
    "features, bounds",
    everyday(4, [*product([TABLES[1], DRAWN[1]], THEOREMS), *product([*TABLES[::2], DRAWN[0]], THEOREMS)]),
)
def test_conditions_of_both_theorems(features: dict[str, Any], bounds: tuple[float, float]) -> None:
    xi, epsilon = bounds
    pairs, F = instance(features, gap=0.1)
    found = conditions.difficulty(pairs, F, xi)
    excess = conditions.theorem_1_excess(pairs, found, xi, epsilon)
    assert excess == pytest.approx(oracle.theorem_1_excess(pairs.gram, F, xi, epsilon), rel=1e-3)
    asked = conditions.theorem_2(pairs, F, found, xi, epsilon)
    for budget in (100, 300, 1000, 10_000):
        assert asked.hold(xi, budget) == oracle.theorem_2_holds(pairs.gram, F, xi, epsilon, budget, found.hardness)


@pytest.mark.parametrize(
    ("tasks", "gap", "xi", "budget"),
    [("different", 0.03, 2.56e-11, 19_496), ("similar", 0.03, 1.52e-9, 6_053), ("same", 0.03, 2.57e-8, 2_367)],
)
def test_theorem_2_on_the_instances_of_the_paper(tasks: str, gap: float, xi: float, budget: int) -> None:
    pairs, F = instance({"kind": "table", "tasks": tasks}, 5, gap)
    asked = conditions.theorem_2(pairs, F, conditions.difficulty(pairs, F, 1e-9), 1e-9, 0.1)
    assert asked.largest_xi == pytest.approx(xi, rel=0.01)
    assert asked.smallest_budget == pytest.approx(budget, rel=0.001)
    assert asked.all_apart


def test_arms_that_are_close_together_break_the_third_condition() -> None:
    gram = np.array([[1.0, 0.9999], [0.9999, 1.0]])
    F = np.array([[0.0, 0.1]])
    asked = conditions.theorem_2(pairs_of(gram, 1), F, conditions.difficulty(pairs_of(gram, 1), F, 0.5), 0.5, 0.1)
    assert not asked.all_apart
