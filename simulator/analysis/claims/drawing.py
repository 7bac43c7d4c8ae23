"""A paper's figure as SVG, from the numbers in a results file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from coband.simulator.analysis.claims.condition import short_name
from coband.simulator.analysis.report.drawing import styled, tick
from coband.simulator.analysis.report.palette import PAPER, LineStyle, variant_style

COLUMNS = 3
PARAMETER = re.compile(r"\s+([-+.\d]+(e[-+]?\d+)?|\([\w.]+ = [^()]+\))$")
"""What tells variants of an algorithm apart at the end of a label: DUETS 0.2, FN-UCB (count = 5)."""
MOST_COLUMNS = 4
LEGEND_LINE = 0.22
"""Inches."""
PANEL = (3.6, 2.7)
"""Inches."""
AXIS_TITLES = {
    "turns": "turns",
    "turns_per_agent": "turns per agent",
    "scalars": "scalars sent",
    "times": "simulated time",
}


def svg(figure: Mapping[str, Any]) -> str:
    """The panels of a figure with one legend; the same text for the same numbers."""
    panels = figure["panels"]
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    styles = styles_of(line["label"] for panel in panels for line in panel["lines"])
    labels = list(styles)
    width, height = PANEL[0] * max(columns, 2), PANEL[1] * rows + 0.3
    with styled():
        drawn = Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)
        for number, panel in enumerate(panels):
            _panel(drawn.add_subplot(rows, columns, number + 1), panel, styles)
        handles = {label: handle for axes in drawn.axes for handle, label in zip(*_entries(axes), strict=True)}
        lines = _legend(drawn, {label: handles[label] for label in labels})
        drawn.set_size_inches(width, height + LEGEND_LINE * lines)
        out = StringIO()
        drawn.savefig(out, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _legend(drawn: Figure, entries: Mapping[str, Any]) -> int:
    """A legend with as many columns as fit into the figure; returns its lines."""
    for columns in range(min(MOST_COLUMNS, len(entries)), 0, -1):
        legend = drawn.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
        drawn.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= drawn.bbox.width:
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


def _entries(axes: Axes) -> tuple[Sequence[Any], Sequence[str]]:
    handles, labels = axes.get_legend_handles_labels()
    return handles, [str(label) for label in labels]


def _panel(axes: Axes, panel: Mapping[str, Any], styles: Mapping[str, LineStyle]) -> None:
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
    axes.set_title(panel["title"])
    axes.set_xlabel(AXIS_TITLES.get(panel["against"], short_name(panel["against"]).replace("_", " ")))
    axes.set_ylabel(panel["of"].replace("_", " "))
    axes.xaxis.set_major_formatter(FuncFormatter(tick))
    axes.yaxis.set_major_formatter(FuncFormatter(tick))
    axes.grid(visible=True)


def _bars(axes: Axes, line: Mapping[str, Any], colour: str) -> None:
    below = [max(0.0, mean - low) for mean, low in zip(line["mean"], line["low"], strict=True)]
    above = [max(0.0, high - mean) for mean, high in zip(line["mean"], line["high"], strict=True)]
    axes.errorbar(line["x"], line["mean"], yerr=[below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2)
