"""Regret and turns as functions of turns, scalars, simulated time and energy: means over replications on a common grid.

A stored series has values after some of the turns. Between two stored turns a curve keeps the earlier value (a step
function), so it contains no interpolated value. A curve ends where the shortest replication ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store.store import Series

Axis = Literal["turns", "scalars", "times", "energy"]
Height = Literal["regret", "turns"]
POINTS = 240
DECADES = 1e-4


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean over ``count`` replications.

    Attributes:
        x: positions, shape (points,).
        mean: means, shape (points,).
        band: (low, high) of the 95 % t intervals of the mean, each of shape (points,); None for one replication.
        constant: whether x stays at 0 in every replication (nothing is sent); the curve is then its final value.
    """

    x: FloatArray
    mean: FloatArray
    band: tuple[FloatArray, FloatArray] | None
    count: int
    constant: bool = False


def curve(series: Sequence[Series], x: Axis, y: Height, *, log: bool = False) -> Curve:
    """The mean of y as a function of x.

    Args:
        series: one per replication, none empty.
        log: space points evenly on a logarithmic axis, from a ten-thousandth of the end.
    """
    ends = [float(getattr(one, x)[-1]) for one in series]
    end = min(ends)
    if max(ends) <= 0:
        values = np.array([[float(getattr(one, y)[-1])] for one in series])
        return Curve(np.zeros(1), values.mean(axis=0), statistics.bands(values), len(series), constant=True)
    grid = _grid(series, x, end, log) if end > 0 else np.zeros(1)
    values = np.array([at(one, x, y, grid) for one in series])
    return Curve(grid, values.mean(axis=0), statistics.bands(values), len(series))


def _grid(series: Sequence[Series], x: Axis, end: float, log: bool) -> FloatArray:
    if log:
        return np.geomspace(max(1.0, end * DECADES), end, POINTS)
    first = np.asarray(getattr(series[0], x), dtype=np.float64)
    if x == "turns" and all(np.array_equal(first, one.turns) for one in series):
        kept = np.unique(np.linspace(0, len(first) - 1, POINTS).round().astype(np.intp))
        return np.concatenate([[0.0], first[kept]])  # positions at which every replication has a stored value
    return np.linspace(0.0, end, POINTS)


def at(series: Series, x: Axis, y: Height, grid: FloatArray) -> FloatArray:
    """y of one replication at the points of a grid of x; 0 before its first turn.

    Where several turns share one x (nothing was sent in between), the last of them counts.
    """
    index = np.searchsorted(getattr(series, x), grid, side="right") - 1
    heights = np.asarray(getattr(series, y), dtype=np.float64)
    return np.where(index >= 0, heights[np.maximum(index, 0)], 0.0)
