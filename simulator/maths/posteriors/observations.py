"""A growing data set of points and rewards."""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray


class Observations:
    """Points of shape (n, d) and rewards of shape (n,), in the order in which they came.

    Args:
        dimension: d.
    """

    __slots__ = ("_points", "_rewards", "size")

    def __init__(self, dimension: int) -> None:
        self._points = np.empty((8, dimension))
        self._rewards = np.empty(8)
        self.size = 0

    @property
    def points(self) -> FloatArray:
        """All points, a view."""
        return self._points[: self.size]

    @property
    def rewards(self) -> FloatArray:
        """All rewards, a view."""
        return self._rewards[: self.size]

    def append(self, point: FloatArray, reward: float) -> None:
        """Add one observation."""
        if self.size == len(self._rewards):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._rewards = np.concatenate([self._rewards, np.empty_like(self._rewards)])
        self._points[self.size] = point
        self._rewards[self.size] = reward
        self.size += 1

    def since(self, start: int) -> tuple[FloatArray, FloatArray]:
        """Copies of the points and rewards from number ``start`` on."""
        return self._points[start : self.size].copy(), self._rewards[start : self.size].copy()
