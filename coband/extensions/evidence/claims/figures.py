"""The papers' figures: curves and means with intervals, from finished jobs only, and their panels drawn as SVG."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from coband import FloatArray
from coband.extending import ResultCache, Study, Variant, estimates, palette, style, svg
from coband.extensions.evidence.claims import reading
from coband.extensions.evidence.claims.claim import ClaimedStudy, Panel, Size
from coband.extensions.evidence.claims.claim import Figure as PaperFigure
from coband.extensions.evidence.claims.condition import short_name
from coband.extensions.evidence.claims.jobs import JOBS
from coband.extensions.evidence.claims.samples import AXES, Sample, SampleError, StudySamples
from coband.extensions.evidence.claims.studies import Key, loaded, whole

PARAMETER = re.compile(r"\s+([-+.\d]+(e[-+]?\d+)?|\([\w.]+ = [^()]+\))$")
"""What tells variants of an algorithm apart at the end of a label: DUETS 0.2, FN-UCB (count = 5)."""
MOST_COLUMNS = 4
LEGEND_LINE = 0.22
"""Inches."""
PANEL = (3.6, 2.7)
"""Inches, without the legend."""
PIXELS = 96
"""Pixels of an inch."""
AXIS_TITLES = {
    "turns": "turns",
    "turns_per_agent": "turns per agent",
    "scalars": "scalars sent",
    "times": "simulated time",
}


def svgs(figure: Mapping[str, Any]) -> list[str]:
    """The panels of a figure, each with a legend of its own, as files of one size; the same text for the same numbers.

    A panel is as wide as a phone's page. Its colours follow the reader's light or dark scheme.
    """
    panels = figure["panels"]
    styles = styles_of(line["label"] for panel in panels for line in panel["lines"])
    with style.styled():
        drawn = [_svg_panel(panel, styles) for panel in panels]
        height = PANEL[1] + LEGEND_LINE * max(lines for _, lines in drawn)
        for one, _ in drawn:
            one.set_size_inches(PANEL[0], height)
        return [
            _file(one, f"{figure['title']}, {panel['title']}") for (one, _), panel in zip(drawn, panels, strict=True)
        ]


def _file(drawn: Figure, title: str) -> str:
    """A figure as an SVG document with the colours of reports."""
    width, height = drawn.get_size_inches() * PIXELS
    head, _, body = svg.inline(drawn, "p", title).partition(">")
    size = f'xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
    return f"{head.replace('<svg', f'<svg {size}')}><style>{svg.colours()}</style>{body.rstrip()}\n"


def _legend(drawn: Figure) -> int:
    """A legend with as many columns as fit into the figure; returns its lines."""
    entries = dict(zip(*reversed(drawn.axes[0].get_legend_handles_labels()), strict=True))
    for columns in range(min(MOST_COLUMNS, len(entries)), 0, -1):
        legend = drawn.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= drawn.bbox.width:
            ConstrainedLayoutEngine().execute(drawn)  # the layout of a first drawing is the start of the next
            return -(-len(entries) // columns)
        legend.remove()
    return 0


def styles_of(labels: Iterable[str]) -> dict[str, palette.LineStyle]:
    """One colour for each algorithm: labels that differ in a number at their end, a parameter, differ in dashes."""
    families: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        families.setdefault(PARAMETER.sub("", label), []).append(label)
    return {
        label: palette.variant_style(number, place)
        for number, family in enumerate(families.values())
        for place, label in enumerate(family)
    }


def _svg_panel(panel: Mapping[str, Any], styles: Mapping[str, palette.LineStyle]) -> tuple[Figure, int]:
    """A panel with its legend, and how many lines that has."""
    drawn = Figure(figsize=PANEL, layout="constrained")
    axes = drawn.add_subplot()
    curves = panel["against"] in AXIS_TITLES
    for line in panel["lines"]:
        look = styles[line["label"]]
        axes.plot(
            line["x"],
            line["mean"],
            color=look.colour,
            linestyle=look.dash,
            marker=None if curves and len(line["x"]) > 1 else look.marker,
            label=line["label"],
        )
        if line["low"] is not None and curves:
            axes.fill_between(line["x"], line["low"], line["high"], color=look.colour, alpha=0.15, linewidth=0)
        elif line["low"] is not None:
            _bars(axes, line, look.colour)
    across = AXIS_TITLES.get(panel["against"], short_name(panel["against"]).replace("_", " "))
    style.plain(axes, panel["title"], across, panel["of"].replace("_", " "))
    return drawn, _legend(drawn)


def _bars(axes: Axes, line: Mapping[str, Any], colour: str) -> None:
    below = [max(0.0, mean - low) for mean, low in zip(line["mean"], line["low"], strict=True)]
    above = [max(0.0, high - mean) for mean, high in zip(line["mean"], line["high"], strict=True)]
    axes.errorbar(line["x"], line["mean"], yerr=[below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2)


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

    def made(figure: PaperFigure) -> dict[str, Any]:
        change = {} if seed is None else {"seed": seed}
        panels = [_panel(one, _samples(one, one.study.changed(change), size, load, finished)) for one in figure.panels]
        return {"title": figure.title, "where": figure.where, "panels": [one for one in panels if one["lines"]]}

    found = {name: list(map(made, known[name].figures)) for name in papers if name in known}
    return {name: [one for one in figures if one["panels"]] for name, figures in found.items()}


def _samples(
    panel: Panel, study: ClaimedStudy, size: Size, load: Callable[[Key], Study], finished: ResultCache
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
