"""Kernels bound to a set of points, so that what depends on those points alone is computed once.

A base kernel lifts its arguments so that one matrix product carries all the arithmetic between two points,
``G = left(X) right(Y)^T``, followed by an elementwise function in place: ``k(X, Y) = finish(G)``.
A bound kernel keeps ``right(Y)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.growing_rows import GrowingRows

if TYPE_CHECKING:
    from coband.simulator.maths.kernels.base import BaseKernel


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


def select_columns(X: FloatArray, columns: tuple[int, ...] | None) -> FloatArray:
    """The coordinates ``columns`` of the points X (n, d); all of them for None.

    Raises:
        ValueError: a column is not a coordinate of X.
    """
    if columns is None:
        return X
    if max(columns) >= X.shape[1]:
        raise ValueError(f"columns={columns} must be below the dimension of the points, {X.shape[1]}.")
    return X[:, list(columns)]


class BoundBaseKernel:
    """A base kernel bound to points: keeps the lifted points in growing storage.

    Snapshots share the storage. Only the longest one may write into the spare room; any other copies first.
    """

    def __init__(self, kernel: BaseKernel, rows: GrowingRows, cancels: bool) -> None:
        self._kernel = kernel
        self._rows = rows
        self._cancels = cancels
        self.size = rows.size
        self._right = rows.all

    @classmethod
    def of(cls, kernel: BaseKernel, Y: FloatArray) -> BoundBaseKernel:
        """Bind ``kernel`` to the points Y (m, d)."""
        right = kernel.right(select_columns(Y, kernel.columns))
        rows = GrowingRows(right.shape[1], max(16, len(right)))
        rows.append(right)
        return cls(kernel, rows, kernel.cancels(right))

    def evaluate(self, X: FloatArray) -> FloatArray:
        if X.ndim > 2:
            return self._evaluate_stack(X)
        left = self._kernel.left(select_columns(X, self._kernel.columns))
        return self._finished(left @ self._right.T, left)

    def _evaluate_stack(self, X: FloatArray) -> FloatArray:
        left = self._kernel.left(select_columns(X.reshape(-1, X.shape[-1]), self._kernel.columns))
        # One product for each matrix: the last bits of a product depend on its number of rows.
        products = left.reshape(*X.shape[:-1], -1) @ self._right.T
        return self._finished(products.reshape(-1, self.size), left).reshape(products.shape)

    def _finished(self, G: FloatArray, left: FloatArray) -> FloatArray:
        if self._cancels:
            self._kernel.mend(G, left, self._right)
        return self._kernel.finish(G)

    def appended(self, Y: FloatArray) -> BoundBaseKernel:
        right = self._kernel.right(select_columns(Y, self._kernel.columns))
        rows = self._rows if self._rows.size == self.size else self._rows.forked(self.size)
        rows.append(right)
        return BoundBaseKernel(self._kernel, rows, self._cancels or self._kernel.cancels(right))

    def leading(self, size: int) -> BoundBaseKernel:
        if size == self.size:
            return self
        part = BoundBaseKernel(self._kernel, self._rows, self._cancels)
        part.size = size
        part._right = self._rows.leading(size)
        return part


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
