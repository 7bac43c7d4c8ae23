"""Figures with one row per label: totals, differences, communication, times and rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from coband.simulator.analysis.report import rounds as rounds_
from coband.simulator.analysis.report import times
from coband.simulator.analysis.report.communication import ARROWS, Flow
from coband.simulator.analysis.report.comparison import Difference
from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, tick, wrapped
from coband.simulator.analysis.report.measures import Measure
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
from coband.simulator.experiments.statistics.estimates import Estimate

LONG_LABEL = 34
"""Labels of rows are broken into lines of at most this number of characters."""
LINE_HEIGHT = 0.16
"""Height of a further line of a label, in inches."""
MAX_ACROSS = 3
AMOUNTS = {"scalars": "scalars sent", "messages": "messages"}
"""Attribute of a flow -> its name."""


def totals_figure(
    labels: Sequence[str],
    measures: Sequence[Measure],
    estimates: Callable[[Measure], Sequence[Estimate]],
    styles: Sequence[LineStyle],
) -> Figure:
    """A dot with its 95 % interval for every label, one panel per measure.

    Args:
        estimates: gives the estimates of all labels for a measure.
    """
    drawn, axes = rows_figure(labels, len(measures))
    for axis, measure in zip(axes, measures, strict=True):
        draw_totals(axis, measure, estimates(measure), styles)
    return drawn


def draw_totals(axis: Axes, measure: Measure, found: Sequence[Estimate | None], styles: Sequence[LineStyle]) -> None:
    """Draw a dot with its interval in every row that has an estimate."""
    for row, (one, style) in enumerate(zip(found, styles, strict=True)):
        if one is not None:
            axis.plot(
                one.interval or (one.mean, one.mean), [row, row], color=style.colour, linewidth=2, solid_capstyle="butt"
            )
            axis.plot(one.mean, row, marker=style.marker, color=style.colour, markersize=6, clip_on=False)
    axis.set_title(measure.title)
    axis.set_xlim(left=min(0.0, *(one.mean for one in found if one is not None)))
    _thousands(axis)


def difference_figure(
    found: Sequence[Sequence[Difference]], styles: Mapping[str, LineStyle], reference: str | None = None
) -> Figure:
    """Differences with 95 % t intervals (lines) and bootstrap intervals (ticks); one panel per measure.

    Args:
        found: the differences of each measure, for the same pairs of labels.
        styles: label -> its style, which marks the differences that it wins.
        reference: the second label, where it is the same in all rows.
    """
    drawn, axes = rows_figure(difference_names(found[0], reference), len(found))
    for axis, differences in zip(axes, found, strict=True):
        draw_differences(axis, differences, styles)
        if reference is not None:
            axis.set_xlabel(wrapped(f"minus {reference}", LONG_LABEL))
    return drawn


def difference_names(found: Sequence[Difference], reference: str | None) -> list[str]:
    """The names of the rows: both labels, or the first where the second is the same in all rows."""
    return [one.first if reference is not None else f"{one.first} − {one.second}" for one in found]


def draw_differences(axis: Axes, found: Sequence[Difference], styles: Mapping[str, LineStyle]) -> None:
    """Draw one difference in every row, in the colour and with the marker of the better label."""
    for row, one in enumerate(found):
        colour = MUTED if one.better is None else styles[one.better].colour
        if one.student is not None:
            axis.plot(one.student, [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
        if one.bootstrap is not None:
            axis.plot(one.bootstrap, [row, row], color=colour, marker="|", markersize=9, linestyle="none")
        axis.plot(one.mean, row, marker="x" if one.better is None else styles[one.better].marker, color=colour)
    axis.axvline(0, color=MUTED, linewidth=0.9)
    axis.set_title(f"difference of {found[0].measure.title}")
    _thousands(axis)


def communication_figure(flows: Sequence[tuple[str, Sequence[Flow]]], kinds: Mapping[str, bool]) -> Figure:
    """Stacked bars of scalars and of messages by kind (colour) and direction; the hatching tells all entries apart.

    Args:
        flows: (label, its flows).
        kinds: all kinds of messages, in the order of their colours.
    """
    keys = _keys(flows)
    legend = [_entry(key) for key in keys]
    drawn, axes = rows_figure([label for label, _ in flows], 2, legend=legend_height(legend))
    for axis, attribute in zip(axes, AMOUNTS, strict=True):
        draw_communication(axis, flows, kinds, attribute)
    add_legend(drawn, communication_handles(flows, kinds))
    return drawn


def draw_communication(
    axis: Axes, flows: Sequence[tuple[str, Sequence[Flow]]], kinds: Mapping[str, bool], attribute: str
) -> None:
    """Draw stacked bars of "scalars" or "messages", one row per label."""
    keys = _keys(flows)
    for row, (_, found) in enumerate(flows):
        left = 0.0
        for key in keys:
            width = sum(float(getattr(one, attribute)) for one in found if _key(one) == key)
            axis.barh(row, width, left=left, height=0.62, linewidth=0.4, **_filling(key, keys, kinds))
            left += width
    axis.set_title(f"{AMOUNTS[attribute]}, mean of a replication")
    axis.set_xlim(left=0)
    _thousands(axis)


def communication_handles(flows: Sequence[tuple[str, Sequence[Flow]]], kinds: Mapping[str, bool]) -> list[Patch]:
    """The entries of the legend."""
    keys = _keys(flows)
    return [Patch(label=_entry(key), **_filling(key, keys, kinds)) for key in keys]


def _key(flow: Flow) -> tuple[str, str]:
    """The legend entry of a flow: its kind and direction; flows without payload share one entry."""
    return (flow.kind, flow.direction) if flow.scalars else ("without payload", "")


def _keys(flows: Sequence[tuple[str, Sequence[Flow]]]) -> list[tuple[str, str]]:
    """The legend entries, by decreasing number of scalars."""
    sizes: dict[tuple[str, str], float] = {}
    for _, found in flows:
        for one in found:
            sizes[_key(one)] = sizes.get(_key(one), 0.0) + one.scalars
    return sorted(sizes, key=lambda key: (-sizes[key], key))


def _entry(key: tuple[str, str]) -> str:
    """Such as "upload, to the server"."""
    return f"{key[0]}, {ARROWS[key[1]]}" if key[1] else key[0]


def _filling(key: tuple[str, str], keys: Sequence[tuple[str, str]], kinds: Mapping[str, bool]) -> dict[str, Any]:
    hatch = HATCHES[keys.index(key) % len(HATCHES)]
    return {"facecolor": kind_colour(key[0], kinds) if key[1] else NO_PAYLOAD, "edgecolor": PAPER, "hatch": hatch}


def times_figure(shares: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Stacked bars of the time of an average agent by state.

    Args:
        shares: (label, mean time in each of ``times.CATEGORIES``).
    """
    return _stacked_figure([label for label, _ in shares], times_stack(shares))


def times_stack(shares: Sequence[tuple[str, Sequence[float]]]) -> Stack:
    """The bars of :func:`times_figure`."""
    states = {one.key: (one.title, one.key) for one in times.MEANINGS}
    return _stack(list(states), states, [found for _, found in shares], "simulated time of an average agent")


def rounds_figure(parts: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Stacked bars of the parts of an average round's critical path.

    Args:
        parts: (label, mean time in each of ``rounds.PARTS``).
    """
    return _stacked_figure([label for label, _ in parts], rounds_stack(parts))


def rounds_stack(parts: Sequence[tuple[str, Sequence[float]]]) -> Stack:
    """The bars of :func:`rounds_figure`."""
    states = {part: (rounds_.TITLES[part], PARTS[part]) for part in rounds_.PARTS}
    return _stack(rounds_.PARTS, states, [found for _, found in parts], "simulated time of an average round")


@dataclass(frozen=True)
class Stack:
    """Stacked bars: (title, state that gives the colour, width in each row) of each part; ``unit`` is the axis."""

    parts: tuple[tuple[str, str, tuple[float, ...]], ...]
    unit: str


def _stack(
    keys: Sequence[str], states: Mapping[str, tuple[str, str]], found: Sequence[Sequence[float]], unit: str
) -> Stack:
    """The parts that are not 0 everywhere."""
    columns = {key: tuple(row[number] for row in found) for number, key in enumerate(keys)}
    return Stack(tuple((*states[key], widths) for key, widths in columns.items() if any(widths)), unit)


def _stacked_figure(labels: Sequence[str], stack: Stack) -> Figure:
    drawn, (axis,) = rows_figure(labels, 1, legend=legend_height([title for title, _, _ in stack.parts]))
    add_legend(drawn, draw_stack(axis, stack))
    return drawn


def draw_stack(axis: Axes, stack: Stack) -> list[Patch]:
    """Draw stacked bars, one row per label, and return the entries of the legend."""
    rows = len(stack.parts[0][2])
    left = np.zeros(rows)
    handles = []
    for title, state, widths in stack.parts:
        filling: dict[str, Any] = {
            "facecolor": TIMES[state],
            "edgecolor": PAPER,
            "linewidth": 0.5,
            "hatch": TIME_HATCHES.get(state, ""),
        }
        axis.barh(range(rows), widths, left=left, height=0.62, **filling)
        handles.append(Patch(label=title, **filling))
        left += np.asarray(widths)
    axis.set_xlim(left=0)
    axis.set_xlabel(stack.unit)
    _thousands(axis)
    return handles


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
