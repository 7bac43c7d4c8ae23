"""Which point of a frontier to choose: ranked by the search's replications, confirmed and reported on fresh ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from coband.simulator.analysis.frontier.finalists import compromise
from coband.simulator.experiments.scenario.input_problems import did_you_mean, quoted
from coband.simulator.experiments.statistics.dominance import non_dominated
from coband.simulator.metrics import Metric
from coband.simulator.scenario_errors import RequestError

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
        ChoiceError: there is no such objective, or a limit is no number.
    """
    bounds = dict(limits or {})
    for name in [*bounds, *([] if on is None else [on])]:
        if name not in better:
            near = did_you_mean(name, list(better)) or f"; there is {', '.join(better)}"
            raise ChoiceError(f"{quoted(name)} is no objective of this frontier{near}")
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
