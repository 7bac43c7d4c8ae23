"""Theorems beside a run: how fast regret and communication grow, how fast their bounds do, and what does not apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.theory.gain import Pulls, pulls
from coband.simulator.analysis.theory.setting import facts
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, Bound
from coband.simulator.core.formulas import FormulaError, evaluate, names_in
from coband.simulator.experiments.registry.registry import RESERVED, Registry
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.store.store import Series

CHECKPOINTS = 16
"""Numbers of pulls, at equal factors, by which slopes are fitted."""
SHARE = 0.25
"""Slopes are those from this share of the pulls on."""
RECORDED = ("regret", "scalars")
"""The numbers whose course is stored."""


@dataclass(frozen=True, eq=False)
class Growth:
    """A bound beside what a contender did.

    Attributes:
        pulls: at which both were compared, shape (points,); empty where that was not possible.
        measured: mean of the number there, shape (points,).
        bounded: mean of the bound there, shape (points,).
        slope: of the measured number on doubly logarithmic axes, over replications; None where it is not known.
        limit: the same of the bound.
        difference: slope minus limit, replication by replication.
        unknown: why one of them is not known; empty where both are.
        broken: what the theorem assumes and this run does not have.
        unchecked: what it assumes and no run can tell.
    """

    label: str
    bound: Bound
    pulls: FloatArray
    measured: FloatArray
    bounded: FloatArray
    slope: Estimate | None
    limit: Estimate | None
    difference: Estimate | None
    unknown: str
    broken: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether the number grows more slowly than the bound."""
        if self.difference is None:
            return self.unknown
        if self.difference.interval is None:
            return "one replication: no statement about chance"
        low, high = self.difference.interval
        return "slower than the bound" if high < 0 else "faster than the bound" if low > 0 else "undecided"


def growths(contender: Contender, scenario: Mapping[str, Any]) -> list[Growth]:
    """One for each bound that the algorithm declares; none where it is not installed or declares none.

    Args:
        scenario: of the contender, resolved, as it is stored.
    """
    algorithm = Registry.installed().algorithms.get(contender.algorithm)
    if algorithm is None:
        return []
    bounded = _Bounded(contender, scenario, algorithm)
    return [bounded.growth(bound) for bound in algorithm.bounds]


class _Bounded:
    """The quantities that bounds use, and the bounds."""

    def __init__(self, contender: Contender, scenario: Mapping[str, Any], algorithm: Algorithm) -> None:
        self._contender, self._scenario, self._algorithm = contender, scenario, algorithm
        self._gains: dict[tuple[int, float], FloatArray] = {}

    def growth(self, bound: Bound) -> Growth:
        broken, unchecked = self._assumptions(bound)
        courses, unknown = self._courses(bound)
        slopes = [slope(places, height) for places, height, _ in courses]
        limits = [(places, limit) for places, _, limit in courses if limit is not None]
        limit = [slope(places, found) for places, found in limits]
        same = bool(courses) and all(np.array_equal(one[0], courses[0][0]) for one in courses)
        both = len(limit) == len(slopes) > 0
        return Growth(
            self._contender.label,
            bound,
            courses[0][0] if same else np.array([]),
            np.mean([one[1] for one in courses], axis=0) if same else np.array([]),
            np.mean([found for _, found in limits], axis=0) if same and both else np.array([]),
            statistics.estimate(slopes) if slopes else None,
            statistics.estimate(limit) if limit else None,
            statistics.paired_difference(slopes, limit) if both else None,
            unknown,
            broken,
            unchecked,
        )

    @cached_property
    def _config(self) -> Any:
        """The parameters, as the algorithm's own model reads them."""
        one = self._contender
        label = one.own if one.variant is None else one.variant.entry
        for entry in self._scenario.get("algorithms") or ():
            if (entry.get("label") or entry.get("algorithm")) == label:
                given = {key: value for key, value in entry.items() if key not in RESERVED}
                return self._algorithm.config.model_validate(given)
        raise ValueError("its parameters are not stored")

    @cached_property
    def _values(self) -> dict[str, Any]:
        """What is the same at any time of the run."""
        return {**self._algorithm.parameters(self._config), **facts(self._scenario)}

    @cached_property
    def _pulls(self) -> dict[int, Pulls | str]:
        return {job.replication: pulls(job) for job in self._contender.jobs}

    def _variances(self) -> dict[str, float]:
        """kmin and kmax over all replications, where pulls are known."""
        found = [one.variances(self._config.kernel) for one in self._pulls.values() if isinstance(one, Pulls)]
        return {"kmin": min(low for low, _ in found), "kmax": max(high for _, high in found)} if found else {}

    def _assumptions(self, bound: Bound) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What does not hold, and what cannot be told."""
        broken, unchecked = [], []
        if bound.count == "regret" and (self._scenario.get("problem") or {}).get("drift"):
            broken.append("the hidden parameter stays as it is")
        for one in bound.assumes:
            try:
                if not one.holds:
                    unchecked.append(one.meaning)
                elif not evaluate(one.holds, self._known(one.holds)):
                    broken.append(one.meaning)
            except FormulaError:
                unchecked.append(one.meaning)
        return tuple(broken), tuple(unchecked)

    def _known(self, formula: str) -> dict[str, Any]:
        """What is known of the quantities that a condition uses."""
        horizons = [int(series.turns[-1]) for series in self._contender.series]
        found = {**self._values, **({"horizon": max(horizons)} if horizons else {})}
        return found | (self._variances() if {"kmin", "kmax"} & set(names_in(formula)) else {})

    def _courses(self, bound: Bound) -> tuple[list[tuple[FloatArray, FloatArray, FloatArray | None]], str]:
        """(pulls, number, bound) of each replication at the checkpoints, and why something is missing."""
        if bound.count not in RECORDED:
            return [], f"the course of {bound.count} is not stored"
        courses, unknown = [], ""
        for series in self._contender.series:
            places = checkpoints(int(series.turns[-1]))
            height = _at(series, bound.count, places)
            if not (height > 0).all():
                unknown = f"no {bound.count} in the part of the run that is compared"
                continue
            try:
                limit: FloatArray | None = self._bounded(bound, series, places)
            except (FormulaError, ValueError) as error:
                limit, unknown = None, str(error)
            courses.append((places, height, limit))
        return courses, unknown

    def _bounded(self, bound: Bound, series: Series, places: FloatArray) -> FloatArray:
        """The bound at the checkpoints.

        Raises:
            ValueError, FormulaError: a quantity is not known; the text says why.
        """
        values = {**self._values, "horizon": int(series.turns[-1])}
        speaks = {name for text in (bound.formula, *bound.where.values()) for name in names_in(text)}
        gain = None
        if speaks & {"gain", "kmax", "kmin"}:
            known = self._pulls[series.replication]
            if isinstance(known, str):
                raise ValueError(f"the information gain is not known: {known}")
            values |= dict(zip(("kmin", "kmax"), known.variances(self._config.kernel), strict=True))
            values |= {"d": known.points.shape[1]}
            scale = bound.quantities({**values, "T": 1, "gain": 1.0})
            gain = self._gain(series.replication, float(evaluate(bound.scale, scale)))
        found = []
        for place in places:
            now = {"T": float(place), **({} if gain is None else {"gain": float(gain[int(place) - 1])})}
            found.append(float(evaluate(bound.formula, bound.quantities({**values, **now}))))
        return np.array(found)

    def _gain(self, replication: int, scale: float) -> FloatArray:
        """The information gain after each pull."""
        known = self._pulls[replication]
        assert isinstance(known, Pulls)
        if (replication, scale) not in self._gains:
            self._gains[replication, scale] = known.gain(self._config.kernel, scale)
        return self._gains[replication, scale]


def checkpoints(turns: int) -> FloatArray:
    """Numbers of pulls at equal factors from `SHARE` of them to all, each once."""
    first = max(1, round(SHARE * turns))
    found: FloatArray = np.unique(np.geomspace(first, turns, CHECKPOINTS).round())
    return found


def slope(places: FloatArray, heights: FloatArray) -> float:
    """The slope of the least squares line through (log t, log y); 0 for a single point."""
    if len(places) < 2:
        return 0.0
    across = np.log(places) - np.log(places).mean()
    return float(across @ np.log(heights / heights[0]) / (across @ across))


def _at(series: Series, count: str, places: FloatArray) -> FloatArray:
    """The number after so many pulls; 0 before the first that are stored."""
    heights = series.regret if count == "regret" else series.scalars
    index = np.searchsorted(series.turns, places, side="right")
    found: FloatArray = np.concatenate([[0.0], heights])[index]
    return found
