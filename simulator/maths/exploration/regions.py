"""Connected regions of a finite set of points.

On a continuous domain a set falls into its connected components. Of finitely many points this keeps the notion: two
points are linked when they are no further apart than the longest link of a minimum spanning tree of the whole domain,
the smallest distance at which the whole domain is connected; a region is a set of points that links connect.
"""

from __future__ import annotations

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.linalg.caches import RecentCache


class Regions:
    """Splits subsets of a domain into connected regions.

    Args:
        points: the domain (M, d).

    Attributes:
        reach: distance up to which points are linked.
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self.reach = float(_grown(points)[1].max(initial=0.0))
        self._found = RecentCache[tuple[IndexArray, ...]](2)

    def of(self, active: IndexArray) -> tuple[IndexArray, ...]:
        """The regions of the points with those numbers, ascending, in the order of their first points."""
        return self._found.get(active.tobytes(), lambda: self._split(active))

    def _split(self, active: IndexArray) -> tuple[IndexArray, ...]:
        order, links = _grown(self._points[active])
        starts = np.flatnonzero(
            links > self.reach
        )  # a tree grows from one region to the next only when one is complete
        parts = [np.sort(active[part]) for part in np.split(order, starts)]
        return tuple(sorted(parts, key=lambda part: int(part[0])))


def _grown(points: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Prim's minimum spanning tree of n points (n, d): the order in which it takes them in, and the length of the link
    that each is taken in by (0 for the first), both (n,)."""
    n = len(points)
    order, links = np.zeros(n, dtype=np.intp), np.zeros(n)
    nearest = np.full(n, np.inf)
    newest = 0
    for number in range(1, n):
        nearest = np.minimum(nearest, np.sqrt(((points - points[newest]) ** 2).sum(axis=1)))
        nearest[order[:number]] = np.inf
        newest = int(nearest.argmin())
        order[number], links[number] = newest, nearest[newest]
    return order, links
