"""Means and variances as linear and quadratic forms in kernel features: what is left of a posterior once it is fit."""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.dictionary import Dictionary


class NystromPredictor:
    """mu = f.w and sigma^2 = (k(x,x) - f^T Q f)/lam in features f(x); immutable.

    It holds one m x m matrix, and so is what an agent that only evaluates should keep of a model version.

    Args:
        dictionary: the dictionary of m points.
        lam: ridge parameter.
        embeds: whether features are embeddings z(x) rather than kernel rows k_S(x).
        w: weights (m,).
        Q: quadratic form (m, m).
    """

    def __init__(self, dictionary: Dictionary, lam: float, embeds: bool, w: FloatArray, Q: FloatArray) -> None:
        self.w = w
        self.Q = Q
        self.lam = lam
        self._kernel = dictionary.kernel
        # Not the dictionary itself, whose inverse root is a second m x m matrix.
        self._bound = dictionary.bound
        self._inverse_root = dictionary.inverse_root if embeds else None
        self._fixed: tuple[FloatArray, FloatArray, FloatArray] | None = None

    @property
    def size(self) -> int:
        """Dictionary size m."""
        return len(self.w)

    def features(self, X: FloatArray) -> FloatArray:
        """Features f of X (n, d), as rows (n, m)."""
        if self._bound is None:
            return np.empty((len(X), 0))
        K = self._bound.evaluate(X)
        return K if self._inverse_root is None else K @ self._inverse_root.T

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (paper 000, eq. 2) of X (n, d), each (n,); 0 and k(x,x)/lam without dictionary."""
        F = self.features(X)
        return F @ self.w, self.variance_of(X, F)

    def fixed_moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``moments`` of an arm set that is the same array at every turn: computed at the first call."""
        if self._fixed is None or self._fixed[0] is not X:
            self._fixed = (X, *self.moments(X))
        return self._fixed[1:]

    def variance(self, X: FloatArray) -> FloatArray:
        """sigma^2 (paper 000, eq. 2) of X (n, d), shape (n,)."""
        return self.variance_of(X, self.features(X))

    def variance_of(self, X: FloatArray, F: FloatArray) -> FloatArray:
        """sigma^2 of X (n, d) with features F (n, m), clipped at 0; shape (n,)."""
        variance = self._kernel.diag(X)
        variance -= np.einsum("ij,ij->i", F @ self.Q, F)
        np.maximum(variance, 0.0, out=variance)
        variance *= 1.0 / self.lam
        return variance
