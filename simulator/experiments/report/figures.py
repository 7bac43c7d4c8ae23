"""Figures with curves: regret and turns against turns, scalars and simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from coband.simulator.experiments.report import curves
from coband.simulator.experiments.report.curves import Axis, Height
from coband.simulator.experiments.report.drawing import LEGEND_COLUMNS, figure, legend_height, tick
from coband.simulator.experiments.report.palette import LineStyle, line_style
from coband.simulator.experiments.store.store import Series

BAND = 0.16
MAX_BANDS = 8
"""Largest number of labels for which confidence bands are drawn; more bands would hide each other."""
MAX_BAND_HEIGHT = 1.8
"""Bands are cut off at this multiple of the largest mean."""
UNITS = {"turns": "turns", "scalars": "scalars sent", "times": "simulated time"}
HEIGHTS = {"regret": "cumulative regret", "turns": "turns taken"}


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure of curves; ``until`` cuts the x axis."""

    x: Axis
    y: Height
    until: float | None = None

    @property
    def title(self) -> str:
        """Such as "regret against turns"."""
        return f"{self.y} against {UNITS[self.x]}"


PANELS = (Panel("turns", "regret"), Panel("scalars", "regret"), Panel("times", "regret"), Panel("times", "turns"))


def curve_figure(
    series: Sequence[tuple[str, Sequence[Series]]], panels: Sequence[Panel] = PANELS, columns: int = 2
) -> Figure:
    """Curves with 95 % bands, one colour per label.

    Args:
        series: (label, its series by replication); labels without series are not drawn, but keep their colour.
        panels: the panels to draw.
        columns: number of panels per line.
    """
    lines = -(-len(panels) // columns)
    legend = legend_height(len(series))
    drawn = figure(2.9 * lines + legend)
    axes = [drawn.add_subplot(lines, columns, number + 1) for number in range(len(panels))]
    for axis, panel in zip(axes, panels, strict=True):
        draw_panel(axis, series, panel)
    handles = legend_handles(axes[0], [label for label, _ in series])
    drawn.legend(handles=handles, loc="outside upper left", ncols=min(LEGEND_COLUMNS, len(series)), handlelength=2.6)
    return drawn


def draw_panel(axis: Axes, series: Sequence[tuple[str, Sequence[Series]]], panel: Panel) -> None:
    """Draw the curves of all labels that have series into one pair of axes, with titles and ticks."""
    for number, (_, found) in enumerate(series):
        if found:
            _draw_curve(axis, found, panel, line_style(number), number, len(series))
    _finish(axis, panel)


def legend_handles(axis: Axes, labels: Sequence[str]) -> list[Line2D]:
    """One line for each label, in its colour, for a legend; ``axis`` is left as it is."""
    styles = map(line_style, range(len(labels)))
    return [
        axis.plot([], [], color=style.colour, marker=style.marker, linestyle=style.dash, markersize=5, label=label)[0]
        for style, label in zip(styles, labels, strict=True)
    ]


def _draw_curve(axis: Axes, series: Sequence[Series], panel: Panel, style: LineStyle, number: int, labels: int) -> None:
    found = curves.curve(series, panel.x, panel.y, until=panel.until, log=panel.x == "scalars")
    if found.constant:
        axis.axhline(found.mean[0], color=style.colour, linestyle=(0, (1, 2)), linewidth=1.3)
        axis.set_ylim(top=max(axis.get_ylim()[1], 1.1 * found.mean[0]))
        return
    top = float(found.mean.max())
    if found.band is not None and labels <= MAX_BANDS:
        axis.fill_between(found.x, *found.band, color=style.colour, alpha=BAND, linewidth=0)
        top = max(top, min(float(found.band[1].max()), MAX_BAND_HEIGHT * top))
    axis.set_ylim(top=max(axis.get_ylim()[1] if axis.lines else 0.0, 1.04 * top))
    every = (0.06 * (number + 1) / labels, 0.14)
    axis.plot(
        found.x,
        found.mean,
        color=style.colour,
        linestyle=style.dash,
        marker=style.marker,
        markevery=every,
        markersize=4,
    )


def _finish(axis: Axes, panel: Panel) -> None:
    axis.set_title(panel.title)
    axis.set_xlabel(UNITS[panel.x])
    axis.set_ylabel(HEIGHTS[panel.y])
    lowest = min((float(np.min(line.get_ydata())) for line in axis.lines), default=0.0)
    axis.set_ylim(bottom=min(0.0, 1.05 * lowest))  # realised regret may be negative
    axis.grid(visible=True)
    if panel.x == "scalars" and axis.lines and any(len(np.atleast_1d(line.get_xdata())) > 2 for line in axis.lines):
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_xlim(left=0)
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.yaxis.set_major_formatter(FuncFormatter(tick))
