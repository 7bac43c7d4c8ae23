"""Solves with the growing factor of a log of observations, kept and brought up to date, and the weights of the mean.

With the first b rows of the log as base, a solve is v = L^(-1) k(x), whose entries stay when rows are added, and
s = L_b^(-T) v over the base. The rows since then have the solves S = (K_b + lam I)^(-1) k(X_b, X_new), and their corner
of L is C. So (K + lam I)^(-1) k(x) is (s - S w, w) with w = C^(-T) v_new, and the weights a = (K + lam I)^(-1) y follow
from those of the base in the same way: no new row needs a solve with all of L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.cholesky import GrowingCholesky


class Rows(Protocol):
    """What is asked of a log."""

    kernel: Kernel
    lam: float
    factor: GrowingCholesky

    @property
    def size(self) -> int:
        """Number of rows n."""

    def cross(self, X: FloatArray, known: int) -> FloatArray:
        """The matrix k(X, X_known), shape (n, known)."""

    def whitened_rewards(self, known: int) -> FloatArray:
        """z = L^(-1) y over the first ``known`` rows, shape (known,)."""

    @property
    def points(self) -> FloatArray:
        """The points in order, (n, d)."""

    @property
    def scale(self) -> float:
        """Largest |y| and largest k(x, x)/lam of the rows, whichever is larger, and at least 1."""


@dataclass(slots=True)
class Solve:
    """v = L^(-1) k(x) over some rows, and s = L_b^(-T) v over those of the base where that is known."""

    v: FloatArray
    s: FloatArray | None = None


class PreparedSolves:
    """Solves of some points by key, the bytes of their features.

    Attributes:
        base: number b of rows of the base.
        base_weights: of the base, (b,); replaced by those of a new solve, rounding does not add up.
        active: whether there has been a base yet; before, nothing is kept.
    """

    def __init__(self, log: Rows) -> None:
        self._log = log
        self.base_weights = np.empty(0)
        self._pending: list[FloatArray | None] = []  # s of the rows since the base
        self.held: dict[bytes, Solve] = {}
        self.base = 0
        self.active = False

    def solved(self, X: FloatArray, known: int) -> FloatArray | None:
        """V (known, n) of points X if there are solves of all of them, else None."""
        keys = [x.tobytes() for x in X]
        if not all(key in self.held for key in keys):
            return None
        columns = [self.column(key, known, partial(self._row, key, known)) for key in keys]
        return np.stack(columns, axis=1)

    def appended(self, X: FloatArray) -> None:
        """The points X have become the newest rows of the log."""
        if self.active:
            for x in X:
                solve = self.held.pop(x.tobytes(), None)
                self._pending.append(None if solve is None else solve.s)

    def column(self, key: bytes, known: int, row: Callable[[], FloatArray]) -> FloatArray:
        """v over the first ``known`` rows of the point with this key, whose kernel values are ``row()``."""
        solve = self.held.get(key)
        if solve is None:
            solve = self.held[key] = Solve(self._log.factor.solve(row()[:known, None])[:, 0])
        elif len(solve.v) < known:
            start = len(solve.v)
            new = self._log.factor.resume(solve.v[:, None], row()[start:known, None])
            solve.v = np.concatenate([solve.v, new[:, 0]])
        return solve.v[:known]

    def backward(self, key: bytes, known: int) -> FloatArray:
        """(K + lam I)^(-1) k(x) over the first ``known`` rows, of the point with this key."""
        v = self.column(key, known, partial(self._row, key, known))
        solve = self.held[key]
        if solve.s is None:
            solve.s = self._log.factor.solve_transposed(v[: self.base, None])[:, 0]
        return self._on_top(solve.s, v[self.base :])

    def _on_top(self, below: FloatArray, top: FloatArray) -> FloatArray:
        """L^(-T) (v, u) from L_b^(-T) v over the base and the entries u of the rows since."""
        if not len(top):
            return below
        w = self._log.factor.solve_transposed(top[:, None], self.base)[:, 0]
        return np.concatenate([below - w @ self._pending_rows(len(top)), w])

    def weights(self, known: int) -> FloatArray:
        """a = (K + lam I)^(-1) y over the first ``known`` rows."""
        return self._on_top(self.base_weights, self._log.whitened_rewards(known)[self.base :])

    def _pending_rows(self, count: int) -> FloatArray:
        """s of the first rows since the base, (count, base)."""
        missing = [place for place in range(count) if self._pending[place] is None]
        if missing:
            V = self._log.factor.rows(self.base, self.base + count)[missing, : self.base]
            for place, s in zip(missing, self._log.factor.solve_transposed(V.T).T, strict=True):
                self._pending[place] = s.copy()
        return np.array(self._pending[:count])

    def lengthen(self, known: int) -> None:
        """Take the rows up to ``known`` into the base."""
        if not self.active:
            self._pending = [None] * self._log.size
            self.base_weights = self._log.factor.solve_transposed(self._log.whitened_rewards(known)[:, None])[:, 0]
        else:
            self.base_weights = self.weights(known)
            self._lengthen_solves(known)
        del self._pending[: known - self.base]
        self.base, self.active = known, True
        # What lies beyond the new base was over the old one.
        self._pending = [None] * len(self._pending)

    def _lengthen_solves(self, known: int) -> None:
        short = [key for key, solve in self.held.items() if len(solve.v) == self.base]
        if short:
            V = np.array([self.held[key].v for key in short])
            X = np.array([np.frombuffer(key) for key in short])
            points = self._log.points[self.base : known]
            U = self._log.factor.resume(V.T, self._log.kernel.against(points).evaluate(X).T)
            for key, whole in zip(short, np.hstack([V, U.T]), strict=True):
                self.held[key].v = whole
        keys = [key for key, solve in self.held.items() if solve.s is not None]
        if keys:
            tops = np.array([self.column(key, known, partial(self._row, key, known))[self.base :] for key in keys])
            W = self._log.factor.solve_transposed(tops.T, self.base).T
            S = np.array([self.held[key].s for key in keys])
            S -= W @ self._pending_rows(known - self.base)
            for key, s in zip(keys, np.hstack([S, W]), strict=True):
                self.held[key].s = s

    def _row(self, key: bytes, known: int) -> FloatArray:
        row: FloatArray = self._log.cross(np.frombuffer(key)[None], known)[0]
        return row
