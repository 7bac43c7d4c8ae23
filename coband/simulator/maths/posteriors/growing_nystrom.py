"""A Nystrom posterior for many observations, on a dictionary that is chosen among them.

With embeddings z over the dictionary (``maths.posteriors.dictionary``), A = sum z z^T and b = sum z y,

    mu(x) = z^T (A + lam I)^(-1) b,   sigma(x)^2 = (k(x, x) - z^T z)/lam + z^T (A + lam I)^(-1) z

(Li et al. 2023, "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", eq. 2). As long
as there are not more observations than places all are in the dictionary, and the posterior is exact. With m places the
dictionary is chosen (``maths.posteriors.nystrom_choice``) among the first 2 m observations when there are so many, then
among the first 4 m, 8 m and so on; A and b are then computed anew. So n observations cost O(n m^2 + m^3 log n).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.lapack import dpotrf, dsyrk, dtrtrs
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.nystrom_choice import greedy_choice
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior

BLOCK = 4096
"""Observations that are embedded at once when statistics are computed anew, which bounds the memory for it."""
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
        """Begin anew with a dictionary of the points that tell most."""
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
