"""Work that nodes would do alike, done once for all of them; no way for information to pass between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class UndeclaredKnowledge(Exception):
    """A node has read a fact that its algorithm does not declare."""

    @classmethod
    def of(cls, what: str, fact: str) -> UndeclaredKnowledge:
        """What a node has read, and the fact (`coband.simulator.core.nodes.context.FACTS`) that would allow it."""
        return cls(
            f"a node reads context.{what}, which its algorithm does not declare; add {fact!r} to knows=(...) of "
            "the Algorithm, so that comparisons can say what it is told"
        )


class Sharing:
    """Work that several nodes would do alike, done once.

    ``get(key, build)`` hands out one object per key. What it returns may save work, never pass information: with
    ``on=False`` every caller gets an object of its own and the run is identical.

    Args:
        on: whether nodes get the same object.
        storage: whether nodes may have storage in common.
    """

    def __init__(self, on: bool = True, storage: bool = True) -> None:
        self.on, self._storage = on, storage
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

        Raises:
            UndeclaredKnowledge: the algorithm does not declare ``storage``, and all checks are on.
        """
        if not self._storage:
            raise UndeclaredKnowledge.of("sharing.common", "storage")
        found: T = self._common.setdefault(key, build())
        return found

    @property
    def has_common(self) -> bool:
        """Whether nodes have anything in common, so that they must be in one process."""
        return bool(self._common)
