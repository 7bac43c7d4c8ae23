"""Figures with one row per label: totals, differences, communication, times and rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from coband.simulator.analysis.report import rounds as rounds_
from coband.simulator.analysis.report import times as times_
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.comparison import Difference
from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, tick, wrapped
from coband.simulator.analysis.report.palette import (
    HATCHES,
    MUTED,
    NO_PAYLOAD,
    PAPER,
    PARTS,
    TIME_HATCHES,
    TIMES,
    LineStyle,
    kind_colour,
)
from coband.simulator.analysis.report.times import ARROWS, Flow
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.metrics import Metric

LONG_LABEL = 34
"""Labels of rows are broken into lines of at most this number of characters."""
LINE_HEIGHT = 0.16
"""Height of a further line of a label, in inches."""
MAX_ACROSS = 3
AMOUNTS = {"scalars": "scalars sent", "messages": "messages"}
"""Attribute of a flow -> its name."""


@dataclass(frozen=True)
class NamedPanel:
    """A panel that can be drawn, beside others or alone.

    Attributes:
        draw: draws it into a pair of axes.
        labels: names of its rows; empty for a panel with numbers at both axes.
        legend: entries of the legend.
        minus: the label that is subtracted in all rows.
    """

    name: str
    draw: Callable[[Axes], object]
    labels: Sequence[str] = ()
    legend: Sequence[Artist] = ()
    minus: str | None = None


def side_by_side(panels: Sequence[NamedPanel]) -> Figure | None:
    """A figure of panels with the same rows; None if there are none."""
    if not panels:
        return None
    legend = panels[0].legend
    height = legend_height([str(one.get_label()) for one in legend]) if legend else 0.0
    drawn, axes = rows_figure(panels[0].labels, len(panels), legend=height)
    for axis, panel in zip(axes, panels, strict=True):
        panel.draw(axis)
        if panel.minus is not None:
            axis.set_xlabel(wrapped(f"minus {panel.minus}", LONG_LABEL))
    add_legend(drawn, legend)
    return drawn


def totals(analysis: Analysis) -> list[NamedPanel]:
    """A dot with its 95 % interval for every label, for each measure."""
    styles = analysis.styles
    return [
        NamedPanel(
            f"results-{one.name}",
            partial(draw_totals, measure=one, found=analysis.estimates(one), styles=styles),
            analysis.labels,
        )
        for one in analysis.measures
    ]


def draw_totals(axis: Axes, measure: Metric, found: Sequence[Estimate | None], styles: Sequence[LineStyle]) -> None:
    """Draw a dot with its interval in every row that has an estimate."""
    for row, (one, style) in enumerate(zip(found, styles, strict=True)):
        if one is not None:
            axis.plot(
                one.interval or (one.mean, one.mean), [row, row], color=style.colour, linewidth=2, solid_capstyle="butt"
            )
            axis.plot(one.mean, row, marker=style.marker, color=style.colour, markersize=6, clip_on=False)
    axis.set_title(measure.heading)
    axis.set_xlim(left=min(0.0, *(one.mean for one in found if one is not None)))
    _thousands(axis)


def differences(analysis: Analysis) -> list[NamedPanel]:
    """Differences with 95 % t intervals (lines) and bootstrap intervals (ticks), for each measure."""
    if len(analysis.labels) < 2:
        return []
    styles, minus = dict(zip(analysis.labels, analysis.styles, strict=True)), analysis.reference
    panels = []
    for measure in analysis.measures:
        found = analysis.shown(measure)
        names = [one.first if minus is not None else f"{one.first} − {one.second}" for one in found]
        draw = partial(_draw_differences, found=found, styles=styles)
        panels.append(NamedPanel(f"differences-{measure.name}", draw, names, minus=minus))
    return panels


def _draw_differences(axis: Axes, found: Sequence[Difference], styles: Mapping[str, LineStyle]) -> None:
    """Draw one difference in every row, in the colour and with the marker of the better label."""
    for row, one in enumerate(found):
        colour = MUTED if one.better is None else styles[one.better].colour
        if one.student is not None:
            axis.plot(one.student, [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
        if one.bootstrap is not None:
            axis.plot(one.bootstrap, [row, row], color=colour, marker="|", markersize=9, linestyle="none")
        axis.plot(one.mean, row, marker="x" if one.better is None else styles[one.better].marker, color=colour)
    axis.axvline(0, color=MUTED, linewidth=0.9)
    axis.set_title(f"difference of {found[0].measure.heading}")
    _thousands(axis)


def communication(analysis: Analysis) -> list[NamedPanel]:
    """Stacked bars of scalars and of messages by kind (colour) and direction; the hatching tells all entries apart."""
    if analysis.silent:
        return []
    flows, sizes = analysis.flows, dict[tuple[str, str], float]()
    for one in (one for _, found in flows for one in found):
        sizes[_key(one)] = sizes.get(_key(one), 0.0) + one.scalars
    fillings: dict[tuple[str, str], dict[str, Any]] = {
        key: {
            "facecolor": kind_colour(key[0], analysis.shared.kinds) if key[1] else NO_PAYLOAD,
            "edgecolor": PAPER,
            "hatch": HATCHES[number % len(HATCHES)],
        }
        for number, key in enumerate(sorted(sizes, key=lambda key: (-sizes[key], key)))
    }
    names = {key: f"{key[0]}, {ARROWS[key[1]]}" if key[1] else key[0] for key in fillings}
    legend = [Patch(label=names[key], **filling) for key, filling in fillings.items()]
    panels = []
    for attribute, title in AMOUNTS.items():
        parts = [
            (names[key], {**filling, "linewidth": 0.4}, _widths(flows, key, attribute))
            for key, filling in fillings.items()
        ]
        draw = partial(_draw_stack, parts=parts, title=f"{title}, mean of a replication")
        panels.append(NamedPanel(f"communication-{attribute}", draw, [label for label, _ in flows], legend))
    return panels


def _widths(flows: Sequence[tuple[str, Sequence[Flow]]], key: tuple[str, str], attribute: str) -> FloatArray:
    """What each label sends of one entry of the legend."""
    return np.array([sum(float(getattr(one, attribute)) for one in found if _key(one) == key) for _, found in flows])


def _key(flow: Flow) -> tuple[str, str]:
    """The legend entry of a flow: its kind and direction; flows without payload share one entry."""
    return (flow.kind, flow.direction) if flow.scalars else ("without payload", "")


def times(analysis: Analysis) -> list[NamedPanel]:
    """Stacked bars of the time of an average agent by state; none where all are idle or finished all the time."""
    timings = analysis.timings
    quiet = [number for number, name in enumerate(times_.CATEGORIES) if name not in (times_.IDLE, times_.FINISHED)]
    if not any(one.shares[:, quiet].any() for one in timings):
        return []
    states = [(one.title, one.key) for one in times_.MEANINGS]
    found = [(one.contender.label, one.shares.mean(axis=0).tolist()) for one in timings]
    return [_stack("times", states, found, "simulated time of an average agent")]


def rounds(analysis: Analysis) -> list[NamedPanel]:
    """Stacked bars of the parts of an average round's critical path, of the labels with rounds."""
    states = [(part, PARTS[part]) for part in rounds_.PARTS]
    found = [(one.contender.label, one.parts) for one in analysis.timings if one.all_rounds]
    return [_stack("rounds", states, found, "simulated time of an average round")] if found else []


def _stack(
    name: str, states: Sequence[tuple[str, str]], found: Sequence[tuple[str, Sequence[float]]], unit: str
) -> NamedPanel:
    """Stacked bars of the parts that are not 0 everywhere.

    Args:
        states: (title, state that gives the colour) of each part.
        found: (label, width of each part).
    """
    parts: list[tuple[str, dict[str, Any], FloatArray]] = [
        (
            title,
            {"facecolor": TIMES[state], "edgecolor": PAPER, "linewidth": 0.5, "hatch": TIME_HATCHES.get(state, "")},
            widths,
        )
        for (title, state), widths in zip(states, np.array([widths for _, widths in found]).T, strict=True)
        if widths.any()
    ]
    legend = [Patch(label=title, **filling) for title, filling, _ in parts]
    return NamedPanel(name, partial(_draw_stack, parts=parts, unit=unit), [label for label, _ in found], legend)


def _draw_stack(
    axis: Axes, parts: Sequence[tuple[str, dict[str, Any], FloatArray]], unit: str = "", title: str = ""
) -> None:
    left = np.zeros(len(parts[0][2]))
    for _, filling, widths in parts:
        axis.barh(range(len(left)), widths, left=left, height=0.62, **filling)
        left += widths
    axis.set_xlim(left=0)
    axis.set(title=title, xlabel=unit)
    _thousands(axis)


def rows_figure(
    labels: Sequence[str], panels: int, legend: float = 0.0, columns: int = MAX_ACROSS
) -> tuple[Figure, list[Axes]]:
    """Panels side by side with one row per label, the first on top; at most ``columns`` panels in a line."""
    columns = min(panels, columns)
    lines = -(-panels // columns)
    names = [wrapped(label, LONG_LABEL) for label in labels]
    row = 0.27 + LINE_HEIGHT * max(name.count("\n") for name in names)
    empty = figure(lines * (0.75 + row * len(labels)) + legend)
    axes: list[Axes] = []
    for number in range(panels):
        axis = empty.add_subplot(lines, columns, number + 1)
        label_rows(axis, names if number % columns == 0 else [""] * len(names))
        axes.append(axis)
    return empty, axes


def label_rows(axis: Axes, names: Sequence[str]) -> None:
    """Prepare a panel with one row per name, the first on top."""
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_yticks(range(len(names)), list(names))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(visible=True, axis="x")


def _thousands(axis: Axes) -> None:
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
