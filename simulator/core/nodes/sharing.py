"""Work that nodes would do alike, done once for all of them; no way for information to pass between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Sharing:
    """Work that several nodes would do alike, done once.

    ``get(key, build)`` hands out one object per key. What it returns may save work, never pass information: with
    ``on=False`` every caller gets an object of its own and the run is identical.
    """

    def __init__(self, on: bool = True) -> None:
        self.on = on
        self._objects: dict[Hashable, Any] = {}
        self._common: dict[Hashable, Any] = {}

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The object under ``key``, built at the first call (at every call when sharing is off)."""
        if not self.on:
            return build()
        if key not in self._objects:
            self._objects[key] = build()
        found: T = self._objects[key]
        return found

    def common(self, key: Hashable, build: Callable[[], T]) -> T:
        """One object for all nodes whether sharing is on or off, through which they do learn from each other.

        Only for reproducing published code in which nodes have storage in common; nothing of it is counted.
        """
        found: T = self._common.setdefault(key, build())
        return found

    @property
    def has_common(self) -> bool:
        """Whether nodes have anything in common, so that they must be in one process."""
        return bool(self._common)
