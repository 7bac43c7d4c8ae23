"""A Cholesky factor that grows row by row or block by block, as a Gaussian process does with its data."""

from __future__ import annotations

import math
import mmap

import numpy as np

from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import dpotrf, dtrtrs, lam_is_lost

_FIRST_ROWS, _BLOCK_ROWS = 16, 256
_RESUMED_ROWS = 128
"""Rows of a solve between two products with those before: of their square a copy is made."""
_OWN_PAGES = 2048
"""Squares of this many rows and more are mapped page by page."""


class GrowingCholesky:
    """Lower factor L of M + lam I for a positive semidefinite M that grows at its end.

    The rows stand in a square with room to grow, which doubles when it is full; the part above the diagonal is never
    touched, so only the lower triangle takes memory (4 n^2 bytes, 0.4 GB for n = 10^4). LAPACK reads it where it lies.
    A leading block of L is the factor of the leading block of M + lam I, so solves with any number of leading rows are
    possible at any time.

    Args:
        lam: ridge parameter lam > 0, added to the diagonal.

    Raises:
        ValueError: lam is not positive.
    """

    def __init__(self, lam: float) -> None:
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        self._lam = lam
        self.size = 0
        self._rows = np.empty((_FIRST_ROWS, _FIRST_ROWS))
        self._log_dets = GrowingRows(1)
        self._log_dets.append(np.zeros((1, 1)))

    def log_det(self, size: int | None = None) -> float:
        """log det(I + M/lam) of the leading ``size`` rows and columns (all for None)."""
        size = self.size if size is None else size
        return float(self._log_dets.leading(size + 1)[size, 0])

    def solve(self, B: FloatArray, overwrite: bool = False) -> FloatArray:
        """V = L[:s, :s]^(-1) B for B (s, r) with s <= size, as an array (s, r) in Fortran order.

        It is a new one, or with ``overwrite`` that of B if B has Fortran order.
        """
        V = np.asfortranarray(B) if overwrite else np.array(B, dtype=np.float64, order="F")
        if not V.size:
            return V
        # The transpose of the row-major lower triangle is a column-major upper one, with lda the room.
        solved: FloatArray
        solved, _ = dtrtrs(self._rows[: len(V)].T, V, lower=0, trans=1, overwrite_b=1)
        return solved

    def solve_transposed(self, V: FloatArray, start: int = 0) -> FloatArray:
        """S = L[start:s, start:s]^(-T) V for V (s - start, r) with s <= size, as a new array in Fortran order."""
        S = np.array(V, dtype=np.float64, order="F")
        if not S.size:
            return S
        end = start + len(S)
        rows = self._rows[start:end] if start == 0 else self._rows[start:end, start:end]
        solved: FloatArray
        solved, _ = dtrtrs(rows.T, S, lower=0, trans=0, overwrite_b=1)
        return solved

    def resume(self, V: FloatArray, B: FloatArray) -> FloatArray:
        """The next p rows of a solve, (p, r), from its first rows V (s, r) and their right-hand sides B (p, r)."""
        start, end = len(V), len(V) + len(B)
        solved = np.concatenate([V, B])
        for first in range(start, end, _RESUMED_ROWS):
            last = min(first + _RESUMED_ROWS, end)
            rows = self._rows[first:last]
            below = np.asfortranarray(solved[first:last] - rows[:, :first] @ solved[:first])
            solved[first:last], _ = dtrtrs(rows[:, first:last].T, below, lower=0, trans=1, overwrite_b=1)
        return solved[start:]

    def rows(self, start: int, end: int) -> FloatArray:
        """Rows ``start`` to ``end - 1`` of L up to their columns ``end - 1``, a read-only view (end - start, end)."""
        view = self._rows[start:end, :end]
        view.setflags(write=False)
        return view

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

        Raises:
            NotDefiniteError: rounding is as large as lam, so that nothing of the factor would be right.
        """
        schur = block - V.T @ V
        schur.flat[:: len(schur) + 1] += self._lam
        low = ~(np.diagonal(schur) >= 0.5 * self._lam)  # it is at least lam but for rounding
        C: FloatArray
        C, info = dpotrf(schur, lower=1, clean=1)
        if info or low.any():
            raise lam_is_lost(self._lam, self.size + int(info or low.argmax() + 1))
        self._write(np.hstack([V.T, C]))
        log_pivots = 2.0 * np.log(np.diagonal(C)) - math.log(self._lam)
        self._log_dets.append((self.log_det() + np.cumsum(log_pivots))[:, None])
        self.size += len(C)
        return C

    def _write(self, rows: FloatArray) -> None:
        end = self.size + len(rows)
        if end > len(self._rows):
            what = f"the exact posterior of {end:,} observations"
            require_room(what, end, end / 2, instead="take fewer turns, or an algorithm that approximates it")
            self._grow(max(end, 2 * len(self._rows)))
        self._rows[self.size : end, :end] = rows

    def _grow(self, room: int) -> None:
        """Copy the lower triangle, block row by block row, into a larger square."""
        rows = _square(room)
        for start in range(0, self.size, _BLOCK_ROWS):
            end = min(start + _BLOCK_ROWS, self.size)
            rows[start:end, :end] = self._rows[start:end, :end]
        self._rows = rows


def _square(room: int) -> FloatArray:
    """An uninitialised square, of which pages take memory when they are written to.

    Numpy asks for pages of 2 MB, which would also hold what stands above the diagonal.
    """
    if room < _OWN_PAGES or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty((room, room))
    pages = mmap.mmap(-1, 8 * room * room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=np.float64).reshape(room, room)
