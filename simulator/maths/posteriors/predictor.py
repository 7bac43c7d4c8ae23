"""Means and variances as linear and quadratic forms in kernel features: the part of a Nystrom model that predicts."""

from __future__ import annotations

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.quadratic_forms import inner
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.protocol import Predictor


class NystromPredictor(Predictor):
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
        self._of_domain: tuple[ArmSet, FloatArray, FloatArray] | None = None

    @property
    def size(self) -> int:
        """Dictionary size m."""
        return len(self.w)

    def features(self, arms: Points) -> FloatArray:
        """Features f of n arms, as rows (n, m); of a stack (..., n, d) the matrices (..., n, m)."""
        X = features_of(arms)
        if self._bound is None:
            return np.empty((*X.shape[:-1], 0))
        K = self._bound.evaluate(X)
        return K if self._inverse_root is None else K @ self._inverse_root.T

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (paper 000, eq. 2) of n arms, each (n,); 0 and k(x,x)/lam without dictionary.

        Those of a whole domain, which is offered turn after turn, are computed once.
        """
        if isinstance(arms, ArmSet) and arms.domain is arms:
            if self._of_domain is None or self._of_domain[0] is not arms:
                self._of_domain = (arms, *self._predict(arms))
            return self._of_domain[1:]
        return self._predict(arms)

    def predict_stack(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of several arm sets (N, n, d), each (N, n), the same to the last bit as one by one."""
        return self._predict(X)

    def _predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        F = self.features(arms)
        return F @ self.w, self.variance_of(arms, F)

    def variance(self, arms: Points) -> FloatArray:
        """sigma^2 (paper 000, eq. 2) of n arms, shape (n,)."""
        return self.variance_of(arms, self.features(arms))

    def variance_of(self, arms: Points, F: FloatArray) -> FloatArray:
        """sigma^2 of n arms with features F (..., n, m), clipped at 0; shape (..., n)."""
        X = features_of(arms)
        variance = self._kernel.diag(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-1])
        variance -= inner(F @ self.Q, F)
        np.maximum(variance, 0.0, out=variance)
        variance *= 1.0 / self.lam
        return variance
