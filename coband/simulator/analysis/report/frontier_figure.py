"""Draws trade-offs: points with intervals in both directions, curves of parameters, and which are not dominated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, SymmetricalLogLocator

from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, plain
from coband.simulator.analysis.report.figures import LOG, UNITS
from coband.simulator.analysis.report.frontier import TradeOff, curves
from coband.simulator.analysis.report.palette import FADED, INK, MUTED, PAPER, LineStyle, mixed
from coband.simulator.metrics import Metric

MOST_NAMED = 16
"""With more points the values of their parameters are not written beside them."""
SIGNS = {"frontier": "not dominated", "undecided": "not distinguishable", "beaten": "dominated"}
Panel = tuple[Metric, Metric, Sequence[TradeOff]]
Styles = Mapping[str, LineStyle]
"""Algorithm -> the style of its points."""


def trade_off_figure(panels: Sequence[Panel], styles: Styles) -> Figure:
    """A panel for each cost, in which lower left is better; full points are those that are not dominated.

    Args:
        panels: (cost, aim, points).
        styles: those of the algorithms.
    """
    entries = handles(panels, styles)
    drawn = figure(3.2 + legend_height([str(one.get_label()) for one in entries]))
    for number, panel in enumerate(panels):
        draw(drawn.add_subplot(1, len(panels), number + 1), panel, styles)
    add_legend(drawn, entries)
    return drawn


def handles(panels: Sequence[Panel], styles: Styles) -> list[Line2D]:
    """The entries of a legend: the algorithms, and the signs of the Pareto front."""
    points = panels[0][2]
    signs = [sign for sign in SIGNS if any(_sign(point) == sign for _, _, found in panels for point in found)]
    found = [_handle(style, _title(entry, points)) for entry, style in styles.items()]
    return found + [_handle(LineStyle(INK, "o", "-"), SIGNS[sign], sign) for sign in signs]


def draw(axis: Axes, panel: Panel, styles: Styles) -> None:
    """Draw one panel into a pair of axes, with titles and ticks."""
    cost, aim, points = panel
    _draw(axis, points, styles)
    _scale(axis, points, cost, aim)


def _title(entry: str, points: Sequence[TradeOff]) -> str:
    """The algorithm, and whose values are written beside its points."""
    names = {name for name, _ in curves([point for point in points if point.entry == entry]) if name is not None}
    return f"{entry} (by {names.pop()})" if names else entry


def _sign(point: TradeOff) -> str:
    """How the point is drawn; of one replication only the means are known."""
    if point.gain.count < 2:
        return "frontier" if point.standing.best_mean else "beaten"
    return point.standing.verdict


def _filling(style: LineStyle, sign: str) -> dict[str, object]:
    """Full for what is not dominated, pale for what is not known, empty for what is dominated."""
    face = {"frontier": style.colour, "undecided": mixed(style.colour, PAPER, FADED), "beaten": PAPER}[sign]
    return {"color": style.colour, "marker": style.marker, "markerfacecolor": face, "markersize": 7}


def _handle(style: LineStyle, label: str, sign: str = "frontier") -> Line2D:
    return Line2D([], [], linestyle="none", label=label, **_filling(style, sign))  # type: ignore[arg-type]


def _draw(axis: Axes, points: Sequence[TradeOff], styles: Styles) -> None:
    settings = list(dict.fromkeys(point.setting for point in points))
    if len(settings) == 1:
        _draw_staircase(axis, points)
    for entry, style in styles.items():
        for setting in settings:
            mine = [point for point in points if point.entry == entry and point.setting == setting]
            _draw_curves(axis, mine, style, named=len(points) <= MOST_NAMED)
    for point in points:
        style = styles[point.entry]
        for across, found in ((True, point.cost), (False, point.gain)):
            low, high = found.interval or (found.mean, found.mean)
            ends = ([max(low, 0.0), high], [point.gain.mean] * 2) if across else ([point.cost.mean] * 2, [low, high])
            axis.plot(*ends, color=style.colour, linewidth=1.4, solid_capstyle="butt")
        filling = _filling(style, _sign(point))
        axis.plot(point.cost.mean, point.gain.mean, linestyle="none", clip_on=False, zorder=3, **filling)  # type: ignore[arg-type]


def _draw_staircase(axis: Axes, points: Sequence[TradeOff]) -> None:
    """What can be reached: the border of the points that the best means beat."""
    best = sorted((p for p in points if p.standing.best_mean), key=lambda p: (p.cost.mean, -p.gain.mean))
    if len(best) > 1:
        across, up = [p.cost.mean for p in best], [p.gain.mean for p in best]
        axis.plot(across, up, drawstyle="steps-post", color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)


def _draw_curves(axis: Axes, points: Sequence[TradeOff], style: LineStyle, named: bool) -> None:
    for name, found in curves(points):
        across, up = [p.cost.mean for p in found], [p.gain.mean for p in found]
        axis.plot(across, up, color=style.colour, linewidth=1.0, alpha=0.7, zorder=2)
        for point in found if named and name is not None else ():
            text = next(one.text for one in point.parameters if one.name == name)
            where = (point.cost.mean, point.gain.mean)
            axis.annotate(text, where, xytext=(5, 4), textcoords="offset points", fontsize=7, color=INK)


def _scale(axis: Axes, points: Sequence[TradeOff], cost: Metric, aim: Metric) -> None:
    """Scales, ticks and titles; a cost of 0 has a place on a logarithmic axis, too."""
    across = {"scalars": UNITS["scalars"], "simulated_time": UNITS["times"]}.get(cost.name, cost.heading)
    paid = [point.cost.mean for point in points if point.cost.mean > 0]
    free = len(paid) < len(points)
    if paid and (max(paid) > 10 * min(paid) or free):
        near = 10.0 ** np.floor(np.log10(min(paid)))
        axis.set_xscale("symlog", linthresh=near, linscale=0.3)
        if max(paid) < 100 * min(paid):  # powers of ten alone would be one or two
            axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=near, subs=[1.0, 2.0, 5.0]))
        axis.xaxis.set_minor_formatter(NullFormatter())
        across += " (log scale, linear near 0)" if free else LOG
    axis.set_xlim(left=0.0 if free else None)
    if aim.better == "lower":
        axis.set_ylim(bottom=min(0.0, *(point.gain.mean for point in points)))
    up = "cumulative regret" if aim.name == "regret" else aim.heading
    plain(axis, f"{aim.heading} against {cost.heading}, at the end", across, up)
