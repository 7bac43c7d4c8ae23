"""The papers' figures as numbers: curves and means with intervals, from finished jobs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.analysis.claims import reading
from coband.simulator.analysis.claims.claim import ClaimedStudy, Figure, Panel, Size
from coband.simulator.analysis.claims.jobs import JOBS
from coband.simulator.analysis.claims.samples import AXES, Sample, SampleError, StudySamples
from coband.simulator.analysis.claims.studies import Key, loaded, whole
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.runs.variant import Variant
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.sweep.directory import ResultCache
from coband.simulator.experiments.sweep.study import Sweep

LEAST = 2
"""Replications of a line; one alone has no interval, so it is not drawn."""
POINTS = 60
DIGITS = 4


def of_papers(
    papers: Iterable[str], place: Path, size: Size, seed: int | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The figures of some papers, from the jobs that are finished in a directory; those without any line are left out.

    Args:
        papers: their names.
        place: the directory.
        size: of the studies.
        seed: of the studies, if it is not their own.

    Raises:
        ScenarioError: a scenario is not valid with a panel's settings.
    """
    finished, known = ResultCache(place / JOBS), reading.papers()
    load = cache(whole)  # panels share studies

    def made(figure: Figure) -> dict[str, Any]:
        change = {} if seed is None else {"seed": seed}
        panels = [_panel(one, _samples(one, one.study.changed(change), size, load, finished)) for one in figure.panels]
        return {"title": figure.title, "where": figure.where, "panels": [one for one in panels if one["lines"]]}

    found = {name: list(map(made, known[name].figures)) for name in papers if name in known}
    return {name: [one for one in figures if one["panels"]] for name, figures in found.items()}


def _samples(
    panel: Panel, study: ClaimedStudy, size: Size, load: Callable[[Key], Sweep], finished: ResultCache
) -> StudySamples:
    return loaded(study, size, [(term.label, {**panel.at, **term.at}) for term in panel.labels], load).samples(finished)


def _panel(panel: Panel, samples: StudySamples) -> dict[str, Any]:
    lines = []
    for term in panel.labels:
        variants = samples.matching(term.label, {**panel.at, **term.at})
        found = _curve(samples, variants, panel) if panel.against in AXES else _means(samples, variants, panel)
        if found is not None:
            lines.append({"label": str(term), **found})
    return {"title": panel.title, "of": panel.of, "against": panel.against, "lines": lines}


def _curve(samples: StudySamples, variants: Sequence[Variant], panel: Panel) -> dict[str, Any] | None:
    """The mean of a curve at `POINTS` places of an axis, from 0 to the end of the shortest replication."""
    found = [one for one in samples.found.get(variants[0].number, {}).values() if len(one.series)]
    if len(found) < LEAST:
        return None
    end = min(one.end(panel.against) for one in found)
    places: FloatArray = np.linspace(0.0, end, POINTS)
    return _drawn(places, np.array([one.curve(panel.against, places, panel.of) for one in found]))


def _means(samples: StudySamples, variants: Sequence[Variant], panel: Panel) -> dict[str, Any] | None:
    """The mean of a metric at each value of a key."""
    points: list[tuple[float, Sequence[Sample]]] = []
    for variant in variants:
        value = next((one.number for one in variant.parameters if one.key == panel.against), None)
        found = list(samples.found.get(variant.number, {}).values())
        if value is not None and len(found) >= LEAST:
            points.append((value, found))
    if not points:
        return None
    points.sort(key=lambda point: point[0])
    count = min(len(found) for _, found in points)
    try:
        values = np.array([[one.metric(panel.of) for one in found[:count]] for _, found in points]).T
    except SampleError:
        return None
    return _drawn(np.array([value for value, _ in points]), values)


def _drawn(places: FloatArray, values: FloatArray) -> dict[str, Any]:
    band = estimates.bands(values)
    return {
        "x": _rounded(places),
        "mean": _rounded(values.mean(axis=0)),
        "low": None if band is None else _rounded(band[0]),
        "high": None if band is None else _rounded(band[1]),
        "replications": len(values),
    }


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
