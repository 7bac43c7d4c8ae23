"""Du et al. 2023's hardness, effective dimension and the conditions of its theorems, from kernel values and plain
loops."""

from math import log, sqrt

import numpy as np

from tests.oracles.cope import inverse_norms, rho
from tests.oracles.posterior import FloatArray


def best_and_others(F: FloatArray) -> list[tuple[int, int, float]]:
    """(best pair, suboptimal pair, gap) of every agent; F (V, n)."""
    V, n = F.shape
    found = []
    for v in range(V):
        top = max(range(n), key=lambda x: F[v, x])
        found += [(v * n + top, v * n + x, float(F[v, top] - F[v, x])) for x in range(n) if x != top]
    return found


def hardness_at(K: FloatArray, F: FloatArray, xi: float, weights: FloatArray) -> float:
    """max ||phi(x*) - phi(x)||^2 / gap^2 at some weights; rho*(xi) is the smallest of them."""
    listed = best_and_others(F)
    norms = inverse_norms(K, weights, xi, [(i, j) for i, j, _ in listed])
    return max(norm / gap**2 for norm, (_, _, gap) in zip(norms, listed, strict=True))


def effective_dimension(K: FloatArray, weights: FloatArray, xi: float) -> int:
    """d_eff for given weights."""
    roots = np.sqrt(weights)
    alpha = sorted(np.linalg.eigvalsh(roots[:, None] * K * roots), reverse=True)
    j = 0
    while j * xi * log(len(K)) < sum(max(a, 0.0) for a in alpha[j:]):
        j += 1
    return j


def theorem_1_excess(K: FloatArray, F: FloatArray, xi: float, epsilon: float) -> float:
    """Left side over right side of Theorem 1's condition."""
    V, n = F.shape
    pairs = [(v * n + i, v * n + j) for v in range(V) for i in range(n) for j in range(i)]
    theta = sqrt(float(F.ravel() @ np.linalg.pinv(K, rcond=1e-11) @ F.ravel()))
    gap = min(gap for _, _, gap in best_and_others(F))
    return sqrt(xi) * sqrt(rho(K, pairs, xi)) / (gap / (32 * (1 + epsilon) * theta))


def theorem_2_holds(K: FloatArray, F: FloatArray, xi: float, epsilon: float, budget: int, hardness: float) -> bool:
    """Algorithm 2, line 1, where rho*(xi) is above d(xi, lambda_1*)."""
    V, m = len(F), len(K)
    assert hardness > m
    theta_squared = float(F.ravel() @ np.linalg.pinv(K, rcond=1e-11) @ F.ravel())
    omega = rho(K, [(i, j) for i in range(m) for j in range(i)], xi)
    apart = all(rho(K, [(i, j)], xi) >= 1 for i, j, _ in best_and_others(F))
    small = xi <= 1 / (16 * (1 + epsilon) ** 2 * hardness**2 * theta_squared)
    return small and budget >= hardness / V * log(omega) and apart
