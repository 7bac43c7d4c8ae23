"""Comparing labels at equal values of a metric, each between two neighbouring points of its frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from coband.simulator.analysis.claims.claim import BlendedClaim, Claim, Setting
from coband.simulator.analysis.claims.comparisons import Presupposed
from coband.simulator.analysis.claims.samples import SampleError
from coband.simulator.experiments.statistics.dominance import non_dominated

Point = tuple[float, float, dict[str, Setting]]
"""Mean of the metric, mean of what is compared, and the setting that has them."""
Blend = list[tuple[float, dict[str, Setting]]]
"""Settings with their weights."""
DIGITS = 6
"""Of a weight."""


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in both means, by the first; both are better the lower they are."""
    best = non_dominated(np.array([point[:2] for point in points]))
    kept = {point[:2]: point for point, stays in zip(points, best, strict=True) if stays}
    return [kept[key] for key in sorted(kept)]


def common(frontiers: Mapping[str, Sequence[Point]], metric: str, levels: int) -> list[float]:
    """Values of the metric that all frontiers reach, at equal steps; one if they have no more in common.

    Raises:
        SampleError: they do not overlap.
    """
    low = max(points[0][0] for points in frontiers.values())
    high = min(points[-1][0] for points in frontiers.values())
    if low > high:
        reached = "; ".join(f"{label} {one[0][0]:,.5g} to {one[-1][0]:,.5g}" for label, one in frontiers.items())
        raise SampleError(
            f"the frontiers do not overlap, so nothing can be compared at equal {metric} ({reached}); "
            "list more of the open values."
        )
    if low == high:
        return [low]
    return np.linspace(low, high, levels).tolist() if levels > 1 else [(low + high) / 2]


def blend(points: Sequence[Point], level: float) -> Blend:
    """The neighbours of a level on a frontier, with the weights by which their metric has it as its mean.

    Linear interpolation: with neighbours (y_1, z_1) and (y_2, z_2) and w = (y_2 - level)/(y_2 - y_1), what is compared
    is w z_1 + (1 - w) z_2, the mean of who draws the first setting with probability w.
    """
    for first, second in pairwise(points):
        if first[0] <= level < second[0]:
            weight = round((second[0] - level) / (second[0] - first[0]), DIGITS)
            parts = [(weight, first[2]), (round(1 - weight, DIGITS), second[2])]
            return [(share, setting) for share, setting in parts if share > 0]
    return [(1.0, points[-1][2])]


def blends(claim: Claim, means: Mapping[str, Sequence[Point]]) -> dict[str, dict[str, Blend]]:
    """At each common level, in words, the blend of every label.

    Args:
        claim: with ``quantifier: at_equal``.
        means: the points of each label at all settings, on seeds that test nothing.

    Raises:
        SampleError: the frontiers do not overlap.
    """
    assert claim.at_equal is not None
    frontiers = {label: frontier(points) for label, points in means.items()}
    levels = common(frontiers, claim.at_equal.metric, claim.at_equal.levels)
    return {
        f"{claim.at_equal.metric} = {level:.5g}": {label: blend(points, level) for label, points in frontiers.items()}
        for level in levels
    }


def blended(claim: Claim, chosen: Mapping[str, Any]) -> BlendedClaim:
    """The claim at one level: with the blend of every label, and with the condition that their metric is equal."""
    assert claim.at_equal is not None
    terms = list({str(term): term for term in claim.terms()}.values())
    about = {"kind": "equal", "of": claim.at_equal.metric, "margin": claim.at_equal.tolerance}
    equal = [Presupposed(first=first, second=second, **about) for first, second in pairwise(terms)]
    return BlendedClaim.model_construct(
        **{**dict(claim), "conditions": [*claim.conditions, *equal]},
        blends={label: [(weight, setting) for weight, setting in parts] for label, parts in chosen.items()},
    )
