"""Random Fourier features of the squared exponential kernel (Rahimi and Recht 2007), normalised, and weights drawn from
the posterior of a linear model on them."""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.matrices import NotDefiniteError, dpotrf, dtrtrs


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
