"""Which points make a Nystrom dictionary: those that explain most about the arms of one task.

A dictionary S leaves the residual variance r(p) = k(p, p) - ||z(p)||^2 of a point p unexplained. Points are taken
greedily, each time the one with the largest rho(p)^2 r(p), where rho(p) in [-1, 1] says how much p tells about the
task that the posterior is asked about (its *relevance*). With rho = 1 this is Cholesky factorisation with complete
pivoting, the greedy rule for the smallest trace of K - K_S ("Low-rank kernel learning", Fine and Scheinberg 2001, JMLR
2); with other rho it is the same for D K D, D the diagonal matrix of relevances. So the own and similar tasks' points
come first, and a point close to one in the dictionary does not come in.
"""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel

CANDIDATES = 4
"""At most so many points for each place in the dictionary are looked at: the most relevant ones, of equals the newest.

This bounds the cost of a choice of m points by 2 CANDIDATES m^3 multiplications, however many observations there are.
"""
NEGLIGIBLE = 1e-8
"""A point whose rho^2 r is below this share of the largest rho^2 k(p, p) adds nothing, and is left out."""
TIED = 1e-9
"""Scores that differ by this share of the larger one are equal, and the first point wins, whatever rounding does."""
BLOCK = 64


def greedy_choice(kernel: Kernel, points: FloatArray, relevance: FloatArray, size: int) -> IndexArray:
    """Numbers of the points of a dictionary, in the order in which they are taken.

    Args:
        points: (n, d), the newest last.
        relevance: rho of every point, (n,).
        size: how many points are taken at most.

    Returns:
        Numbers of at most ``size`` points, all different.
    """
    weight = np.abs(relevance)
    newest_first = np.argsort(-weight[::-1].round(9), kind="stable")
    candidates = np.sort(len(points) - 1 - newest_first[: CANDIDATES * size])
    chosen = _pivots(kernel, points[candidates], weight[candidates], size)
    return candidates[chosen]


def relevance_of(kernel: Kernel, points: FloatArray, twins: FloatArray) -> FloatArray:
    """rho(p) = k(p, p') / sqrt(k(p, p) k(p', p')) of points (n, d) and their twins p' (n, d), shape (n,); 0 for 0/0.

    The twin of a point is the same arm of the task that is asked about.
    """
    cross = np.empty(len(points))
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        cross[rows] = np.diagonal(kernel(points[rows], twins[rows]))
    scale = np.sqrt(kernel.diag(points) * kernel.diag(twins))
    return np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0.0)


def _pivots(kernel: Kernel, points: FloatArray, weight: FloatArray, size: int) -> IndexArray:
    """The first ``size`` pivots of the Cholesky factorisation of D K D with complete pivoting."""
    residual = weight**2 * kernel.diag(points)
    negligible = NEGLIGIBLE * residual.max(initial=0.0)
    bound = kernel.against(points)
    columns = np.empty((size, len(points)))
    chosen: list[int] = []
    while len(chosen) < size:
        largest = residual.max()
        if not largest > negligible:
            break
        pivot = int(np.argmax(residual >= largest * (1.0 - TIED)))
        known = columns[: len(chosen)]
        column = bound.evaluate(points[pivot : pivot + 1])[0]
        column *= weight * weight[pivot]
        column -= known[:, pivot] @ known
        column /= np.sqrt(residual[pivot])
        columns[len(chosen)] = column
        residual -= column**2
        residual[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, dtype=np.intp)
