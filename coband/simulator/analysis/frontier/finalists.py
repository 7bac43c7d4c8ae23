"""Which candidates of a search are evaluated again (those that no other of their algorithm dominates, well spread), and
which point of a frontier to choose: ranked by the search's replications, confirmed and reported on fresh ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.dominance import non_dominated
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import RequestError, did_you_mean, quoted


def layers(means: FloatArray) -> list[int]:
    """The layer of each row: 0 for those that no row beats, 1 for those that only rows of layer 0 beat, and so on.

    Args:
        means: one row per point, low being better, shape (points, objectives).
    """
    found, left, layer = [0] * len(means), list(range(len(means))), 0
    while left:
        front = {left[i] for i, free in enumerate(non_dominated(means[left])) if free}
        for index in front:
            found[index] = layer
        left = [index for index in left if index not in front]
        layer += 1
    return found


def finalists(entries: Sequence[int], means: FloatArray, most: int) -> list[int]:
    """The rows to evaluate again, in their order: whole layers first, of the layer that does not fit the best spread.

    Layers are those of each entry by itself, since an algorithm's own trade-off is worth knowing where another one
    beats it; rows that no row at all beats come first within a layer. Each entry has one row at least.

    Args:
        entries: what each row belongs to.
        means: shape (points, objectives).
        most: how many, at least one for each entry.
    """
    own = np.array(entries)
    rank = np.zeros(len(own), dtype=int)
    for entry in set(entries):
        rows = np.flatnonzero(own == entry)
        rank[rows] = layers(means[rows])
    beaten = ~np.array(non_dominated(means), dtype=bool)
    scaled = _scaled(means)
    chosen = [_middle(scaled, np.flatnonzero((own == entry) & (rank == 0))) for entry in dict.fromkeys(entries)]
    for layer, worse in sorted({(int(a), bool(b)) for a, b in zip(rank, beaten, strict=True)}):
        left = [i for i in np.flatnonzero((rank == layer) & (beaten == worse)).tolist() if i not in chosen]
        while left and len(chosen) < most:
            distances = np.abs(scaled[left][:, None, :] - scaled[chosen][None, :, :]).max(axis=2).min(axis=1)
            chosen.append(left.pop(int(distances.argmax())))
    return sorted(chosen[:most])


def compromise(means: FloatArray) -> int:
    """The row whose largest loss is smallest, each objective on the scale from its best (0) to its worst (1) value.

    Args:
        means: of the rows that are not dominated, shape (points, objectives).
    """
    return _middle(_scaled(means), np.arange(len(means)))


def _middle(scaled: FloatArray, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    part = scaled[rows]
    return int(rows[np.lexsort((part.sum(axis=1), part.max(axis=1)))[0]])


def _scaled(means: FloatArray) -> FloatArray:
    """Each column from 0 to 1, after asinh, which is a logarithm for large numbers."""
    bent = np.arcsinh(means)
    width = np.ptp(bent, axis=0)
    found: FloatArray = (bent - bent.min(axis=0)) / np.where(width > 0, width, 1.0)
    return found


Point = Mapping[str, Any]
COMPROMISE = "compromise"


class ChoiceError(RequestError):
    """Nothing can be chosen so; the text says why."""


def choose(
    points: Sequence[Point], better: Mapping[str, str], on: str | None = None, limits: Mapping[str, float] | None = None
) -> Point | None:
    """The best point within limits, by the means of the search's replications.

    Fresh replications rank nothing, so that their numbers are no better than they should be: the best of many was also
    lucky where it was chosen. They have a veto: a point that they show to be dominated is not chosen.

    Args:
        points: the finalists; a ``verdict`` is how fresh replications judge one.
        better: objective -> which end is better.
        on: the objective; None for the point that loses least in its worst objective, of those that are not dominated.
        limits: objective -> the largest mean that is allowed, or the smallest where high is better.

    Returns:
        The point; None if no point is within the limits.

    Raises:
        ChoiceError: there is no such objective, or a limit is not a number.
    """
    bounds = dict(limits or {})
    for name in [*bounds, *([] if on is None else [on])]:
        if name not in better:
            near = did_you_mean(name, list(better)) or f"; there is {', '.join(better)}"
            raise ChoiceError(f"{quoted(name)} is not an objective of this frontier{near}")
    for name, bound in bounds.items():
        if not isinstance(bound, Real) or math.isnan(bound):
            raise ChoiceError(f"{name}={bound!r}: a limit is a number, such as {name}=1e5")
    signs = np.array([-1.0 if end == "higher" else 1.0 for end in better.values()])
    unbeaten = (one for one in points if one.get("verdict") != "beaten")
    known = [one for one in unbeaten if all(one["search"][name]["mean"] is not None for name in better)]
    fit = [one for one in known if all(_within(one, name, better[name], bound) for name, bound in bounds.items())]
    if not fit:
        return None
    means = np.array([[one["search"][name]["mean"] for name in better] for one in fit]) * signs
    free = [index for index, alone in enumerate(non_dominated(means)) if alone]
    if on is None:
        return fit[free[compromise(means[free])]]
    column = list(better).index(on)
    return fit[min(free, key=lambda index: float(means[index, column]))]


def _within(point: Point, name: str, end: str, bound: float) -> bool:
    mean = float(point["search"][name]["mean"])
    return mean >= bound if end == "higher" else mean <= bound


def choices(points: Sequence[Point], chosen: Sequence[Metric]) -> list[dict[str, object]]:
    """The best point on each objective, and the compromise between all."""
    better = {metric.name: str(metric.better) for metric in chosen}
    found = []
    for on in (*better, None):
        point = choose(points, better, on)
        if point is not None:
            found.append({"on": on or COMPROMISE, "label": point["label"], "settings": point["settings"]})
    return found
