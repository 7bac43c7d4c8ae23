"""The points that an agent knows beside the prefix of a shared log: a small factor on top of the log's."""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.lapack import dtrtrs


class OwnPoints:
    """The factor of an agent's own points on top of the first ``known`` rows of a log.

    Args:
        prefix_whitened: z = L^(-1) y over the known rows, shape (known,).
    """

    def __init__(self, kernel: Kernel, lam: float, prefix_whitened: FloatArray, dimension: int) -> None:
        self._kernel, self._prefix_whitened = kernel, prefix_whitened
        self._factor = GrowingCholesky(lam)
        self._bound = kernel.against(np.empty((0, dimension)))
        self._W_T = GrowingRows(len(prefix_whitened))
        self._points = GrowingRows(dimension)
        self._rewards = GrowingRows(1)
        self._whitened = GrowingRows(1)

    @property
    def size(self) -> int:
        return self._factor.size

    @property
    def log_det(self) -> float:
        return self._factor.log_det()

    @property
    def points(self) -> FloatArray:
        return self._points.leading(self.size)

    @property
    def rewards(self) -> FloatArray:
        return self._rewards.leading(self.size)[:, 0]

    @property
    def whitened(self) -> FloatArray:
        return self._whitened.leading(self.size)[:, 0]

    def solve(self, X: FloatArray, V: FloatArray) -> FloatArray:
        """The rows (size, n) that the own points add to the prefix solve V (known, n) of X (n, d)."""
        return self.solve_cross(self._bound.evaluate(X).T - self._W_T.leading(self.size) @ V)

    def solve_cross(self, cross: FloatArray) -> FloatArray:
        """The same rows from the covariances (size, n) of X with the own points, given the prefix."""
        return self._factor.solve(cross)

    def append(self, X: FloatArray, y: FloatArray, V: FloatArray) -> None:
        """Add own points X (p, d) with rewards y (p,) and prefix solve V (known, p)."""
        U = self.solve(X, V)
        residual = y - V.T @ self._prefix_whitened - U.T @ self.whitened
        C = self._factor.append_solved(U, self._kernel(X, X) - V.T @ V)
        self._whitened.append(solve_lower(C, residual)[:, None])
        self._bound = self._bound.appended(X)
        self._W_T.append(V.T)
        self._points.append(X)
        self._rewards.append(y[:, None])


def solve_lower(C: FloatArray, b: FloatArray) -> FloatArray:
    """x with C x = b, for lower triangular C (n, n) and b (n,)."""
    x: FloatArray
    x, _ = dtrtrs(C, b, lower=1)
    return x
