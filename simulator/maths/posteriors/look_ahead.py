"""Upper confidence bounds over a long log of observations: arms that cannot win are left out, and solves for the arms
of coming turns are made many at once.

A triangular solve with the factor L of K + lam I over n rows reads n^2/2 numbers from memory, whether for one right-hand
side or for thirty. Three facts save most of the reading and of the arithmetic:

* The mean of all arms needs no solve: mu(x) = k(x)^T a with the weights a = (K + lam I)^(-1) y.
* sigma^2 = (k(x, x) - ||v||^2)/lam with v = L^(-1) k(x), so any entries of v give an upper bound of sigma^2. An arm
  whose score with this bound is below the exact score of another arm cannot be the best one. Its v is not needed.
* v keeps its entries when the log grows. So the likely winners of coming turns are solved in one batch, and the few rows
  added since are appended when the turn has come.

Weights follow the log in the same way. With the first b rows as base, a_b = L_b^(-T) z, and the rows since then, whose
solves are S = (K_b + lam I)^(-1) k(X_b, X_new) and whose corner of L is C, the weights over all rows are (a_b - S w, w)
with w = C^(-T) z_new.

Weights are used to leave arms out alone, with a margin for rounding; the scores of the others come from v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.cholesky import GrowingCholesky

FEWEST_ROWS = 512
"""With fewer rows than these all arms are solved for at once: it takes no longer."""
MOST_PENDING = 256
"""Rows on top of the base, at most, before it is moved."""
MOST_IDLE = 256
"""Solves of pulled arms that are kept for the time when they become rows of the log."""
SETS_AT_ONCE = 64
"""Arm sets whose kernel rows are in memory together."""


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
    def scale(self) -> float:
        """Largest |y| and largest k(x, x)/lam of the rows, whichever is larger, and at least 1."""


class Extra(Protocol):
    """Points that an agent knows besides the first rows of the log."""

    @property
    def points(self) -> FloatArray:
        """The points, (q, d)."""

    @property
    def whitened(self) -> FloatArray:
        """Their whitened rewards, (q,)."""

    def solve(self, X: FloatArray, V: FloatArray) -> FloatArray:
        """The rows (q, n) that they add to the solve V (known, n) of X (n, d)."""

    def solve_cross(self, cross: FloatArray) -> FloatArray:
        """The same, (q, n), from the covariances (q, n) of X with the points, given the first rows of the log."""


class _Solve:
    """v = L^(-1) k(x) over some rows, and s = L_b^(-T) v over those of the base where that is known."""

    __slots__ = ("s", "v")

    def __init__(self, v: FloatArray, s: FloatArray | None = None) -> None:
        self.v, self.s = v, s


class LookAhead:
    """Scores mu + alpha sigma of the arms of a turn, exact for every arm that can be the best.

    Args:
        log: the rows.
    """

    def __init__(self, log: Rows) -> None:
        self._log = log
        self._base = 0
        self._base_weights = np.empty(0)
        self._pending: list[FloatArray | None] = []  # s of the rows since the base, over the base
        self._solves: dict[bytes, _Solve] = {}
        self._coming: dict[ArmSet, FloatArray | None] = {}  # squared norms of the leading entries of v, once known
        self._waiting: set[bytes] = set()  # solves that belong to coming turns
        self._reach = 0.0  # how far below the leader an arm may be to be solved for in advance
        self.active = False

    def foresee(self, arms: ArmSet) -> None:
        """Announce the arm set of a coming turn; ``scores`` will be asked about this object."""
        self._coming[arms] = None

    def solved(self, X: FloatArray, known: int) -> FloatArray | None:
        """V (known, n) of points X if there are solves of all of them, else None."""
        keys = [x.tobytes() for x in X]
        if not all(key in self._solves for key in keys):
            return None
        columns = [self._column(key, known, lambda x=x: self._log.cross(x[None], known)[0]) for key, x in zip(keys, X)]
        return np.stack(columns, axis=1)

    def appended(self, X: FloatArray) -> None:
        """The points X have become the newest rows of the log."""
        if self.active:
            for x in X:
                solve = self._solves.pop(x.tobytes(), None)
                self._waiting.discard(x.tobytes())
                self._pending.append(None if solve is None else solve.s)

    def scores(self, arms: ArmSet, alpha: float, known: int, extra: Extra | None) -> FloatArray | None:
        """mu + alpha sigma of n arms given the first ``known`` rows and the ``extra`` points, (n,).

        -inf for arms whose score is certainly below the largest. None where it is better to solve for all arms.
        """
        margin = self._margin(known)
        if known < FEWEST_ROWS or margin > 1e-3 * alpha:
            self._coming.pop(arms, None)
            return None
        foreseen = arms in self._coming
        if not self.active or (foreseen and self._coming[arms] is None) or known - self._base > MOST_PENDING:
            self._move(known, alpha)
        squares = self._coming.pop(arms, None)
        if known < self._base:
            return None
        X, K = arms.features, self._log.cross(arms.features, known)
        if squares is None:
            squares = self._leading_squares(K, self._leading(known, foreseen))
        mean, unscaled = K @ self._weights(known), self._log.kernel.diag(X) - squares
        if extra is not None:
            U = extra.solve_cross(self._covariances(X, K, known, extra.points))
            mean += U.T @ extra.whitened
            unscaled -= np.einsum("ij,ij->j", U, U)
        bounds = mean + alpha * np.sqrt(np.maximum(unscaled, 0.0) / self._log.lam) + margin
        return self._decided(X, K, bounds, alpha, known, extra, foreseen)

    # --- one turn

    def _decided(
        self,
        X: FloatArray,
        K: FloatArray,
        bounds: FloatArray,
        alpha: float,
        known: int,
        extra: Extra | None,
        foreseen: bool,
    ) -> FloatArray:
        """Exact scores from the highest bound downwards, prepared arms first, until no bound reaches the best score."""
        keys = [x.tobytes() for x in X]
        scores, best, exact = np.full(len(X), -np.inf), -np.inf, dict[bytes, float]()
        prepared = np.array([key in self._solves for key in keys])
        missed = False
        for place in np.lexsort((-bounds, ~prepared)).tolist():
            key = keys[place]
            if bounds[place] < best:
                continue
            if key not in exact:
                missed |= not prepared[place]
                v = self._column(key, known, lambda row=K[place]: row)
                exact[key] = self._score(X[place : place + 1], v, alpha, extra)
            scores[place] = exact[key]
            best = max(best, exact[key])
        for key in keys:
            self._waiting.discard(key)
            if exact.get(key, -np.inf) < best:
                self._solves.pop(key, None)
        if foreseen:
            self._reach *= 1.1 if missed else 0.997
        self._forget()
        return scores

    def _score(self, x: FloatArray, v: FloatArray, alpha: float, extra: Extra | None) -> float:
        mean = float(v @ self._log.whitened_rewards(len(v)))
        unscaled = float(self._log.kernel.diag(x)[0] - v @ v)
        if extra is not None:
            u = extra.solve(x, v[:, None])[:, 0]
            mean += float(u @ extra.whitened)
            unscaled -= float(u @ u)
        return mean + alpha * float(np.sqrt(max(unscaled, 0.0) * (1.0 / self._log.lam)))

    def _column(self, key: bytes, known: int, row: Callable[[], FloatArray]) -> FloatArray:
        """v over the first ``known`` rows of the point with this key, whose kernel values are ``row()``."""
        solve = self._solves.get(key)
        if solve is None:
            solve = self._solves[key] = _Solve(self._log.factor.solve(row()[:known, None])[:, 0])
        elif len(solve.v) < known:
            start = len(solve.v)
            new = self._log.factor.resume(solve.v[:, None], row()[start:known, None])
            solve.v = np.concatenate([solve.v, new[:, 0]])
        return solve.v[:known]

    def _covariances(self, X: FloatArray, K: FloatArray, known: int, points: FloatArray) -> FloatArray:
        """Covariances (q, n) of arms X, whose kernel rows are K (n, known), with points (q, d), given the rows."""
        cross = self._log.cross
        backward = [self._backward(x.tobytes(), known, lambda x=x: cross(x[None], known)[0]) for x in points]
        covariances: FloatArray = self._log.kernel(points, X) - np.stack(backward) @ K.T
        return covariances

    def _backward(self, key: bytes, known: int, row: Callable[[], FloatArray]) -> FloatArray:
        """(K + lam I)^(-1) k(x) over the first ``known`` rows."""
        v = self._column(key, known, row)
        solve = self._solves[key]
        if solve.s is None:
            solve.s = self._log.factor.solve_transposed(v[: self._base, None])[:, 0]
        return self._on_top(solve.s, v[self._base :])

    def _on_top(self, below: FloatArray, top: FloatArray) -> FloatArray:
        """L^(-T) (v, u) from L_b^(-T) v over the base and the entries u of the rows since."""
        if not len(top):
            return below
        w = self._log.factor.solve_transposed(top[:, None], self._base)[:, 0]
        return np.concatenate([below - w @ self._pending_rows(len(top)), w])

    def _weights(self, known: int) -> FloatArray:
        """a = (K + lam I)^(-1) y over the first ``known`` rows."""
        return self._on_top(self._base_weights, self._log.whitened_rewards(known)[self._base :])

    def _pending_rows(self, count: int) -> FloatArray:
        """s of the first rows since the base, (count, base)."""
        missing = [place for place in range(count) if self._pending[place] is None]
        if missing:
            V = self._log.factor.rows(self._base, self._base + count)[missing, : self._base]
            for place, s in zip(missing, self._log.factor.solve_transposed(V.T).T, strict=True):
                self._pending[place] = s.copy()
        return np.array(self._pending[:count])

    # --- many turns

    def _move(self, known: int, alpha: float) -> None:
        """Make the first ``known`` rows the base, and prepare the turns that have been foreseen since the last time."""
        if known > self._base:
            self._lengthen(known)
        fresh = [arms for arms, squares in self._coming.items() if squares is None]
        picked: list[tuple[bytes, FloatArray]] = []
        for start in range(0, len(fresh), SETS_AT_ONCE):
            picked += self._likely(fresh[start : start + SETS_AT_ONCE], alpha)
        rows = np.array([row for _, row in picked] or np.empty((0, self._base)))
        V = self._log.factor.solve(rows.T)
        S = self._log.factor.solve_transposed(np.column_stack([V, self._log.whitened_rewards(self._base)]))
        self._base_weights = S[:, -1].copy()
        for (key, _), v, s in zip(picked, V.T, S.T, strict=False):
            self._solves[key] = _Solve(v.copy(), s.copy())
            self._waiting.add(key)

    def _lengthen(self, known: int) -> None:
        """Take the rows up to ``known`` into the base."""
        if not self.active:
            self._pending = [None] * self._log.size
            self._reach = self._reach or 0.0
            self._base_weights = self._log.factor.solve_transposed(self._log.whitened_rewards(known)[:, None])[:, 0]
        else:
            self._base_weights = self._weights(known)
            self._lengthen_solves(known)
        del self._pending[: known - self._base]
        self._base, self.active = known, True
        # What lies beyond the new base was over the old one.
        self._pending = [None] * len(self._pending)

    def _lengthen_solves(self, known: int) -> None:
        keys = [key for key, solve in self._solves.items() if solve.s is not None]
        if not keys:
            return
        short = [key for key in keys if len(self._solves[key].v) == self._base]
        if short:
            V = np.array([self._solves[key].v for key in short])
            X = np.array([np.frombuffer(key) for key in short])
            points = self._log.points[self._base : known]
            U = self._log.factor.resume(V.T, self._log.kernel.against(points).evaluate(X).T)
            for key, whole in zip(short, np.hstack([V, U.T]), strict=True):
                self._solves[key].v = whole
        tops = np.array([self._column(key, known, lambda key=key: self._row(key, known))[self._base :] for key in keys])
        W = self._log.factor.solve_transposed(tops.T, self._base).T
        S = np.array([self._solves[key].s for key in keys])
        S -= W @ self._pending_rows(known - self._base)
        for key, s in zip(keys, np.hstack([S, W]), strict=True):
            self._solves[key].s = s

    def _row(self, key: bytes, known: int) -> FloatArray:
        row: FloatArray = self._log.cross(np.frombuffer(key)[None], known)[0]
        return row

    def _likely(self, sets: Sequence[ArmSet], alpha: float) -> list[tuple[bytes, FloatArray]]:
        """The likely winners of some arm sets, with their kernel rows over the base; notes what bounds sigma."""
        X = np.concatenate([arms.features for arms in sets])
        K = self._log.cross(X, self._base)
        squares = self._leading_squares(K, self._leading(self._base, True))
        unscaled = np.maximum(self._log.kernel.diag(X) - squares, 0.0)
        bounds = K @ self._base_weights + alpha * np.sqrt(unscaled / self._log.lam)
        self._reach = self._reach or 0.2 * alpha * float(np.sqrt(self._log.kernel.diag(X).max() / self._log.lam))
        picked: dict[bytes, FloatArray] = {}
        start = 0
        for arms in sets:
            end = start + len(arms)
            self._coming[arms] = squares[start:end]
            for place in (start + np.flatnonzero(bounds[start:end] >= bounds[start:end].max() - self._reach)).tolist():
                key = X[place].tobytes()
                if key not in self._solves:
                    picked[key] = K[place]
            start = end
        return [(key, row.copy()) for key, row in picked.items()]

    def _leading(self, known: int, prepared: bool) -> int:
        """How many leading entries of v bound sigma: what is prepared many at once may take more."""
        return min(known, max(256, known // 10) if prepared else 384)

    def _leading_squares(self, K: FloatArray, leading: int) -> FloatArray:
        V = self._log.factor.solve(K[:, :leading].T)
        squares: FloatArray = np.einsum("ij,ij->i", V.T, V.T)
        return squares

    def _margin(self, known: int) -> float:
        """Far more than the rounding of a score from weights: the condition of K + lam I is at most n k(x, x)/lam."""
        scale = self._log.scale
        return 1e-12 * (known + 1) * scale * scale

    def _forget(self) -> None:
        """Drop the oldest solves of arms that were pulled long ago."""
        idle = len(self._solves) - len(self._waiting)
        if idle > 2 * MOST_IDLE:
            for key in [key for key in self._solves if key not in self._waiting][: idle - MOST_IDLE]:
                del self._solves[key]
