"""Means and variances as linear and quadratic forms in kernel features: the part of a Nystrom model that predicts."""

from __future__ import annotations

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.quadratic_forms import inner
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.protocol import Predictor

MARGIN = 1e-6
"""So much more than its bound, relatively, rounding can make a standard deviation."""


class NystromPredictor(Predictor):
    """mu = f.w and sigma^2 = (k(x,x) - f^T Q f)/lam in features f(x); immutable.

    It holds one m x m matrix, and so is what an agent that only evaluates should keep of a model version.

    Args:
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
        return len(self.w)

    def features(self, arms: Points) -> FloatArray:
        """Features f of n arms, as rows (n, m); of a stack (..., n, d) the matrices (..., n, m)."""
        X = features_of(arms)
        if self._bound is None:
            return np.empty((*X.shape[:-1], 0))
        K = self._bound.evaluate(X)
        return K if self._inverse_root is None else K @ self._inverse_root.T

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """Mean and variance (Li et al. 2023, eq. 2) of n arms, each (n,); 0 and k(x,x)/lam without dictionary.

        Those of a whole domain, which is offered turn after turn, are computed once.
        """
        if isinstance(arms, ArmSet) and arms.domain is arms:
            if self._of_domain is None or self._of_domain[0] is not arms:
                self._of_domain = (arms, *self._predict(arms))
            return self._of_domain[1:]
        return self._predict(arms)

    def scores_stack(self, X: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
        """The scores mu + alpha sigma of several arm sets (N, n, d) and their variances, each (N, n).

        What an arm could score at most follows from its mean and k(x,x)/lam, the largest its variance can be. Where
        that is below the largest mean of its arm set, the arm cannot win: its score is -inf, its variance that bound.
        """
        F, prior = self.features(X), self._prior(X)
        mean, variance = F @ self.w, prior / self.lam
        contends = mean + (1.0 + MARGIN) * alpha * np.sqrt(variance) >= mean.max(axis=1, keepdims=True)
        rows = np.flatnonzero(contends)
        if len(rows) % 2:
            rows = np.append(rows, rows[0])  # BLAS rounds the last of an odd number of rows unlike all others.
        variance.ravel()[rows] = self._posterior(prior.ravel()[rows], F.reshape(prior.size, self.size)[rows])
        return np.where(contends, mean + alpha * np.sqrt(variance), -np.inf), variance

    def _predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        F = self.features(arms)
        return F @ self.w, self.variance_of(arms, F)

    def variance(self, arms: Points) -> FloatArray:
        """sigma^2 (Li et al. 2023, eq. 2) of n arms, shape (n,)."""
        return self.variance_of(arms, self.features(arms))

    def variance_of(self, arms: Points, F: FloatArray) -> FloatArray:
        """sigma^2 of n arms with features F (..., n, m), clipped at 0; shape (..., n)."""
        return self._posterior(self._prior(features_of(arms)), F)

    def _prior(self, X: FloatArray) -> FloatArray:
        """k(x,x) of points (..., d), shape (...)."""
        return self._kernel.diag(X.reshape(-1, X.shape[-1])).reshape(X.shape[:-1])

    def _posterior(self, prior: FloatArray, F: FloatArray) -> FloatArray:
        """sigma^2 from k(x,x) (..., n), in place."""
        prior -= inner(F @ self.Q, F)
        np.maximum(prior, 0.0, out=prior)
        prior *= 1.0 / self.lam
        return prior
