"""What Du et al. 2023's theorems ask of an instance, in numbers: hardness, effective dimension, regularisation, budget.

All of it needs the hidden means, so it is worked out after a run and no agent sees it. Du et al. 2023 is "Collaborative
Pure Exploration in Kernel Bandit".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import BoolArray, FloatArray, IndexArray
from coband.simulator.maths.exploration.design import DesignError, norms, root
from coband.simulator.maths.exploration.pairs import EQUAL, Pairs

_STEPS = 5000
_ENOUGH = 1e-6  # relative gap of the largest information gain


@dataclass(frozen=True)
class Difficulty:
    """How hard an instance is.

    Attributes:
        hardness: rho*(xi) = min_lambda max over v and x != x* of ||phi(x*) - phi(x)||^2_{A(xi, lambda)^-1} / gap^2.
        effective_dimension: d_eff, see :func:`effective_dimension`.
        task_rank: rank of K_Z, see :func:`task_rank`.
        norm: smallest norm of a theta* with these means.
        gap: Delta_min.
    """

    hardness: float
    effective_dimension: int
    task_rank: int
    norm: float
    gap: float


def difficulty(pairs: Pairs, means: FloatArray, xi: float) -> Difficulty:
    """The numbers of Du et al. 2023, sections 4.3 and 3, for pairs whose hidden means are ``means``, (V, n)."""
    return Difficulty(
        pairs.towards(("hardness", means.tobytes()), lambda: _towards_best(pairs, means), xi).value,
        effective_dimension(pairs.features, xi),
        task_rank(pairs),
        smallest_norm(pairs.gram, means.ravel()),
        1.0 / float(_inverse_gaps(means).max()),
    )


def _inverse_gaps(means: FloatArray) -> FloatArray:
    """1/(F(x*) - F(x)) for every suboptimal arm, agent by agent."""
    gaps = means.max(axis=1, keepdims=True) - means
    found: FloatArray = 1.0 / gaps[_suboptimal(means)]
    return found


def _suboptimal(means: FloatArray) -> BoolArray:
    wrong = np.ones(means.shape, dtype=np.bool_)
    wrong[np.arange(len(means)), means.argmax(axis=1)] = False
    return wrong


def _against_best(means: FloatArray) -> tuple[IndexArray, IndexArray]:
    """Numbers of the best pair of its agent, and of the suboptimal pair, for every suboptimal pair."""
    V, n = means.shape
    return np.repeat(np.arange(V) * n + means.argmax(axis=1), n - 1), np.flatnonzero(_suboptimal(means).ravel())


def _towards_best(pairs: Pairs, means: FloatArray) -> FloatArray:
    """(phi(x*) - phi(x)) / gap of every suboptimal arm."""
    best, other = _against_best(means)
    return (pairs.features[best] - pairs.features[other]) * _inverse_gaps(means)[:, None]


def smallest_norm(gram: FloatArray, means: FloatArray) -> float:
    """The smallest ||theta|| with theta . phi_i = means_i for features with these inner products."""
    theta = np.linalg.lstsq(root(gram), means, rcond=None)[0]
    return float(np.linalg.norm(theta))


def effective_dimension(features: FloatArray, xi: float) -> int:
    """d_eff = min{j: j xi log(nV) >= sum_{i > j} alpha_i} (Du et al. 2023, section 4.3).

    alpha are the eigenvalues of K_lambda in decreasing order, lambda the weights with the largest
    log det(I + K_lambda/xi). The weights are multiplied by their slopes until none is above the mean by 1e-6 of it.

    Raises:
        DesignError: they do not settle.
    """
    m = len(features)
    weights = np.full(m, 1.0 / m)
    for _ in range(_STEPS):
        slopes = norms(features, weights, features, xi)
        mean = float(weights @ slopes)
        if float(slopes.max()) <= mean * (1.0 + _ENOUGH):
            break
        weights = weights * slopes / mean
    else:
        if float(slopes.max()) > mean * (1.0 + 1e3 * _ENOUGH):
            raise DesignError("the design of the largest information gain was not found")
    alpha = np.sort(np.linalg.eigvalsh((features.T * weights) @ features))[::-1]
    tails = np.append(np.cumsum(np.maximum(alpha, 0.0)[::-1])[::-1], 0.0)
    allowed = np.arange(len(tails)) * xi * math.log(m)
    return int(np.argmax(allowed >= tails))


def task_rank(pairs: Pairs) -> int:
    """rank(K_Z), read off the pairs of all agents with their arm i, whose kernel matrix is k_X(x_i, x_i) K_Z.

    It is Du et al. 2023's rank where agents have the same arms in the same order, as in the problems here.
    """
    blocks = pairs.gram.reshape(pairs.agents, pairs.arms, pairs.agents, pairs.arms)
    return int(root(np.ascontiguousarray(np.einsum("uiwi->uw", blocks))).shape[1])


def theorem_1_excess(pairs: Pairs, found: Difficulty, xi: float, epsilon: float) -> float:
    """How many times too large sqrt(xi) max ||phi_i - phi_j||_{A(xi, lambda_1*)^-1} is; Theorem 1 wants at most 1.

    It compares with Delta_min / (32 (1 + epsilon) ||theta*||).
    """
    rho = pairs.design(np.ones((pairs.agents, pairs.arms), dtype=np.bool_), xi).value
    return math.sqrt(xi * rho) * 32.0 * (1.0 + epsilon) * found.norm / found.gap


@dataclass(frozen=True)
class BudgetConditions:
    """What Theorem 2 (Algorithm 2, line 1) asks for.

    Attributes:
        largest_xi: 1 / (16 (1 + epsilon)^2 rho*(xi)^2 ||theta*||^2).
        smallest_budget: of T, max{rho*(xi), d(xi, lambda_1*)}/V log omega(xi, X), as printed: what rounding needs but
            for a constant, which the paper leaves out. A run refuses a budget that its rounding cannot do with.
        all_apart: whether omega(xi, {x*, x}) >= 1 for every suboptimal arm.
    """

    largest_xi: float
    smallest_budget: float
    all_apart: bool

    def hold(self, xi: float, budget: int) -> bool:
        return xi <= self.largest_xi and budget >= self.smallest_budget and self.all_apart


def theorem_2(pairs: Pairs, means: FloatArray, found: Difficulty, xi: float, epsilon: float) -> BudgetConditions:
    """The conditions of Theorem 2 for an instance."""
    V, n = means.shape
    design = pairs.design(np.ones((V, n), dtype=np.bool_), xi)
    spectrum = np.linalg.eigvalsh((pairs.features.T * design.weights) @ pairs.features)
    demand = max(found.hardness, float((spectrum > xi).sum()))
    return BudgetConditions(
        1.0 / (16.0 * (1.0 + epsilon) ** 2 * found.hardness**2 * found.norm**2),
        demand / V * math.log(max(pairs.omega(range(V * n), xi), 1.0)),
        all(_apart(pairs, best, other, xi) for best, other in zip(*_against_best(means), strict=True)),
    )


def _apart(pairs: Pairs, best: int, other: int, xi: float) -> bool:
    """Whether omega(xi, {x*, x}) >= 1, by a bound that is quick and, where it does not say so, by the design.

    ||y||^2_{A^-1} >= ||y||^4 / y^T A y, and y^T A y <= xi ||y||^2 + max_i (phi_i^T y)^2 whatever the weights are.
    """
    y = pairs.features[best] - pairs.features[other]
    length = float(y @ y)
    quick = length**2 / (xi * length + float(np.square(pairs.features @ y).max()))
    return quick >= 1.0 or pairs.omega(sorted((int(best), int(other))), xi) >= 1.0 - EQUAL
