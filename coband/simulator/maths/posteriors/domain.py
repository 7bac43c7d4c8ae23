"""A finite domain: an arm set that is the same at every turn, with the kernel between its points.

Equal points of a domain share one entry in everything that is computed, so that a tie between them is exact and goes
to the lowest index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import BoolArray, FloatArray, IndexArray, require_room
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.posteriors.counts import CountFactor

WHOLE_GRAM = 512
"""Domains of at most so many points keep their kernel matrix from the start."""

POINTS_AT_ONCE = 4096
"""Points whose variances are computed together: with n observations that takes n times as many numbers."""


class Domain:
    """The points of a finite domain and the kernel between them; immutable, so that many agents can hold one.

    Args:
        arms: the domain, ``ArmSet.fixed``: what an agent is offered at each turn.
    """

    def __init__(self, kernel: Kernel, arms: ArmSet) -> None:
        self.kernel = kernel
        self.arms = arms
        self.points = arms.features
        self.distinct, self._places = distinct(self.points)
        self.diag = kernel.diag(self.distinct)
        self._bound = kernel.against(self.distinct)

    @property
    def size(self) -> int:
        """Number of distinct points M."""
        return len(self.distinct)

    @cached_property
    def gram(self) -> FloatArray:
        """The kernel matrix of the distinct points, read-only (M, M).

        Raises:
            TooLarge: this machine cannot hold it.
        """
        what = f"a matrix of all pairs of {self.size:,} points of a domain"
        require_room(what, self.size, self.size, instead="take fewer points")
        K = self.kernel(self.distinct, self.distinct)
        K.flags.writeable = False
        return K

    def column(self, entry: int) -> FloatArray:
        """k(U, u) of all distinct points U with the one of that number, (M,). The caller owns the result."""
        if self.size <= WHOLE_GRAM:
            return np.array(self.gram[entry])
        column: FloatArray = self._bound.evaluate(self.distinct[entry : entry + 1])[0]
        column[entry] = self.diag[entry]
        return column

    def entries(self, points: Points) -> IndexArray:
        """Numbers, among the distinct points, of p points of the domain, (p,).

        Those of the domain's arms follow from their ids; other points are looked up.

        Raises:
            ValueError: a point is not one of the domain.
        """
        if points is self.arms:
            return points.ids if self._places is None else self._places
        if isinstance(points, ArmSet) and points.domain is self.arms:
            return self.number(points.ids)
        try:
            rows = np.ascontiguousarray(features_of(points)) + 0.0  # turns -0 into 0
            return np.array([self._numbers[row.tobytes()] for row in rows], dtype=np.intp)
        except KeyError:
            raise ValueError(f"a point is not one of the {self.size} points of the domain.") from None

    def number(self, arms: IndexArray) -> IndexArray:
        """Numbers, among the distinct points, of the arms with those ids."""
        return arms if self._places is None else self._places[arms]

    def at(self, points: Points, *values: FloatArray) -> tuple[FloatArray, ...]:
        """What ``values`` (M,) of the distinct points are at p points of the domain, each (p,)."""
        if points is self.arms and self._places is None:
            return values
        entries = self.entries(points)
        return tuple(value[entries] for value in values)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(self.distinct) + 0.0)}


def distinct(points: FloatArray) -> tuple[FloatArray, IndexArray | None]:
    """The distinct points in order of first appearance, and the number of each point among them (None: its own)."""
    found, first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    if len(found) == len(points):
        return points, None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return found[order], rank[place.reshape(-1)]


def first_appearances(points: FloatArray, known: FloatArray) -> BoolArray:
    """Which of ``points`` (p, d) equal none of ``known`` (m, d) and none of ``points`` before them, (p,)."""
    start = len(known)
    _, places = distinct(np.concatenate([known, points]) if start else points)
    if places is None:
        return np.ones(len(points), dtype=np.bool_)
    highest = np.maximum.accumulate(np.concatenate([[-1], places]))
    new: BoolArray = places > highest[:-1]
    return new[start:]


def exact_variance(
    kernel: Kernel, lam: float, points: FloatArray, counts: Sequence[int] | IndexArray, X: FloatArray
) -> FloatArray:
    """k(x,x) - k(x)^T (K + lam I)^(-1) k(x) at X (n, d) given each of p ``points`` observed ``counts`` times, (n,).

    Pavlovic et al. 2024, eq. 4 (lam sigma^2 of Li et al. 2023, eq. 1). Repeated observations enter by their number, so
    the cost is O(p^3 + p^2 n) however many there are (``maths.posteriors.counts``).
    """
    variance = kernel.diag(X)
    if not len(points):
        return variance
    factor = CountFactor.of(kernel(points, points), np.asarray(counts, dtype=np.float64), lam)
    bound = kernel.against(points)
    for start in range(0, len(X), POINTS_AT_ONCE):
        part = slice(start, start + POINTS_AT_ONCE)
        V = factor.solve(bound.evaluate(X[part]))
        variance[part] -= np.einsum("ij,ij->j", V, V)
    return np.maximum(variance, 0.0, out=variance)
