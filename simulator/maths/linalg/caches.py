"""Results by what they were made from, so that nodes that would compute the same share one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Sharing(Protocol):
    """Where nodes find the caches that they have in common (``core.node.Sharing``)."""

    on: bool
    """False: every node gets objects of its own."""

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The object under ``key``, built if there is none."""


class VersionCache(Generic[T]):
    """What has been built for a version is handed to all who ask for it: a pure cache.

    Only the newest versions are kept; who uses an older one holds on to it.

    Args:
        capacity: number of versions kept.
    """

    def __init__(self, capacity: int = 32) -> None:
        self._capacity = capacity
        self._held: dict[int, T] = {}

    def get(self, version: int, build: Callable[[], T]) -> T:
        """The result for ``version``, built if it is not held."""
        if version in self._held:
            return self._held[version]
        result = self._held[version] = build()
        while len(self._held) > self._capacity:
            del self._held[min(self._held)]
        return result


class RecentCache(Generic[T]):
    """Results by what they were made from; the last few are kept.

    Args:
        capacity: number of results kept.
    """

    def __init__(self, capacity: int = 4) -> None:
        self._capacity = capacity
        self._held: dict[Hashable, T] = {}

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The result for ``key``, built if it is not held."""
        if key in self._held:
            return self._held[key]
        result = self._held[key] = build()
        while len(self._held) > self._capacity:
            del self._held[next(iter(self._held))]
        return result


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
