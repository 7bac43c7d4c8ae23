"""A Cholesky factor that grows row by row or block by block, as a Gaussian process does with its data."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from simulator.maths.storage import FloatArray, GrowingRows

_PANEL_ROWS = 64


class GrowingCholesky:
    """Lower factor L of M + lam I for a positive semidefinite M that grows at its end.

    The rows are kept in panels of 64, each a strip left of the diagonal block and the block itself. Growing moves no
    full panel, only the lower triangle takes memory (4 n^2 bytes, 0.4 GB for n = 10^4), and a solve with the 20 or so
    right-hand sides of an arm set spends its time in matrix products. A leading block of L is the factor of the
    leading block of M + lam I, so solves with any number of leading rows are possible at any time.

    Args:
        lam: ridge parameter lam > 0, added to the diagonal.

    Raises:
        ValueError: lam is not positive.
    """

    def __init__(self, lam: float) -> None:
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        self._lam = lam
        self._size = 0
        self._panels: list[_Panel] = []
        self._log_dets = GrowingRows(1)
        self._log_dets.append(np.zeros((1, 1)))

    @property
    def size(self) -> int:
        """Number of rows n."""
        return self._size

    def log_det(self, size: int | None = None) -> float:
        """log det(I + M/lam) of the leading ``size`` rows and columns (all for None)."""
        size = self._size if size is None else size
        return float(self._log_dets.leading(size + 1)[size, 0])

    def solve(self, B: FloatArray) -> FloatArray:
        """V = L[:s, :s]^(-1) B for B (s, r) with s <= size, as a new array (s, r) in Fortran order."""
        V = np.array(B, dtype=np.float64, order="F")
        for panel in self._panels:
            if panel.start >= len(V):
                break
            panel.solve(V)
        return V

    def append(self, cross: FloatArray, block: FloatArray) -> FloatArray:
        """Append p rows of M: ``cross`` (p, size) against the present ones, ``block`` (p, p) among themselves.

        Returns:
            The new diagonal block C (p, p) of L, lower triangular.
        """
        return self.append_solved(self.solve(cross.T), block)

    def append_solved(self, V: FloatArray, block: FloatArray) -> FloatArray:
        """Like ``append``, with V = L^(-1) cross^T (size, p) already at hand.

        Returns:
            The new diagonal block C (p, p) of L, lower triangular: C C^T = block + lam I - V^T V.
        """
        schur = block - V.T @ V
        schur.flat[:: len(schur) + 1] += self._lam
        C = _cholesky_above(schur, self._lam)
        self._write(np.hstack([V.T, C]))
        log_pivots = 2.0 * np.log(np.diagonal(C)) - math.log(self._lam)
        self._log_dets.append((self.log_det() + np.cumsum(log_pivots))[:, None])
        self._size += len(C)
        return C

    def _write(self, rows: FloatArray) -> None:
        written = 0
        while written < len(rows):
            if not self._panels or self._panels[-1].full:
                self._panels.append(_Panel(self._size + written))
            written += self._panels[-1].write(rows[written:])


class _Panel:
    """Rows ``start`` onwards of a lower triangular matrix, at most 64: [strip | triangle]."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._used = 0
        self._strip = np.empty((_PANEL_ROWS, start), order="F")
        self._triangle = np.zeros((8, 8))

    @property
    def full(self) -> bool:
        return self._used == _PANEL_ROWS

    def write(self, rows: FloatArray) -> int:
        """Take as many of the given rows of L as there is room for; return that number."""
        taken = min(len(rows), _PANEL_ROWS - self._used)
        end = self._used + taken
        self._reserve(end)
        self._strip[self._used : end] = rows[:taken, : self.start]
        self._triangle[self._used : end, :end] = rows[:taken, self.start : self.start + end]
        self._used = end
        return taken

    def solve(self, V: FloatArray) -> None:
        """Replace the panel's rows of the right-hand sides V (s, r), whose earlier rows are solved already."""
        used = min(self._used, len(V) - self.start)
        part = V[self.start : self.start + used]
        if self.start:
            part.T[:] -= V[: self.start].T @ self._strip[:used].T
        # A row-major lower triangle is a column-major upper one; lda lets LAPACK read it where it lies.
        part[:], _ = dtrtrs(self._triangle[:used].T, part, lower=0, trans=1)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._triangle):
            capacity = min(_PANEL_ROWS, max(rows, 2 * len(self._triangle)))
            triangle = np.zeros((capacity, capacity))
            triangle[: self._used, : self._used] = self._triangle[: self._used, : self._used]
            self._triangle = triangle


def _cholesky_above(schur: FloatArray, floor: float) -> FloatArray:
    """Lower factor of a Schur complement whose pivots are known to be at least ``floor`` but for rounding."""
    C: FloatArray
    C, info = dpotrf(schur, lower=1, clean=1)
    if info == 0:
        return C
    C = np.zeros_like(schur)
    for i in range(len(schur)):
        for j in range(i):
            C[i, j] = (schur[i, j] - C[i, :j] @ C[j, :j]) / C[j, j]
        C[i, i] = math.sqrt(max(schur[i, i] - C[i, :i] @ C[i, :i], floor))
    return C
