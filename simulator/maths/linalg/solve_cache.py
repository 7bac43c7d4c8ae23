"""Triangular solves remembered and prepared, so that nobody asks a growing factor twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coband.simulator.arrays import FloatArray


class SolveCache:
    """Answers V = L^(-1) k(X_known, X) over the first ``known`` rows of a growing factor.

    The last solve is remembered: the arm chosen from it becomes a row of the factor without a second solve, and agents
    that know the same rows and see the same arms share one. Arrays that were foreseen are solved together.

    Args:
        compute: the solve itself, of X (n, d) over so many rows, as a new array (known, n).
    """

    def __init__(self, compute: Callable[[FloatArray, int], FloatArray]) -> None:
        self._compute = compute
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._prefetched: list[FloatArray] = []
        self._solved: dict[int, FloatArray] = {}

    def __call__(self, X: FloatArray, known: int) -> FloatArray:
        """V for X (n, d), read-only (known, n)."""
        V = self._recalled(X, known)
        if V is None:
            V = self._prepared(X, known)
        if V is None:
            V = self._read_only(X, known)
            self._last = (X.copy(), V)
        return V

    def prefetch(self, X: FloatArray) -> None:
        """Say that this very array will be asked about soon: all such arrays are then solved together.

        They share one solve over the rows that the first question names; a question about other rows is answered by
        itself.
        """
        if self._solved:
            self.forget()
        self._prefetched.append(X)

    def forget(self) -> None:
        """Drop what was foreseen: the factor has grown."""
        self._prefetched, self._solved = [], {}

    def _recalled(self, X: FloatArray, known: int) -> FloatArray | None:
        if self._last is None:
            return None
        seen, V = self._last
        if len(V) < known or X.shape[1] != seen.shape[1]:
            return None
        if len(X) == 1:
            same = np.flatnonzero((seen == X).all(axis=1))
            return V[:known, same[:1]] if len(same) else None
        return V[:known] if np.array_equal(seen, X) else None

    def _prepared(self, X: FloatArray, known: int) -> FloatArray | None:
        """The solve of a foreseen array."""
        if not self._solved and any(item is X for item in self._prefetched):
            V = self._read_only(np.vstack(self._prefetched), known)
            ends = np.cumsum([len(item) for item in self._prefetched]).tolist()
            for item, end in zip(self._prefetched, ends, strict=True):
                self._solved[id(item)] = V[:, end - len(item) : end]
        V_of_X = self._solved.get(id(X))
        return V_of_X if V_of_X is not None and len(V_of_X) == known else None

    def _read_only(self, X: FloatArray, known: int) -> FloatArray:
        V = self._compute(X, known)
        V.flags.writeable = False
        return V
