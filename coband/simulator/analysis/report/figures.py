"""Figures with curves: regret and turns against turns, scalars, simulated time and energy; means over replications on a
common grid. Between two stored turns a curve keeps the earlier value (a step function), so it contains no interpolated
value. A curve ends where the shortest replication ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from coband.simulator.analysis.report.drawing import (
    NARROW,
    TITLES,
    add_legend,
    columns_for,
    few_ticks,
    figure,
    legend_height,
    plain,
    wrapped,
)
from coband.simulator.analysis.report.palette import LineStyle
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store.store import Series

Axis = Literal["turns", "scalars", "times", "energy"]
Height = Literal["regret", "turns"]
POINTS = 240
DECADES = 1e-4


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean over ``count`` replications.

    Attributes:
        x: positions, shape (points,).
        mean: means, shape (points,).
        band: (low, high) of the 95 % t intervals of the mean, each of shape (points,); None for one replication.
        constant: whether x stays at 0 in every replication (nothing is sent); the curve is then its final value.
    """

    x: FloatArray
    mean: FloatArray
    band: tuple[FloatArray, FloatArray] | None
    count: int
    constant: bool = False


def curve(series: Sequence[Series], x: Axis, y: Height, *, log: bool = False) -> Curve:
    """The mean of y as a function of x.

    Args:
        series: one per replication, none empty.
        log: space points evenly on a logarithmic axis, from a ten-thousandth of the end.
    """
    ends = [float(getattr(one, x)[-1]) for one in series]
    end = min(ends)
    if max(ends) <= 0:
        values = np.array([[float(getattr(one, y)[-1])] for one in series])
        return Curve(np.zeros(1), values.mean(axis=0), statistics.bands(values), len(series), constant=True)
    grid = _grid(series, x, end, log) if end > 0 else np.zeros(1)
    values = np.array([at(one, x, y, grid) for one in series])
    return Curve(grid, values.mean(axis=0), statistics.bands(values), len(series))


def _grid(series: Sequence[Series], x: Axis, end: float, log: bool) -> FloatArray:
    if log:
        return np.geomspace(max(1.0, end * DECADES), end, POINTS)
    first = np.asarray(getattr(series[0], x), dtype=np.float64)
    if x == "turns" and all(np.array_equal(first, one.turns) for one in series):
        kept = np.unique(np.linspace(0, len(first) - 1, POINTS).round().astype(np.intp))
        return np.concatenate([[0.0], first[kept]])  # positions at which every replication has a stored value
    return np.linspace(0.0, end, POINTS)


def at(series: Series, x: Axis, y: Height, grid: FloatArray) -> FloatArray:
    """y of one replication at the points of a grid of x; 0 before its first turn.

    Where several turns share one x (nothing was sent in between), the last of them counts.
    """
    index = np.searchsorted(getattr(series, x), grid, side="right") - 1
    heights = np.asarray(getattr(series, y), dtype=np.float64)
    return np.where(index >= 0, heights[np.maximum(index, 0)], 0.0)


BAND = 0.16
MAX_BANDS = 5
"""Largest number of labels for which confidence bands are drawn; more bands would hide each other."""
MAX_BAND_HEIGHT = 1.8
"""Bands are cut off at this multiple of the largest mean."""
MAX_RATIO = 8.0
"""Panels have one axis unless the heights of their curves differ by a larger factor."""
PALE, PALE_WIDTH = 0.35, 0.9
UNITS = {
    "turns": "turns",
    "scalars": "scalars sent",
    "times": "simulated time",
    "energy": "joules of turns and messages",
}
LOG = " (log scale)"
HEIGHTS = {"regret": "cumulative regret", "turns": "turns taken"}


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure of curves."""

    x: Axis
    y: Height

    @property
    def title(self) -> str:
        """Such as "regret against turns"."""
        return f"{self.y} against {UNITS[self.x]}"


PANELS = (Panel("turns", "regret"), Panel("scalars", "regret"), Panel("times", "regret"), Panel("times", "turns"))
ENERGY = Panel("energy", "regret")


@dataclass(frozen=True, eq=False)
class Line:
    """The series of one label, by replication, and the style that it has in all figures.

    Attributes:
        pale: whether it stands in the background.
    """

    label: str
    series: Sequence[Series]
    style: LineStyle
    pale: bool = False


def curve_figure(lines: Sequence[Line]) -> Figure:
    """Curves with 95 % bands in lines of two panels; labels without series are not drawn."""
    panels = with_energy(PANELS, lines)
    height = -(-len(panels) // 2)
    drawn = figure(2.9 * height + legend_height([one.label for one in lines]))
    for number, panel in enumerate(panels, start=1):
        draw_panel(drawn.add_subplot(height, 2, number), lines, panel)
    add_legend(drawn, legend_handles(lines))
    return drawn


def with_energy(panels: Sequence[Panel], lines: Sequence[Line]) -> tuple[Panel, ...]:
    """Panels, and one more against energy where all agents have batteries."""
    series = [each for one in lines for each in one.series]
    powered = bool(series) and all(each.energy is not None for each in series)
    return (*panels, ENERGY) if powered else tuple(panels)


def curve_grid(
    environments: Sequence[tuple[str, Sequence[Line]]], panels: Sequence[Panel], legend: Sequence[Line], most: int
) -> Figure:
    """A panel for each kind and environment, with the same vertical axis for all environments.

    Args:
        environments: (environment, its curves).
        panels: the kinds; up to two environments have one line each, more stand side by side.
        legend: the curves that the legend names.
        most: largest number of environments side by side.
    """
    few = len(environments) < 3
    columns = len(panels) if few else columns_for([name for name, _ in environments], most)
    block = -(-len(environments) // columns)
    lines = len(environments) if few else block * len(panels)
    drawn = figure(2.05 * lines + legend_height([one.label for one in legend]))
    for kind, panel in enumerate(panels):
        axes = []
        for order, (name, found) in enumerate(environments):
            place = order * columns + kind if few else kind * block * columns + order
            axis = drawn.add_subplot(lines, columns, place + 1)
            draw_panel(axis, found, panel)
            axis.set_title(wrapped(name, TITLES // columns) if few or block > 1 or not kind else "")
            axis.set_ylabel(axis.get_ylabel() if place % columns == 0 else "")
            if columns > NARROW:
                few_ticks(axis)
            axes.append(axis)
        same_height(axes)
    add_legend(drawn, legend_handles(legend))
    return drawn


def same_height(axes: Sequence[Axes]) -> None:
    """Give panels the same vertical axis, unless that would press one of them flat."""
    tops = [axis.get_ylim()[1] for axis in axes]
    if max(tops) <= MAX_RATIO * min(tops):
        for axis in axes:
            axis.set_ylim(min(one.get_ylim()[0] for one in axes), max(tops))


def draw_panel(axis: Axes, lines: Sequence[Line], panel: Panel) -> None:
    """Draw the curves that have series into one pair of axes, with titles and ticks."""
    bold = sum(not one.pale for one in lines)
    for number, one in enumerate(lines):
        if one.series:
            _draw_curve(axis, one, panel, number / len(lines), bold <= MAX_BANDS)
    _finish(axis, panel)


def legend_handles(lines: Sequence[Line]) -> list[Line2D]:
    """One entry of a legend for each curve, in its style."""
    return [
        Line2D([], [], color=one.style.colour, linewidth=PALE_WIDTH, alpha=PALE, label=one.label)
        if one.pale
        else Line2D([], [], markersize=5, label=one.label, **one.style.look)
        for one in lines
    ]


def _draw_curve(axis: Axes, line: Line, panel: Panel, offset: float, banded: bool) -> None:
    style = line.style
    found = curve(line.series, panel.x, panel.y, log=panel.x == "scalars")
    if found.constant:
        axis.axhline(found.mean[0], color=style.colour, linestyle=(0, (1, 2)), linewidth=1.3)
        axis.set_ylim(top=max(axis.get_ylim()[1], 1.1 * found.mean[0]))
        return
    top = float(found.mean.max())
    if found.band is not None and banded and not line.pale:
        axis.fill_between(found.x, *found.band, color=style.colour, alpha=BAND, linewidth=0)
        top = max(top, min(float(found.band[1].max()), MAX_BAND_HEIGHT * top))
    if top > 0:
        axis.set_ylim(top=max(axis.get_ylim()[1] if axis.lines else 0.0, 1.04 * top))
    if line.pale:
        axis.plot(found.x, found.mean, color=style.colour, alpha=PALE, linewidth=PALE_WIDTH, zorder=1)
        return
    axis.plot(found.x, found.mean, markevery=(0.02 + 0.12 * offset, 0.14), markersize=4, **style.look)


def _finish(axis: Axes, panel: Panel) -> None:
    lowest = min((float(np.min(line.get_ydata())) for line in axis.lines), default=0.0)
    axis.set_ylim(bottom=min(0.0, 1.05 * lowest))  # realised regret may be negative
    log = panel.x == "scalars" and any(len(np.atleast_1d(line.get_xdata())) > 2 for line in axis.lines)
    if log:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_xlim(left=0)
    plain(axis, panel.title, UNITS[panel.x] + (LOG if log else ""), HEIGHTS[panel.y])
