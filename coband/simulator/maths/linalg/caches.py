"""Results by what they were made from, so that nodes that would compute the same share one; triangular solves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray

T = TypeVar("T")


class Sharing(Protocol):
    """Where nodes find the caches that they have in common (``core.nodes.context.Sharing``)."""

    on: bool
    """False: every node gets objects of its own."""

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The object under ``key``, built if there is none."""


class RecentCache(Generic[T]):
    """Results by what they were made from; the last few are kept."""

    def __init__(self, capacity: int = 4) -> None:
        self._capacity = capacity
        self._held: dict[Any, T] = {}

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The result for ``key``, built if it is not held."""
        if key in self._held:
            return self._held[key]
        result = self._held[key] = build()
        while len(self._held) > self._capacity:
            del self._held[self._oldest()]
        return result

    def _oldest(self) -> Any:
        return next(iter(self._held))


class VersionCache(RecentCache[T]):
    """What has been built for a version, which is its key, is handed to all who ask for it: a pure cache.

    Only the newest versions are kept; who uses an older one holds on to it.
    """

    def __init__(self, capacity: int = 32) -> None:
        super().__init__(capacity)

    def _oldest(self) -> Any:
        return min(self._held)


class WeakCache(Generic[T]):
    """Results by what they were made from, each as long as somebody who asked for it holds on to it."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The result for ``key``, built if it is not in use."""
        result = self._held.get(key)
        if result is None:
            result = self._held[key] = build()
        return result


class SolveCache:
    """Answers V = L^(-1) k(X_known, X) over the first ``known`` rows of a growing factor.

    The last solve is kept: the arms chosen from it become rows of the factor without a second solve, and agents that
    know the same rows and see the same arms share one.

    Args:
        compute: the solve itself, of X (n, d) over so many rows, as a new array (known, n).
    """

    def __init__(self, compute: Callable[[FloatArray, int], FloatArray]) -> None:
        self._compute = compute
        self._last: tuple[FloatArray, FloatArray] | None = None

    def __call__(self, points: Points, known: int) -> FloatArray:
        """V for n points, read-only (known, n)."""
        X = features_of(points)
        V = self._recalled(X, known)
        if V is None:
            V = self._compute(X, known)
            V.flags.writeable = False
            self._last = (X if isinstance(points, ArmSet) else X.copy(), V)
        return V

    def _recalled(self, X: FloatArray, known: int) -> FloatArray | None:
        if self._last is None:
            return None
        seen, V = self._last
        if len(V) < known or X.shape[1] != seen.shape[1]:
            return None
        if len(X) == len(seen):
            return V[:known] if np.array_equal(seen, X) else None
        if len(X) > len(seen):
            return None
        same = (seen[:, -1] == X[:, -1, None]).argmax(axis=1)  # the first that can be the one
        if not np.array_equal(seen[same], X):
            matches = (seen == X[:, None]).all(axis=2)
            if not matches.any(axis=1).all():
                return None
            same = matches.argmax(axis=1)
        return V[:known, same]
