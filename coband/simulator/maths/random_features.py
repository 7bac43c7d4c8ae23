"""Random Fourier features of the squared exponential kernel (Rahimi and Recht 2007), normalised, and weights drawn from
the posterior of a linear model on them."""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.matrices import NotDefiniteError, dpotrf, dtrtrs

SMALL = 3000
"""Features up to which it takes longer to compute them roughly than exactly."""
U = 2.0**-24
"""Relative error of rounding to single precision."""
MOST = 1e-3
"""Errors of cosines in single precision from which on they are of no use."""


class RandomFeatures:
    """phi(x) = sqrt(v) c(x) / ||c(x)|| with c(x)_j = cos(s_j^T x + b_j).

    Args:
        rng: draws s, (M, d) standard normal numbers, and then b, M uniform ones in [0, 2 pi).
        size: M.
        dimension: d.
        length_scale: of the kernel; s is divided by it.
        variance: v = k(x, x).
    """

    def __init__(
        self, rng: np.random.Generator, size: int, dimension: int, length_scale: float, variance: float
    ) -> None:
        self._s, self._b = rng.standard_normal((size, dimension)) / length_scale, rng.uniform(0.0, 2.0 * np.pi, size)
        self._scale = math.sqrt(variance)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features of the rows of X, (n, M)."""
        found: FloatArray = X @ self._s.T
        found += self._b
        np.cos(found, out=found)
        found *= self._scale / np.sqrt(np.vecdot(found, found))[:, None]
        return found

    def leading(self, X: FloatArray, weights: FloatArray) -> FloatArray:
        """phi(x)^T weights, (n,), of the rows of X; -inf where it is certainly below the two highest.

        In single precision, cosines take a twentieth of the time; few rows are then left to compute exactly.
        """
        if len(X) > 2 and len(X) * len(weights) > SMALL:
            rough, error = self._rough(X, weights)
            near = np.flatnonzero(rough >= np.partition(rough, -2)[-2] - 2.0 * error)
            exact = self(X[near]) @ weights
            if len(near) and exact.min() < exact.max():  # else all may be equal, or not be numbers
                found = np.full(len(X), -np.inf)
                found[near] = exact
                return found
        return np.asarray(self(X) @ weights)

    def _rough(self, X: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
        """phi(x)^T w / max |w| of the rows of X in single precision, and a bound on its errors, or infinity.

        With e that of a c_j, u the sum of w_j c_j and n = ||c||: 2 e (sum |w_j| + |u| M / n^2) / n where 4 e M < n^2.
        """
        d, M = X.shape[1], len(weights)
        e = U * ((d + 4) * (d * float(np.abs(self._s).max() * np.abs(X).max()) + 7.0) + M + 8)
        if not e < MOST:
            return np.zeros(len(X)), np.inf
        w = weights / (np.abs(weights).max() or 1.0)
        c = X.astype(np.float32) @ self._s.T.astype(np.float32)
        c += self._b.astype(np.float32)
        np.cos(c, out=c)
        u, squares = c @ w.astype(np.float32), np.vecdot(c, c)
        least, most = float(squares.min()), float(np.abs(u).max())
        if not 4.0 * e * M < least:
            return np.zeros(len(X)), np.inf
        bound = 2.0 * e * (float(np.abs(w).sum()) + most * M / least) / math.sqrt(least)
        return self._scale * u / np.sqrt(squares), self._scale * bound


def posterior_draw(G: FloatArray, b: FloatArray, lam: float, z: FloatArray) -> FloatArray:
    """Weights from N(A^(-1) b, lam A^(-1)) for A = G + lam I.

    Args:
        G: Phi^T Phi, (M, M).
        b: Phi^T y, (M,).
        lam: variance of the noise of observations.
        z: M standard normal numbers; the draw is A^(-1) b + sqrt(lam) L^(-T) z with A = L L^T.

    Raises:
        NotDefiniteError: A is not positive definite.
    """
    A = G.copy()
    A.flat[:: len(A) + 1] += lam
    L, info = dpotrf(A.T, lower=1, overwrite_a=1)
    if info:
        raise NotDefiniteError(
            f"G + lam I is not positive definite (pivot {info}), lam(={lam}); give a larger noise_variance."
        )
    half = dtrtrs(L, b, lower=1)[0] + math.sqrt(lam) * z
    drawn: FloatArray = dtrtrs(L, half, lower=1, trans=1)[0]
    return drawn
