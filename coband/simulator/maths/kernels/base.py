"""What kernels share: binding to points (what depends on those points is computed once), accurate distances for
stationary ones, composites.

A base kernel lifts its arguments so that one matrix product carries all the arithmetic between two points,
``G = left(X) right(Y)^T``, followed by an elementwise function in place: ``k(X, Y) = finish(G)``.
A bound kernel keeps ``right(Y)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Protocol, Self

import numpy as np
from annotated_types import Ge, Gt

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.plugins.kinds import describe_properties


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


Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Columns = tuple[Annotated[int, Ge(0)], ...]

STRICT: Mapping[str, Any] = {"extra": "forbid", "allow_inf_nan": False}
"""How scenarios are read into kernels: no unknown keys, no infinite numbers."""

_CLOSE = 1e-4
"""Squared distances below this share of the squared norms are taken by difference: relative error at most 1e-12."""
_PAIRS_AT_ONCE = 1 << 16


class _Described:
    """Kernels are dataclasses, which pydantic reads; the docstrings below their fields describe them."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, object]:
        schema: dict[str, object] = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        describe_properties(cls, properties, {name: name for name in properties})
        return schema


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


class BaseKernel(_Described):
    """A kernel of the form ``finish(left(X) right(Y)^T)``, on the coordinates ``columns`` of the points."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT
    columns: tuple[int, ...] | None
    """Coordinates of the points that the kernel looks at, from 0; null for all."""

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """The matrix k(X, Y), shape (n, m); exactly symmetric with exact diagonal when X is Y."""
        K = self.against(Y).evaluate(X)
        return symmetric(K, self.diag(X)) if X is Y else K

    def against(self, Y: FloatArray) -> BoundKernel:
        return BoundBaseKernel.of(self, Y)

    def diag(self, X: FloatArray) -> FloatArray:
        """The exact k(x, x) of every row of X (n, d), shape (n,)."""
        raise NotImplementedError

    def left(self, X: FloatArray) -> FloatArray:
        """Lifted first argument (n, r)."""
        raise NotImplementedError

    def right(self, Y: FloatArray) -> FloatArray:
        """Lifted second argument (m, r)."""
        return Y

    def cancels(self, right: FloatArray) -> bool:
        """False: a plain inner product has no norms that cancel."""
        return False

    def mend(self, G: FloatArray, left: FloatArray, right: FloatArray) -> None:
        """Recompute, in place, the entries of G (n, m) that suffer from cancellation: none here."""

    def finish(self, G: FloatArray) -> FloatArray:
        """The elementwise part, in place on G (n, m)."""
        raise NotImplementedError

    def on_columns(self, start: int, width: int) -> Self:
        """This kernel on coordinates ``start`` .. ``start + width - 1`` of longer points."""
        columns = tuple(range(width)) if self.columns is None else self.columns
        return replace(self, columns=tuple(start + column for column in columns))  # type: ignore[type-var]

    @property
    def largest_column(self) -> int:
        """The last of the coordinates that the kernel is restricted to; -1 when it takes all there are."""
        return max(self.columns or (-1,))

    def check_columns(self) -> None:
        """Refuse columns that cannot be; for ``__post_init__``."""
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
            if not self.columns or min(self.columns) < 0:
                raise ValueError(f"columns(={self.columns}) must name at least one coordinate, each >= 0.")


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


class StationaryKernel(BaseKernel):
    """A function of r = ||x - y|| / l, from G = -r^2/2 = u.v - ||u||^2/2 - ||v||^2/2 with u = x/l and v = y/l."""

    def inverse_length(self) -> float:
        raise NotImplementedError

    def diag(self, X: FloatArray) -> FloatArray:
        """k(x, x) = 1, exactly; shape (n,)."""
        return np.ones(len(X))

    def left(self, X: FloatArray) -> FloatArray:
        """Rows (u, -||u||^2/2, 1), shape (n, d + 2)."""
        return self._lifted(X, norm=-2, one=-1)

    def right(self, Y: FloatArray) -> FloatArray:
        """Rows (v, 1, -||v||^2/2), shape (m, d + 2)."""
        return self._lifted(Y, norm=-1, one=-2)

    def mend(self, G: FloatArray, left: FloatArray, right: FloatArray) -> None:
        """Take -r^2/2 of close pairs by difference; equal points get exactly zero."""
        threshold = left[:, -2, None] + right[:, -1]
        threshold *= _CLOSE
        rows, cols = np.nonzero(threshold < G)
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            i, j = rows[start : start + _PAIRS_AT_ONCE], cols[start : start + _PAIRS_AT_ONCE]
            difference = left[i, :-2] - right[j, :-2]
            G[i, j] = -0.5 * np.einsum("ij,ij->i", difference, difference)

    def _lifted(self, X: FloatArray, norm: int, one: int) -> FloatArray:
        lifted = np.empty((X.shape[0], X.shape[1] + 2))
        scaled = lifted[:, :-2]
        np.multiply(X, self.inverse_length(), out=scaled)
        norms = np.einsum("ij,ij->i", scaled, scaled)
        np.multiply(norms, -0.5, out=lifted[:, norm])
        lifted[:, one] = 1.0
        return lifted


def symmetric(K: FloatArray, diagonal: FloatArray) -> FloatArray:
    """The lower triangle of K (n, n), repeated above it, with a given diagonal (n,)."""
    K = np.tril(K, -1)
    K += K.T
    K.flat[:: len(K) + 1] = diagonal
    return K


def cut_at_zero(G: FloatArray) -> None:
    """Set entries above zero to zero, in place; finding that there are none takes a quarter of the time."""
    if not G.max(initial=0.0) <= 0.0:
        np.minimum(G, 0.0, out=G)


def squared_norms(X: FloatArray, columns: tuple[int, ...] | None) -> FloatArray:
    """||x||^2 over the given coordinates of every row of X (n, d), shape (n,)."""
    seen = select_columns(X, columns)
    norms: FloatArray = np.einsum("ij,ij->i", seen, seen)
    return norms


def check_positive(**values: float | None) -> None:
    """Refuse parameters that are given and not > 0, by name."""
    for name, value in values.items():
        if value is not None and not value > 0:
            raise ValueError(f"{name}(={value}) must be > 0.")


def check_nonnegative(**values: float) -> None:
    """Refuse parameters that are not >= 0, by name."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name}(={value}) must be >= 0.")


class CompositeKernel(_Described):
    """What products and sums share.

    Attributes:
        _combine: the numpy function that joins two kernel matrices in place.
        _field: the name of the field with the kernels that are joined.
    """

    __pydantic_config__ = STRICT
    _combine: ClassVar[np.ufunc]
    _field: ClassVar[str]

    def __post_init__(self) -> None:
        if not self._parts():
            raise ValueError(f"{self._field}(={self._parts()}) must hold at least one kernel.")
        object.__setattr__(self, self._field, tuple(self._parts()))

    def _parts(self) -> tuple[KernelSpec, ...]:
        parts: tuple[KernelSpec, ...] = getattr(self, self._field)
        return parts

    @property
    def largest_column(self) -> int:
        """The largest that a part names, -1 when none names any."""
        return max(part.largest_column for part in self._parts())

    def on_columns(self, start: int, width: int) -> Self:
        moved = tuple(part.on_columns(start, width) for part in self._parts())
        return replace(self, **{self._field: moved})  # type: ignore[type-var]

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        K: FloatArray = self._combine.reduce([part(X, Y) for part in self._parts()])
        return K

    def diag(self, X: FloatArray) -> FloatArray:
        """The product or sum of the parts' k(x, x), shape (n,)."""
        diagonal: FloatArray = self._combine.reduce([part.diag(X) for part in self._parts()])
        return diagonal

    def against(self, Y: FloatArray) -> BoundKernel:
        return BoundComposite(self._combine, tuple(part.against(Y) for part in self._parts()))


KernelSpec = BaseKernel | CompositeKernel
"""Every kernel that a scenario can name, told apart by ``kind``."""
