"""Arm sets that several agents are about to be offered, and what is computed for all of them in one pass.

numpy multiplies a stack of matrices slice by slice, so a slice of a result has the bits that it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray

T = TypeVar("T")


class ArmBatch:
    """Arm sets of one shape and the answers to questions about them.

    Attributes:
        X: features of the arm sets, (N, n, d).
    """

    def __init__(self, sets: list[ArmSet]) -> None:
        self.X: FloatArray = np.array([arms.features for arms in sets])
        self._answers: dict[Hashable, Any] = {}

    def ask(self, question: Hashable, work: Callable[[], T]) -> T:
        """The answer to a question, computed when it is first asked.

        Args:
            question: which one, and about which version of a model if it depends on one.
            work: gives the answer for all arm sets, the n-th slice from the n-th set alone.
        """
        if question not in self._answers:
            self._answers[question] = work()
        answer: T = self._answers[question]
        return answer


class ArmBatches:
    """Puts the arm sets that are announced together into stacks."""

    def __init__(self) -> None:
        self._announced: list[ArmSet] = []
        self._stacks: dict[ArmSet, tuple[ArmBatch, int]] | None = None

    def prepare_together(self, arms: ArmSet) -> None:
        """An agent is about to be offered these arms."""
        if self._stacks is not None:
            self._announced, self._stacks = [], None
        self._announced.append(arms)

    def find(self, arms: ArmSet) -> tuple[ArmBatch, int]:
        """The stack that holds the arm set, and the number of its slice; one of its own unless it was announced."""
        if self._stacks is None:
            self._stacks = self._stacked()
        return self._stacks[arms] if arms in self._stacks else (ArmBatch([arms]), 0)

    def _stacked(self) -> dict[ArmSet, tuple[ArmBatch, int]]:
        shapes: dict[tuple[int, ...], dict[ArmSet, None]] = {}
        for arms in self._announced:
            shapes.setdefault(arms.features.shape, {})[arms] = None
        found: dict[ArmSet, tuple[ArmBatch, int]] = {}
        for sets in shapes.values():
            stack = ArmBatch(list(sets))
            found.update({arms: (stack, place) for place, arms in enumerate(sets)})
        return found
