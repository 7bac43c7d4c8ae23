"""A Nystrom posterior for many observations, on a dictionary that is chosen among them.

With embeddings z over the dictionary (``maths.posteriors.dictionary``), A = sum z z^T and b = sum z y,

    mu(x) = z^T (A + lam I)^(-1) b,   sigma(x)^2 = (k(x, x) - z^T z)/lam + z^T (A + lam I)^(-1) z

(Li et al. 2023, "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", eq. 2). As long
as there are not more observations than places all are in the dictionary, and the posterior is exact. With m places the
dictionary is chosen among the first 2 m observations when there are so many, then among the first 4 m, 8 m and so on; A
and b are then computed again. So n observations cost O(n m^2 + m^3 log n).

The choice is greedy: each time the point with the largest rho(p)^2 r(p) is taken, where r(p) = k(p, p) - ||z(p)||^2 is
what the dictionary leaves unexplained and rho(p) in [-1, 1] (the *relevance*) says how much p tells about the task that
the posterior is asked about. With rho = 1 this is Cholesky factorisation with complete pivoting ("Low-rank kernel
learning", Fine and Scheinberg 2001, JMLR 2); with other rho it is the same for D K D, D the diagonal matrix of rho.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import dpotrf, dsyrk, dtrtrs
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior

CANDIDATES = 4
"""At most so many points for each place in the dictionary are looked at: the most relevant ones, of equals the newest.

This bounds the cost of a choice of m points by 2 CANDIDATES m^3 multiplications, however many observations there are.
"""
NEGLIGIBLE = 1e-8
"""A point whose rho^2 r is below this share of the largest rho^2 k(p, p) adds nothing, and is left out."""
TIED = 1e-9
"""Scores that differ by this share of the larger one are equal, and the first point wins, whatever rounding does."""
POINTS_AT_ONCE = 64


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
    for start in range(0, len(points), POINTS_AT_ONCE):
        rows = slice(start, start + POINTS_AT_ONCE)
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


BLOCK = 4096
"""Observations that are embedded at once when statistics are computed again, which bounds the memory for it."""
GROWTH = 2
"""Observations at a choice of the dictionary over those at the one before."""
Relevance = Callable[[FloatArray], FloatArray]


class GrowingNystrom(Posterior):
    """Statistics of one agent's data over a dictionary of at most ``size`` of its points.

    The order of observations matters, as it decides among which ones the dictionary is chosen; the calls do not. A
    new dictionary may explain some data less well, so that ``log_det`` falls a little.

    Args:
        size: number of points in the dictionary at most.
        relevance: of points (n, d) how much each tells about what is asked, in [-1, 1], (n,); None for 1.
    """

    def __init__(self, kernel: Kernel, lam: float, size: int, relevance: Relevance | None = None) -> None:
        self._lam, self._limit, self._relevance = lam, size, relevance
        self.dictionary = Dictionary(kernel)
        self._seen: GrowingRows | None = None  # rows [point | reward]
        self._due = size * GROWTH  # observations at the next choice of the dictionary
        self._A = np.zeros((0, 0), order="F")
        self._b = np.zeros(0)
        self._factor = self._A
        self._factored = True
        self._whitened = np.zeros(0)

    @property
    def log_det(self) -> float:
        """log det(I + K~/lam), K~ the kernel matrix of the embedded points."""
        self._refactor()
        pivots = np.diagonal(self._factor)
        return float(2.0 * np.log(pivots).sum() - len(pivots) * np.log(self._lam))

    def update(self, observations: Observations) -> None:
        P, y = observations.features, observations.rewards
        if not len(y):
            return
        if self._seen is None:
            self._seen = GrowingRows(P.shape[1] + 1, 2 * len(y))
        before = self._seen.size
        self._seen.append(np.column_stack([P, y]))
        if self._seen.size >= self._due:
            self._choose()
            before = 0
        elif before < self._limit:
            self._grow(P[: self._limit - before])
        self._add(before)

    def _grow(self, P: FloatArray) -> None:
        """Append points to the dictionary; earlier data are points of it, so their new coordinates are zeros."""
        self.dictionary = self.dictionary.appended(P)
        A, b = self._A, self._b
        self._begin()
        self._A[: len(A), : len(A)], self._b[: len(b)] = A, b

    def _choose(self) -> None:
        """Start again with a dictionary of the points that tell most."""
        assert self._seen is not None
        while self._due * GROWTH <= self._seen.size:
            self._due *= GROWTH
        P, kernel = self._seen.leading(self._due)[:, :-1], self.dictionary.kernel
        rho = np.ones(len(P)) if self._relevance is None else self._relevance(P)
        self.dictionary = Dictionary(kernel).appended(P[greedy_choice(kernel, P, rho, self._limit)])
        self._due *= GROWTH
        self._begin()

    def _begin(self) -> None:
        m = self.dictionary.size
        self._A, self._b = np.zeros((m, m), order="F"), np.zeros(m)
        self._factor = np.empty_like(self._A, order="F")  # kept, as fresh memory costs more than the factor

    def _add(self, first: int) -> None:
        """Take observations from number ``first`` on into the statistics."""
        assert self._seen is not None
        self._factored = False
        if not self.dictionary.size:
            return
        for start in range(first, self._seen.size, BLOCK):
            rows = self._seen.leading(start + BLOCK)[start:]
            Z = self.dictionary.embed(rows[:, :-1]).T
            self._A = dsyrk(1.0, Z, beta=1.0, c=self._A, lower=1, overwrite_c=1)
            self._b += Z @ rows[:, -1]

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        P = features_of(arms)
        prior = self.dictionary.kernel.diag(P)
        if not self.dictionary.size or not len(P):
            return np.zeros(len(P)), prior / self._lam
        Z = self.dictionary.embed(P)
        self._refactor()
        U, _ = dtrtrs(self._factor, Z.T, lower=1)
        unseen = prior - np.einsum("ij,ij->i", Z, Z)
        variance = np.maximum(unseen, 0.0) / self._lam + np.einsum("ij,ij->j", U, U)
        return U.T @ self._whitened, variance

    def _refactor(self) -> None:
        if self._factored:
            return
        np.copyto(self._factor, self._A)
        self._factor.flat[:: len(self._factor) + 1] += self._lam
        self._factor, _ = dpotrf(self._factor, lower=1, overwrite_a=1, clean=0)
        self._whitened, _ = dtrtrs(self._factor, self._b, lower=1)
        self._factored = True
