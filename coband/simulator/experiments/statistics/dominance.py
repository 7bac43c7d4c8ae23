"""Which of several points with several objectives are not dominated: by means, and by paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.estimates import LEVEL
from coband.simulator.experiments.statistics.evidence import student

Verdict = Literal["frontier", "beaten", "undecided"]
Values = Mapping[int, Sequence[float]]
"""Replication -> the objectives of a point, each of which is better the lower it is."""
ROUNDING = 1e-12
"""Means that differ by a smaller share than this are equal."""


@dataclass(frozen=True)
class Standing:
    """How a point stands among others.

    A point dominates another one if it is at least as good in every objective and better in one.

    Attributes:
        verdict: ``frontier``: every other point is worse in some objective, so this one is not dominated; ``beaten``:
            some point dominates it; ``undecided``: the replications show neither.
        beaten_by: index of a point that is shown to dominate it, if one is.
        best_mean: whether no point dominates it in the means, whatever their intervals say.
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


def standings(
    points: Sequence[Values],
    level: float = LEVEL,
    other: Sequence[Values] | None = None,
    coarse: Sequence[bool] | None = None,
) -> list[Standing]:
    """How each point stands among all.

    One point against another is tested on the replications that both have, which meet the same arms and noise, so that
    differences are paired. "i beats j" is an intersection of one inequality per objective: it holds by the largest of
    their p-values and fails by the smallest times their number. A point is on the
    frontier if no other beats it (the largest p-value), and beaten if its rival beats it. The rival is whoever beats it
    most clearly in ``other`` replications; without these any point may, at the price of the smallest p-value times
    their number. Each verdict by itself is wrong with at most the probability 1 - level.

    Args:
        points: the objectives of each point by replication.
        level: probability that a verdict which is given is right.
        other: the same points on replications that are not in ``points``.
        coarse: which objectives take a few values only, such as 0 and 1; None for none. Differences that are equal in
            all replications are not certain then, as they are for counts, and their signs decide.
    """
    if not points:
        return []
    best = non_dominated(np.array([np.mean(list(one.values()), axis=0) for one in points]))
    if len(points) == 1:
        return [Standing("frontier", None, True)]
    holds, fails = _duels(points, coarse)
    rivals = (holds if other is None else _duels(other, coarse)[0]).argmin(axis=0)
    beaten = holds[rivals, range(len(points))]
    if other is None:
        beaten = np.minimum(1.0, (len(points) - 1) * beaten)
    np.fill_diagonal(fails, 0.0)
    found = []
    for index, (one, none) in enumerate(zip(beaten, fails.max(axis=0), strict=True)):
        verdict: Verdict = "beaten" if one <= 1 - level else "frontier" if none <= 1 - level else "undecided"
        found.append(Standing(verdict, int(rivals[index]) if verdict == "beaten" else None, best[index]))
    return found


def _duels(points: Sequence[Values], coarse: Sequence[bool] | None) -> tuple[FloatArray, FloatArray]:
    """p-values of "the first does not beat the second" and of "it does", for all pairs, each of shape (points, points).

    No point beats itself.
    """
    holds, fails = np.ones((len(points), len(points))), np.zeros((len(points), len(points)))
    replications = list(points[0])
    if all(one.keys() == points[0].keys() for one in points):
        values = np.array([[one[r] for r in replications] for one in points]).swapaxes(1, 2)
        for index in range(len(points)):
            holds[:, index], fails[:, index] = _beats(values[index] - values, coarse)
    else:
        for (i, first), (j, second) in permutations(enumerate(points), 2):
            common = sorted(first.keys() & second.keys())
            gains = [np.subtract(second[r], first[r]) for r in common]
            found = _beats(np.array(gains).T[None], coarse) if len(common) > 1 else (np.ones(1), np.ones(1))
            holds[i, j], fails[i, j] = found[0][0], found[1][0]
    np.fill_diagonal(holds, 1.0)
    return holds, fails


def _beats(gains: FloatArray, coarse: Sequence[bool] | None) -> tuple[FloatArray, FloatArray]:
    """p-values of "it does not beat" and of "it does".

    Args:
        gains: by how much it is better, shape (pairs, objectives, replications).
    """
    if gains.shape[-1] < 2:
        return np.ones(len(gains)), np.ones(len(gains))
    holds, fails = student(gains, strict=False)
    if coarse is not None:
        first, chance = gains[..., 0], 0.5 ** gains.shape[-1]
        alike = np.asarray(coarse) & (gains == gains[..., :1]).all(axis=-1)
        holds = np.where(alike, np.where(first > 0, chance, 1.0), holds)
        fails = np.where(alike, np.where(first < 0, chance, 1.0), fails)
    equal = ~gains.any(axis=(1, 2))  # and who is equal beats nobody
    least = np.minimum(1.0, gains.shape[1] * fails.min(axis=1))
    return np.where(equal, 1.0, holds.max(axis=1)), np.where(equal, 0.0, least)
