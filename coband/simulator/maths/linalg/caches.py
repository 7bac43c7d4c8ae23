"""Results by what they were made from, so that nodes that would compute the same share one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Sharing(Protocol):
    """Where nodes find the caches that they have in common (``core.node.Sharing``)."""

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
