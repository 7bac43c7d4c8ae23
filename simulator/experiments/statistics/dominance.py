"""Which of several points with several objectives nothing else beats: by means, and as far as chance allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.estimates import LEVEL
from coband.simulator.experiments.statistics.evidence import Requirement, adjusted, together

Verdict = Literal["frontier", "beaten", "undecided"]
Values = Mapping[int, Sequence[float]]
"""Replication -> the objectives of a point, each of which is better the lower it is."""
ROUNDING = 1e-12
"""Means that differ by a smaller share than this are equal."""


@dataclass(frozen=True)
class Standing:
    """How a point stands among others.

    A point beats another one if it is at least as good in every objective and better in one.

    Attributes:
        verdict: ``frontier``: every other point is worse in some objective, so nothing beats this one; ``beaten``:
            some point beats it; ``undecided``: the replications do not tell which.
        beaten_by: index of a point that is shown to beat it, if one is.
        best_mean: whether no point beats it in the means, whatever their intervals say.
    """

    verdict: Verdict
    beaten_by: int | None
    best_mean: bool


def non_dominated(means: FloatArray) -> list[bool]:
    """Whether no other row beats a row; equal rows do not beat each other.

    Args:
        means: one row per point, each of whose columns is better the lower it is, shape (points, objectives).
    """
    slack = ROUNDING * np.abs(means).max(axis=0, initial=0.0)
    no_worse = (means[:, None, :] <= means[None, :, :] + slack).all(axis=2)
    better = (means[:, None, :] < means[None, :, :] - slack).any(axis=2)
    return [not beaten for beaten in (no_worse & better).any(axis=0).tolist()]


def standings(points: Sequence[Values], level: float = LEVEL, other: Sequence[Values] | None = None) -> list[Standing]:
    """How each point stands among all.

    One point against another is tested on the replications that both have, which meet the same arms and noise, so that
    differences are paired. "i beats j" is an intersection of one inequality per objective: it holds by the largest of
    their p-values and fails by the smallest times their number (:func:`evidence.together`). A point is on the frontier
    if no other beats it (the largest p-value), and beaten if its rival beats it. The rival is whoever beats it most
    clearly in ``other`` replications; without these any point may, at the price of the smallest p-value times their
    number. The p-values of all points are adjusted together (:func:`evidence.adjusted`).

    Args:
        points: the objectives of each point by replication.
        level: one minus the false discovery rate.
        other: the same points on replications that are not in ``points``.
    """
    if not points:
        return []
    best = non_dominated(np.array([np.mean(list(one.values()), axis=0) for one in points]))
    if len(points) == 1:
        return [Standing("frontier", None, True)]
    pairs = [_against(points, index) for index in range(len(points))]
    rivals = [_most(_against(other, index)) for index in range(len(points))] if other is not None else None
    if rivals is None:
        beaten = [min(1.0, len(row) * min(holds for holds, _ in row.values())) for row in pairs]
    else:
        beaten = [row[rival][0] for row, rival in zip(pairs, rivals, strict=True)]
    free = adjusted([max(fails for _, fails in row.values()) for row in pairs])
    found = []
    for index, (one, none) in enumerate(zip(adjusted(beaten), free, strict=True)):
        verdict: Verdict = "beaten" if one <= 1 - level else "frontier" if none <= 1 - level else "undecided"
        by = (_most(pairs[index]) if rivals is None else rivals[index]) if verdict == "beaten" else None
        found.append(Standing(verdict, by, best[index]))
    return found


def _against(points: Sequence[Values], index: int) -> dict[int, tuple[float, float]]:
    """Every other point -> the p-values of what it does to this one (:func:`_beats`)."""
    return {place: _beats(one, points[index]) for place, one in enumerate(points) if place != index}


def _most(row: Mapping[int, tuple[float, float]]) -> int:
    """Who beats the point most clearly."""
    return min(row, key=lambda place: row[place][0])


def _beats(first: Values, second: Values) -> tuple[float, float]:
    """p-values of "the first does not beat the second" and of "it does"."""
    common = sorted(first.keys() & second.keys())
    if len(common) < 2:
        return 1.0, 1.0
    gains = np.array([second[r] for r in common], dtype=np.float64) - np.array([first[r] for r in common])
    if not gains.any():
        return 1.0, 0.0  # they are equal, so neither beats the other
    evidence = together([Requirement(column.tolist(), strict=False) for column in gains.T])
    return evidence.holds, evidence.fails
