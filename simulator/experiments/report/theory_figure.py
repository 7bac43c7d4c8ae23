"""Draws growth on doubly logarithmic axes: what was measured, and the bounds of theorems, moved to its end."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from coband.simulator.experiments.report.drawing import LEGEND_COLUMNS, figure, legend_height, tick
from coband.simulator.experiments.report.figures import UNITS, legend_handles
from coband.simulator.experiments.report.palette import line_style
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.theory.growth import Growth

HEIGHTS = {"regret": "cumulative regret", "scalars": "scalars sent"}


def theory_figure(found: Sequence[Growth], labels: Sequence[str]) -> Figure | None:
    """A panel for each number: means, and dashed the bound, divided by a constant so that both end alike.

    Args:
        found: the bounds.
        labels: of all contenders, in the order that gives them their colours.

    Returns:
        None if no bound could be evaluated.
    """
    known = [one for one in found if len(one.bounded)]
    counts = list(dict.fromkeys(one.bound.count for one in known))
    if not counts:
        return None
    drawn = figure(2.9 + legend_height(len(labels)))
    for number, count in enumerate(counts):
        axis = drawn.add_subplot(1, len(counts), number + 1)
        for one in (one for one in known if one.bound.count == count):
            colour = line_style(labels.index(one.label)).colour
            axis.plot(one.pulls, one.measured, color=colour)
            moved = one.bounded * (one.measured[-1] / one.bounded[-1])
            axis.plot(one.pulls, moved, color=colour, linestyle=(0, (4, 2)), linewidth=1.1)
            for heights, slope, other in ((one.measured, one.slope, moved), (moved, one.limit, one.measured)):
                _name_slope(axis, one.pulls[0], heights[0], slope, colour, above=heights[0] >= other[0])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"growth of {count}, and of its bounds (dashed)")
        axis.set_xlabel(UNITS["turns"])
        axis.set_ylabel(HEIGHTS.get(count, count))
        axis.grid(visible=True, which="both")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(FuncFormatter(tick))
            side.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            side.set_minor_formatter(NullFormatter())
    shown = [label for label in labels if any(one.label == label for one in known)]
    handles = [one for one in legend_handles(drawn.axes[0], labels) if one.get_label() in shown]
    drawn.legend(handles=handles, loc="outside upper left", ncols=min(LEGEND_COLUMNS, len(handles)))
    return drawn


def _name_slope(axis: Axes, across: float, up: float, slope: Estimate | None, colour: str, above: bool) -> None:
    """Write a slope beside the beginning of its line."""
    if slope is not None:
        text = f"slope {slope.mean:.2f}"
        axis.annotate(
            text, (across, up), xytext=(0, 12 if above else -12), textcoords="offset points", fontsize=7.5, color=colour
        )
