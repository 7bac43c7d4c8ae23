"""The dictionary of a growing Nystrom posterior by plain loops: greedy choice by the residual variance that is left.

With a dictionary S, the residual of a point is r(p) = k(p, p) - k_S(p)^T K_SS^(-1) k_S(p); the next point is the one
with the largest rho(p)^2 r(p), the first one of equals. Greedy trace reduction: "Low-rank kernel learning" (Fine and
Scheinberg 2001).
"""

from collections.abc import Sequence

import numpy as np

from tests.oracles.posterior import FloatArray, Kernel


def dictionary(kernel: Kernel, points: Sequence[FloatArray], rho: Sequence[float], size: int) -> list[int]:
    """Numbers of the points in the dictionary after all ``points``, the oldest first.

    All points as long as there are fewer than twice as many as places, up to the number of places; then a choice among
    the first 2, 4, 8, ... times as many as places.
    """
    if len(points) < 2 * size:
        return list(range(min(size, len(points))))
    looked_at = 2 * size
    while 2 * looked_at <= len(points):
        looked_at *= 2
    by_relevance = sorted(range(looked_at), key=lambda i: (-round(abs(rho[i]), 9), -i))
    return greedy(kernel, points, rho, size, sorted(by_relevance[: 4 * size]))


def greedy(
    kernel: Kernel, points: Sequence[FloatArray], rho: Sequence[float], size: int, candidates: Sequence[int]
) -> list[int]:
    """At most ``size`` of the candidates, in the order in which they are taken."""
    chosen: list[int] = []
    first = 0.0
    while len(chosen) < size:
        scores = [rho[i] ** 2 * residual(kernel, points, i, chosen) for i in candidates]
        best = max(scores)
        first = first or best
        if best <= 1e-8 * first:
            break
        place = next(place for place, score in enumerate(scores) if score >= best * (1 - 1e-9))
        chosen.append(candidates[place])
    return chosen


def residual(kernel: Kernel, points: Sequence[FloatArray], i: int, chosen: Sequence[int]) -> float:
    """k(p, p) - k_S(p)^T K_SS^(-1) k_S(p)."""
    p = points[i][None]
    own = float(kernel(p, p)[0, 0])
    if not chosen:
        return own
    if i in chosen:
        return 0.0
    S = np.array([points[j] for j in chosen])
    k = kernel(S, p)[:, 0]
    return own - float(k @ np.linalg.solve(kernel(S, S), k))
