"""Arm sets that several agents are about to be offered, and what is worked out for all of them in one pass.

numpy multiplies a stack of matrices slice by slice, so a slice of an answer has the bits that it has alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from coband.simulator.arrays import FloatArray

T = TypeVar("T")


class ArmBatch:
    """Arm sets of one shape and the answers to questions about them.

    Attributes:
        X: the arm sets, (N, n, d).
    """

    def __init__(self, sets: list[FloatArray]) -> None:
        self.X: FloatArray = np.array(sets)
        self._answers: dict[tuple[Any, ...], tuple[object, Any]] = {}

    def ask(self, question: str, about: object, work: Callable[[], T]) -> T:
        """The answer to a question about an object, worked out when it is first asked.

        Args:
            question: which one.
            about: what it depends on besides the arms; the same object is never to change.
            work: gives the answer for all arm sets, the n-th slice from the n-th set alone.
        """
        key = (question, id(about))
        if key not in self._answers:
            self._answers[key] = (about, work())  # holding the object keeps its id from being given away
        answer: T = self._answers[key][1]
        return answer


class ArmBatches:
    """Puts the arm sets that are foreseen together into stacks."""

    def __init__(self) -> None:
        self._prefetched: list[FloatArray] = []
        self._stacks: dict[int, tuple[ArmBatch, int]] | None = None

    def prefetch(self, X: FloatArray) -> None:
        """An agent is about to be offered X (n, d), the same array that it will ask about."""
        if self._stacks is not None:
            self._prefetched, self._stacks = [], None
        self._prefetched.append(X)

    def find(self, X: FloatArray) -> tuple[ArmBatch, int]:
        """The stack that holds X, and the number of its slice; a stack of its own unless X was foreseen."""
        if self._stacks is None:
            self._stacks = self._stacked()
        return self._stacks[id(X)] if id(X) in self._stacks else (ArmBatch([X]), 0)

    def _stacked(self) -> dict[int, tuple[ArmBatch, int]]:
        shapes: dict[tuple[int, ...], dict[int, FloatArray]] = {}
        for X in self._prefetched:
            shapes.setdefault(X.shape, {})[id(X)] = X
        found: dict[int, tuple[ArmBatch, int]] = {}
        for sets in shapes.values():
            stack = ArmBatch(list(sets.values()))
            found.update({key: (stack, place) for place, key in enumerate(sets)})
        return found
