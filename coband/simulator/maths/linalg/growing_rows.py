"""Rows that grow at the end, in storage that doubles."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from coband.simulator.arrays import FloatArray


@lru_cache(maxsize=64)
def _nothing(width: int) -> FloatArray:
    """The storage of all tables without a row."""
    nothing = np.empty((0, width))
    nothing.setflags(write=False)
    return nothing


FEW = 100
"""Numbers up to which a table is one array without room for more: most agents of a large fleet have few rows."""


class GrowingRows:
    """An append-only table of rows of one width: appending is amortised O(width), reading is a view; a table of few
    numbers has no storage beside them.

    Rows already written never move within a view that was handed out, and never change.
    """

    __slots__ = ("_all", "_buffer", "_capacity", "size")

    def __init__(self, width: int, capacity: int = 4) -> None:
        self._buffer, self._capacity = _nothing(width), capacity
        self.size = 0
        self._all: FloatArray | None = self._buffer

    def append(self, rows: FloatArray) -> None:
        """Write ``rows`` (p, width) after the last one."""
        size, buffer = self.size, self._buffer
        needed, length = size + len(rows), len(buffer)
        if size == length and needed * rows.shape[1] <= FEW:
            if len(rows):
                first = needed == 1
                self._all = self._buffer = np.array(rows, float, order="C") if first else np.concatenate((buffer, rows))
                self._buffer.setflags(write=False)
                self.size = needed
            return
        if needed > length:
            self._buffer = np.empty((max(needed, self._capacity, 2 * length), buffer.shape[1]))
            if size:
                self._buffer[:size] = buffer[:size]
            buffer = self._buffer
        buffer[size:needed] = rows
        self.size, self._all = needed, None

    def leading(self, size: int) -> FloatArray:
        """The first ``size`` rows, a read-only view (size, width); all where there are no more."""
        if size < self.size:
            view = self._buffer[:size]
            view.setflags(write=False)
            return view
        return self.all

    @property
    def all(self) -> FloatArray:
        """All rows, a read-only view (n, width)."""
        if self._all is None:
            self._all = self._buffer[: self.size]
            self._all.setflags(write=False)
        return self._all

    def forked(self, size: int) -> GrowingRows:
        """A table of its own that starts with the first ``size`` rows of this one."""
        copy = GrowingRows(self._buffer.shape[1], max(4, 2 * size))
        if size == self.size == len(self._buffer):
            copy._all = copy._buffer = self._buffer
            copy.size = size
        else:
            copy.append(self._buffer[:size])
        return copy
