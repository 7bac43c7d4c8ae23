"""Draws growth on doubly logarithmic axes: what was measured, and the bounds of theorems, moved to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, plain
from coband.simulator.analysis.report.figures import LOG, UNITS
from coband.simulator.analysis.report.palette import INK
from coband.simulator.analysis.theory.growth import Growth
from coband.simulator.experiments.statistics.estimates import Estimate

HEIGHTS = {"regret": "cumulative regret", "scalars": "scalars sent"}


def theory_figure(found: Sequence[Growth], colours: Mapping[str, str]) -> Figure | None:
    """A panel for each number: means, and dashed the bound, divided by a constant so that both end alike.

    Args:
        found: the bounds.
        colours: label -> colour of its curves.

    Returns:
        None if no bound could be evaluated.
    """
    known = [one for one in found if len(one.bounded)]
    counts = list(dict.fromkeys(one.bound.count for one in known))
    if not counts:
        return None
    shown = [label for label in colours if any(one.label == label for one in known)]
    drawn = figure(2.9 + legend_height(shown))
    for number, count in enumerate(counts):
        axis = drawn.add_subplot(1, len(counts), number + 1)
        for one in (one for one in known if one.bound.count == count):
            colour = colours[one.label]
            axis.plot(one.pulls, one.measured, color=colour)
            moved = one.bounded * (one.measured[-1] / one.bounded[-1])
            axis.plot(one.pulls, moved, color=colour, linestyle=(0, (4, 2)), linewidth=1.1)
            for heights, slope, other in ((one.measured, one.slope, moved), (moved, one.limit, one.measured)):
                _name_slope(axis, one.pulls[0], heights[0], slope, above=heights[0] >= other[0])
        axis.set_xscale("log")
        axis.set_yscale("log")
        title = f"growth of {count}, and of its bounds (dashed)"
        plain(axis, title, UNITS["turns"] + LOG, HEIGHTS.get(count, count) + LOG)
        axis.grid(visible=True, which="both")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            side.set_minor_formatter(NullFormatter())
    add_legend(drawn, [Line2D([], [], color=colours[label], label=label) for label in shown])
    return drawn


def _name_slope(axis: Axes, across: float, up: float, slope: Estimate | None, above: bool) -> None:
    """Write a slope beside the beginning of its line, as dark as text: colours of lines are too light to read."""
    if slope is not None:
        where: Any = {"xytext": (0, 12 if above else -12), "textcoords": "offset points"}
        axis.annotate(f"slope {slope.mean:.2f}", (across, up), **where, fontsize=7.5, color=INK)
