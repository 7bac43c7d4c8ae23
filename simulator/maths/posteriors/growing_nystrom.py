"""A Nystrom posterior for many observations: the first points make the dictionary, all points the statistics.

With embeddings z over the dictionary (``maths.posteriors.dictionary``), A = sum z z^T and b = sum z y,

    mu(x) = z^T (A + lam I)^(-1) b,   sigma(x)^2 = (k(x, x) - z^T z)/lam + z^T (A + lam I)^(-1) z

(paper 000, "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", eq. 2). Until the
dictionary is full the posterior is exact.
"""

from __future__ import annotations

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.lapack import dpotrf, dsyrk, dtrtrs
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior


class GrowingNystrom(Posterior):
    """Statistics of one agent's data over a dictionary of its first ``size`` points, whose order matters.

    Args:
        kernel: the kernel.
        lam: ridge parameter.
        size: number of points in the dictionary at most.
    """

    def __init__(self, kernel: Kernel, lam: float, size: int) -> None:
        self._lam, self._limit = lam, size
        self.dictionary = Dictionary(kernel)
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
        """Learn observations."""
        P, y = observations.features, observations.rewards
        if not len(y):
            return
        room = self._limit - self.dictionary.size
        if room > 0:
            self.dictionary = self.dictionary.appended(P[:room])
            # Earlier data are points of the dictionary, so that their embeddings have zeros in the new coordinates.
            A = np.zeros((self.dictionary.size, self.dictionary.size), order="F")
            A[: len(self._A), : len(self._A)] = self._A
            self._A, self._b = A, np.concatenate([self._b, np.zeros(len(A) - len(self._b))])
            self._factor = np.empty_like(A, order="F")  # kept, as fresh memory of this size costs more than the factor
        Z = self.dictionary.embed(P)
        self._A = dsyrk(1.0, Z, beta=1.0, c=self._A, trans=1, lower=1, overwrite_c=1)
        self._b += Z.T @ y
        self._factored = False

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at n arms, each (n,)."""
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
