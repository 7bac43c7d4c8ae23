"""Uniform exploration of a shrinking finite domain: what the nodes of DUETS compute alike.

Paper 001: "Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared Randomness".
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.linalg.lapack import dposv
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.domain import Domain


def epoch_lengths(horizon: int, first: int) -> tuple[int, ...]:
    """T_1, T_2, ... with T_(j+1) = floor(sqrt(T T_j)), the last one cut so that they add up to T (at least one epoch).

    Args:
        horizon: T >= 0.
        first: T_1 >= 1.
    """
    lengths, length, left = [], first, horizon
    while left > length:
        lengths.append(length)
        left -= length
        length = max(length, math.isqrt(horizon * length))
    return (*lengths, left)


def most_epochs(horizon: int, agents: int) -> float:
    """log log max(N, T) + 4, a bound on the number of epochs (paper 001, lemma 4.4; natural logarithms)."""
    return math.log(math.log(max(horizon, agents, 3))) + 4.0


def theoretical_width(norm: float, noise: float, lam: float, delta: float) -> float:
    """beta(delta) = B + R sqrt(2/lam log(2/delta)) (paper 001, lemma 2.5)."""
    return norm + noise * math.sqrt(2.0 / lam * math.log(2.0 / delta))


def drawn(active: IndexArray, coin: np.random.Generator, number: int) -> IndexArray:
    """So many arms, each uniform among the ``active`` ones, from one call of the coin."""
    chosen: IndexArray = active[coin.integers(len(active), size=number)]
    return chosen


class Induced:
    """The active points of an epoch embedded in its inducing set; immutable, a function of the two alone.

    Args:
        domain: all points.
        active: numbers of the active ones, ascending (n,).
        inducing: the inducing set S (m, d).
    """

    def __init__(self, domain: Domain, active: IndexArray, inducing: FloatArray) -> None:
        self.active = active
        points = domain.points[active]
        self._dictionary = Dictionary(domain.kernel).appended(inducing)
        self.Z = self._dictionary.embed(points)
        self._prior = domain.kernel.diag(points)

    @property
    def skipped(self) -> int:
        """Number of inducing points that add nothing to the span of the others."""
        return self._dictionary.skipped

    def projection(self, arms: IndexArray, y: FloatArray) -> FloatArray:
        """v = Z^T Y (m,) of pulls of active ``arms`` (p,) with rewards y (p,) (paper 001, eq. 7)."""
        v: FloatArray = self.Z[np.searchsorted(self.active, arms)].T @ y
        return v

    def gram(self, arms: IndexArray) -> FloatArray:
        """Z^T Z (m, m) of pulls of active ``arms`` (p,)."""
        counts = np.bincount(np.searchsorted(self.active, arms), minlength=len(self.active))
        weighted = self.Z * counts[:, None]
        G: FloatArray = weighted.T @ self.Z
        return (G + G.T) / 2.0

    def kept_by_mean(self, vbar: FloatArray, margin: float) -> IndexArray:
        """The active arms with mu >= max mu - margin, mu = Z vbar (paper 001, eq. 9: margin = 2 beta sigma_max)."""
        mean = self.Z @ vbar
        kept: IndexArray = self.active[mean >= mean.max() - margin]
        return kept

    def kept_by_bounds(self, vbar: FloatArray, gram: FloatArray, lam: float, beta: float) -> IndexArray:
        """The active arms whose upper bound mu + beta sigma reaches the best lower bound, max(mu - beta sigma).

        sigma^2 = k(x,x) - z^T G (G + lam I)^(-1) z is paper 001, eq. 6, on the scale of its eq. 4.
        """
        mean = self.Z @ vbar
        smoothed = ridge_solve(gram, lam, gram @ self.Z.T)
        variance = self._prior - np.einsum("ij,ji->i", self.Z, smoothed)
        width = beta * np.sqrt(np.maximum(variance, 0.0))
        kept: IndexArray = self.active[mean + width >= (mean - width).max()]
        return kept


def ridge_solve(gram: FloatArray, lam: float, B: FloatArray) -> FloatArray:
    """(gram + lam I)^(-1) B for a positive semidefinite ``gram`` (m, m) and B (m, ...)."""
    if not B.size:
        return np.zeros_like(B)
    ridge = np.array(gram, order="F")
    ridge.flat[:: len(ridge) + 1] += lam
    _, x, info = dposv(ridge, B, lower=1, overwrite_a=1)
    if info:  # lam below the rounding of the entries
        x = np.linalg.lstsq(gram + lam * np.eye(len(gram)), B, rcond=None)[0]
    solved: FloatArray = x
    return solved
