"""The panels of a paper's figure as SVG, from the numbers in a results file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from coband.simulator.analysis.claims.condition import short_name
from coband.simulator.analysis.report.drawing import plain, styled
from coband.simulator.analysis.report.palette import LineStyle, variant_style
from coband.simulator.analysis.report.svg import colours, inline

PARAMETER = re.compile(r"\s+([-+.\d]+(e[-+]?\d+)?|\([\w.]+ = [^()]+\))$")
"""What tells variants of an algorithm apart at the end of a label: DUETS 0.2, FN-UCB (count = 5)."""
MOST_COLUMNS = 4
LEGEND_LINE = 0.22
"""Inches."""
PANEL = (3.6, 2.7)
"""Inches, without the legend."""
PIXELS = 96
"""Of an inch."""
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
    with styled():
        drawn = [_panel(panel, styles) for panel in panels]
        height = PANEL[1] + LEGEND_LINE * max(lines for _, lines in drawn)
        for one, _ in drawn:
            one.set_size_inches(PANEL[0], height)
        return [
            _file(one, f"{figure['title']}, {panel['title']}") for (one, _), panel in zip(drawn, panels, strict=True)
        ]


def _file(drawn: Figure, title: str) -> str:
    """A figure as an SVG document with the colours of reports."""
    width, height = drawn.get_size_inches() * PIXELS
    head, _, body = inline(drawn, "p", title).partition(">")
    size = f'xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
    return f"{head.replace('<svg', f'<svg {size}')}><style>{colours()}</style>{body.rstrip()}\n"


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


def styles_of(labels: Iterable[str]) -> dict[str, LineStyle]:
    """One colour for each algorithm: labels that differ in a number at their end, a parameter, differ in dashes."""
    families: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        families.setdefault(PARAMETER.sub("", label), []).append(label)
    return {
        label: variant_style(number, place)
        for number, family in enumerate(families.values())
        for place, label in enumerate(family)
    }


def _panel(panel: Mapping[str, Any], styles: Mapping[str, LineStyle]) -> tuple[Figure, int]:
    """A panel with its legend, and how many lines that has."""
    drawn = Figure(figsize=PANEL, layout="constrained")
    axes = drawn.add_subplot()
    curves = panel["against"] in AXIS_TITLES
    for line in panel["lines"]:
        style = styles[line["label"]]
        axes.plot(
            line["x"],
            line["mean"],
            color=style.colour,
            linestyle=style.dash,
            marker=None if curves and len(line["x"]) > 1 else style.marker,
            label=line["label"],
        )
        if line["low"] is not None and curves:
            axes.fill_between(line["x"], line["low"], line["high"], color=style.colour, alpha=0.15, linewidth=0)
        elif line["low"] is not None:
            _bars(axes, line, style.colour)
    across = AXIS_TITLES.get(panel["against"], short_name(panel["against"]).replace("_", " "))
    plain(axes, panel["title"], across, panel["of"].replace("_", " "))
    return drawn, _legend(drawn)


def _bars(axes: Axes, line: Mapping[str, Any], colour: str) -> None:
    below = [max(0.0, mean - low) for mean, low in zip(line["mean"], line["low"], strict=True)]
    above = [max(0.0, high - mean) for mean, high in zip(line["mean"], line["high"], strict=True)]
    axes.errorbar(line["x"], line["mean"], yerr=[below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2)
