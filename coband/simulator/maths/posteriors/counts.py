"""Exact posteriors on observations of few points, again and again: what matters are counts and sums of rewards.

n observations of a point with rewards that add up to s tell as much as one of their mean with n times less noise. With
the distinct points U, S = diag(sqrt(n_u)) and the factor L of S k(U, U) S + lam I,

    mu(x) = v^T z,   sigma(x)^2 = (k(x, x) - ||v||^2)/lam,   v = L^(-1) S k(U, x),   z = L^(-1) S^(-1) s

(Li et al. 2023, "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", eq. 1, whatever
the number of observations), and log det(I + K/lam) of all observations is that of S k(U, U) S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import BoundKernel
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.caches import RecentCache
from coband.simulator.maths.linalg.matrices import dpotrf, dtrtrs, lam_is_lost
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior


@dataclass(frozen=True)
class CountFactor:
    """The factor L of S k(U, U) S + lam I, upper part unused, and S = diag(``roots``).

    Attributes:
        L: (p, p).
        roots: sqrt(n_u), (p,).
    """

    L: FloatArray
    roots: FloatArray

    @classmethod
    def of(cls, K: FloatArray, counts: FloatArray, lam: float) -> CountFactor:
        """From the kernel matrix of the distinct points (p, p) and how often each was seen (p,).

        Raises:
            NotDefiniteError: lam is lost beside the rounding of S K S.
        """
        roots = np.sqrt(counts)
        ridge = roots[:, None] * K * roots
        ridge.flat[:: len(roots) + 1] += lam
        L, info = dpotrf(ridge.T, lower=1, clean=0, overwrite_a=1)  # symmetric; LAPACK takes the transpose as it is
        if info:
            raise lam_is_lost(lam, info)
        return cls(L, roots)

    def solve(self, cross: FloatArray) -> FloatArray:
        """V = L^(-1) S k(U, X), (p, n), for ``cross`` = k(X, U), (n, p)."""
        B: FloatArray = (cross * self.roots).T
        if not B.size:
            return B
        V: FloatArray
        V, _ = dtrtrs(self.L, B, lower=1)
        return V

    def whiten(self, sums: FloatArray) -> FloatArray:
        """z = L^(-1) S^(-1) s, (p,), for the sums of the points' rewards (p,)."""
        z: FloatArray
        z, _ = dtrtrs(self.L, sums / self.roots, lower=1)
        return z

    def log_det(self, lam: float) -> float:
        """log det(I + K/lam) of all observations."""
        return float(2.0 * np.log(np.diagonal(self.L)).sum() - len(self.roots) * np.log(lam))


Factors = RecentCache[tuple[CountFactor, FloatArray]]
"""The last factors with their whitened rewards, by the observations that they stand for."""


class RepeatsPosterior(Posterior):
    """Exact posterior on observations of few distinct points.

    Args:
        factors: where factors are kept, for all who may know the same and use the same kernel.
    """

    def __init__(self, kernel: Kernel, lam: float, factors: Factors | None = None) -> None:
        self._kernel, self._lam = kernel, lam
        self._factors = Factors(1) if factors is None else factors
        self._number: dict[bytes, int] = {}
        self._counts: list[float] = []
        self._sums: list[float] = []
        self._points = np.empty((0, 0))
        self._bound: BoundKernel | None = None
        self._K = np.empty((0, 0))
        self._latest: tuple[CountFactor, FloatArray] | None = None

    @property
    def distinct(self) -> int:
        """Number of distinct points p."""
        return len(self._counts)

    @property
    def log_det(self) -> float:
        return self._solved()[0].log_det(self._lam) if self.distinct else 0.0

    def update(self, observations: Observations) -> None:
        P, y = observations.features, observations.rewards
        new = []
        for index, (row, reward) in enumerate(zip(np.ascontiguousarray(P), y.tolist(), strict=True)):
            number = self._number.setdefault(row.tobytes(), self.distinct)
            if number == self.distinct:
                new.append(index)
                self._counts.append(0.0)
                self._sums.append(0.0)
            self._counts[number] += 1.0
            self._sums[number] += reward
        if new:
            self._meet(np.ascontiguousarray(P[new]))
        self._latest = None

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        X = features_of(arms)
        prior = self._kernel.diag(X)
        if self._bound is None:
            return np.zeros(len(X)), prior / self._lam
        factor, z = self._solved()
        V = factor.solve(self._bound.evaluate(X))
        return V.T @ z, np.maximum(prior - np.einsum("ij,ij->j", V, V), 0.0) / self._lam

    def _meet(self, P: FloatArray) -> None:
        """Take up points (p, d) that were not seen before."""
        among = self._kernel(P, P)
        if self._bound is None:
            self._points, self._bound, self._K = P, self._kernel.against(P), among
            return
        cross = self._bound.evaluate(P)
        self._K = np.block([[self._K, cross.T], [cross, among]])
        self._points, self._bound = np.vstack([self._points, P]), self._bound.appended(P)

    def _solved(self) -> tuple[CountFactor, FloatArray]:
        """The factor of all that is known, and the whitened rewards."""
        if self._latest is None:
            counts, sums = np.array(self._counts), np.array(self._sums)
            observed = (self._points.tobytes(), counts.tobytes(), sums.tobytes())
            self._latest = self._factors.get(observed, lambda: self._factored(counts, sums))
        return self._latest

    def _factored(self, counts: FloatArray, sums: FloatArray) -> tuple[CountFactor, FloatArray]:
        factor = CountFactor.of(self._K, counts, self._lam)
        return factor, factor.whiten(sums)
