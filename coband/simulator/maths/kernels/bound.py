"""Kernels bound to a set of points, so that what depends on those points alone is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from coband.simulator.arrays import FloatArray


class BoundKernel(Protocol):
    """A kernel with its second argument fixed to ``size`` points. Immutable."""

    @property
    def size(self) -> int:
        """Number of points m in the second argument."""

    def evaluate(self, X: FloatArray) -> FloatArray:
        """The matrix k(X, Y), shape (n, m), for X (n, d). The caller owns the result.

        For a stack X (..., n, d) the matrices (..., n, m), each the same to the last bit as by itself.
        """

    def appended(self, Y: FloatArray) -> BoundKernel:
        """The same kernel bound to the present points followed by Y (p, d)."""

    def leading(self, size: int) -> BoundKernel:
        """The same kernel bound to the first ``size`` points."""


class BoundComposite:
    """A product or sum of bound kernels over the same points."""

    def __init__(self, combine: Callable[..., FloatArray], parts: tuple[BoundKernel, ...]) -> None:
        self._combine = combine
        self._parts = parts

    @property
    def size(self) -> int:
        return self._parts[0].size

    def evaluate(self, X: FloatArray) -> FloatArray:
        K = self._parts[0].evaluate(X)
        for part in self._parts[1:]:
            self._combine(K, part.evaluate(X), out=K)
        return K

    def appended(self, Y: FloatArray) -> BoundComposite:
        return BoundComposite(self._combine, tuple(part.appended(Y) for part in self._parts))

    def leading(self, size: int) -> BoundComposite:
        return BoundComposite(self._combine, tuple(part.leading(size) for part in self._parts))
