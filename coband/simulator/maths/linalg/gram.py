"""Symmetric matrices that change by few rows at a time: sums of squares, and the inverses that follow from them."""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import padded

CADENCE = 500
"""Observations between two factorisations of a full matrix."""

BLOCK = 64
"""Updates of an inverse that are kept apart before they are added up; until then p^2 numbers are read, not written."""


class ScaledIdentity:
    """The p x p matrix scale * I in one number."""

    __slots__ = ("dimension", "scale")

    def __init__(self, dimension: int, scale: float) -> None:
        self.dimension, self.scale = dimension, scale

    def dense(self) -> FloatArray:
        """The entries, a new (p, p) array."""
        W = np.zeros((self.dimension, self.dimension))
        W.flat[:: self.dimension + 1] = self.scale
        return W


Base = FloatArray | ScaledIdentity


def entries(base: Base) -> FloatArray:
    """The entries of a base, (p, p); to be read only."""
    return base.dense() if isinstance(base, ScaledIdentity) else base


class Gram:
    """The symmetric p x p matrix base + sign * rows^T rows, immutable; it stands for its p^2 entries.

    A sum that grows by few rows at a time need not be written out again each time: who has followed it takes the rows
    that are new to it.

    Args:
        rows: (r, p); never written to again.
        base: (p, p), or None for zero.
    """

    __slots__ = ("base", "rows")
    sign = 1.0

    def __init__(self, rows: FloatArray, base: Base | None = None) -> None:
        self.rows, self.base = rows, base

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[1], self.rows.shape[1]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def grown(self) -> bool:
        """Whether it is more than an empty sum."""
        return self.base is not None or bool(len(self.rows))

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal, (p,)."""
        squares: FloatArray = self.sign * np.einsum("ij,ij->j", self.rows, self.rows)
        return squares if self.base is None else squares + np.diagonal(entries(self.base))

    def dense(self) -> FloatArray:
        W: FloatArray = self.rows.T @ self.rows
        W *= self.sign
        return W if self.base is None else W + entries(self.base)

    def padded(self, dimension: int) -> Gram:
        """The same with zeros in further rows and columns, (dimension, dimension)."""
        rows = np.hstack([self.rows, np.zeros((len(self.rows), dimension - self.rows.shape[1]))])
        return type(self)(rows, None if self.base is None else padded(entries(self.base), dimension))

    def with_entries(self, entries: FloatArray) -> Gram:
        """A matrix of these entries, (p, p), in the same form."""
        return type(self)(np.empty((0, len(entries))), entries)

    def __array__(self, dtype: None = None, copy: bool | None = None) -> FloatArray:
        return self.dense()

    def tolist(self) -> list[list[float]]:
        """The entries row by row, for the trace."""
        rows: list[list[float]] = self.dense().tolist()
        return rows


class Downdate(Gram):
    """base - rows^T rows: an inverse after some observations."""

    __slots__ = ()
    sign = -1.0


class GrowingGram:
    """A p x p sum of squares that grows; :attr:`matrix` is what it is now, at no cost.

    Args:
        cadence: rows after which they are added up.
    """

    __slots__ = ("_base", "_cadence", "_dimension", "_rows")

    def __init__(self, dimension: int, cadence: int = CADENCE) -> None:
        self._dimension, self._cadence = dimension, cadence
        self._base: Base | None = None
        self._rows = GrowingRows(dimension)

    def padded(self, dimension: int) -> GrowingGram:
        W = self.matrix.padded(dimension)
        grown = GrowingGram(dimension, self._cadence)
        grown._base = W.base
        grown._rows.append(W.rows)
        return grown

    def add(self, rows: FloatArray) -> None:
        """W += rows^T rows."""
        if self._rows.size + len(rows) > self._cadence and self._rows.size:
            self._base = self.matrix.dense()
            self._rows = GrowingRows(self._dimension)
        self._rows.append(rows)

    def add_matrix(self, W: Gram) -> None:
        """Add W, its base included."""
        if W.base is None and W.sign > 0:
            self.add(W.rows)
        else:
            self._base, self._rows = self.matrix.dense() + W.dense(), GrowingRows(self._dimension)

    @property
    def matrix(self) -> Gram:
        return Gram(self._rows.all, self._base)


class GramOf(GrowingGram):
    """The same of rows that somebody else keeps, in the order in which they were kept.

    Args:
        rows: of which more are there, each time, than were added so far.
    """

    __slots__ = ("_first", "_known")

    def __init__(self, rows: GrowingRows, cadence: int = CADENCE) -> None:
        self._rows, self._cadence, self._base = rows, cadence, None
        self._first = self._known = 0

    def add(self, rows: FloatArray) -> None:
        if self._known - self._first + len(rows) > self._cadence and self._known > self._first:
            self._base, self._first = self.matrix.dense(), self._known
        self._known += len(rows)

    @property
    def matrix(self) -> Gram:
        return Gram(
            self._rows.leading(self._known)[self._first :] if self._first else self._rows.leading(self._known),
            self._base,
        )


class MeanInverse:
    """The average of inverses that are followed as they change."""

    def __init__(self) -> None:
        self._bases: list[Base | None] = []
        self._taken: list[int] = []
        self._base, self._rows = np.empty((0, 0)), GrowingRows(0)

    def follow(self, inverses: list[Gram]) -> Gram:
        """The average of these; cheap when few rows are new to all of them."""
        if len(self._bases) != len(inverses) or any(
            inverse.base is not base for inverse, base in zip(inverses, self._bases, strict=True)
        ):
            self._start(inverses)
        for number, inverse in enumerate(inverses):
            self._rows.append(inverse.rows[self._taken[number] :] / math.sqrt(len(inverses)))
            self._taken[number] = len(inverse.rows)
        average = Downdate(self._rows.all, self._base)
        if self._rows.size >= BLOCK:
            self._base, self._rows = average.dense(), GrowingRows(len(self._base))
        return average

    def _start(self, inverses: list[Gram]) -> None:
        self._bases = [inverse.base for inverse in inverses]
        total = sum((entries(base) for base in self._bases if base is not None), start=np.zeros(inverses[0].shape))
        self._base = total / len(inverses)
        self._rows, self._taken = GrowingRows(inverses[0].shape[0]), [0] * len(inverses)
