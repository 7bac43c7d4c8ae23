"""Figures with one row per label: totals, differences, communication, times and rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from coband.simulator.experiments.report import rounds as rounds_
from coband.simulator.experiments.report import times
from coband.simulator.experiments.report.communication import Flow
from coband.simulator.experiments.report.comparison import Difference
from coband.simulator.experiments.report.drawing import LEGEND_COLUMNS, figure, legend_height, tick
from coband.simulator.experiments.report.measures import Measure
from coband.simulator.experiments.report.palette import (
    KINDS,
    MUTED,
    NO_PAYLOAD,
    PAPER,
    PARTS,
    SERIES,
    TIMES,
    line_style,
)
from coband.simulator.experiments.statistics.estimates import Estimate

HATCHES = {"": "", "up": "", "down": "////", "peer": "...."}
LONG_LABEL = 30


def totals_figure(
    labels: Sequence[str], measures: Sequence[Measure], estimates: Callable[[Measure], Sequence[Estimate]]
) -> Figure:
    """A dot with its 95 % interval for every label, one panel per measure.

    Args:
        labels: the labels.
        measures: the measures.
        estimates: gives the estimates of all labels for a measure.
    """
    drawn, axes = _rows(labels, len(measures))
    for axis, measure in zip(axes, measures, strict=True):
        for row, found in enumerate(estimates(measure)):
            bounds = found.interval or (found.mean, found.mean)
            axis.plot(bounds, [row, row], color=line_style(row).colour, linewidth=2, solid_capstyle="butt")
            axis.plot(
                found.mean,
                row,
                marker=line_style(row).marker,
                color=line_style(row).colour,
                markersize=6,
                clip_on=False,
            )
        axis.set_title(measure.title)
        axis.set_xlim(left=min(0.0, *(one.mean for one in estimates(measure))))
        _thousands(axis)
    return drawn


def difference_figure(found: Sequence[Sequence[Difference]]) -> Figure:
    """Differences with 95 % t intervals (lines) and bootstrap intervals (ticks); one panel per measure.

    Args:
        found: the differences of each measure, for the same pairs of labels.
    """
    drawn, axes = _rows([f"{one.first} − {one.second}" for one in found[0]], len(found))
    for axis, differences in zip(axes, found, strict=True):
        for row, one in enumerate(differences):
            colour = {-1: SERIES[0], 1: SERIES[1]}.get(_side(one), MUTED)
            if one.student is not None:
                axis.plot(one.student, [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
            if one.bootstrap is not None:
                axis.plot(one.bootstrap, [row, row], color=colour, marker="|", markersize=9, linestyle="none")
            axis.plot(one.mean, row, marker="o" if _side(one) else "D", color=colour, markersize=5)
        axis.axvline(0, color=MUTED, linewidth=0.9)
        axis.set_title(f"difference of {differences[0].measure.title}")
        _thousands(axis)
    return drawn


def _side(one: Difference) -> int:
    return 0 if one.better is None else -1 if one.better == one.first else 1


def communication_figure(flows: Sequence[tuple[str, Sequence[Flow]]]) -> Figure:
    """Stacked bars of scalars and of messages by kind (colour) and direction (hatching).

    Args:
        flows: (label, its flows).
    """
    keys = _keys(flows)
    drawn, axes = _rows([label for label, _ in flows], 2, legend=legend_height(len(keys)))
    for axis, (attribute, title) in zip(axes, (("scalars", "scalars sent"), ("messages", "messages")), strict=True):
        for row, (_, found) in enumerate(flows):
            left = 0.0
            for key in keys:
                width = sum(float(getattr(one, attribute)) for one in found if _key(one) == key)
                axis.barh(row, width, left=left, height=0.62, linewidth=0.4, **_filling(key, keys))
                left += width
        axis.set_title(f"{title}, mean of a replication")
        axis.set_xlim(left=0)
        _thousands(axis)
    handles = [Patch(label=" ".join(filter(None, key)), **_filling(key, keys)) for key in keys]
    drawn.legend(handles=handles, loc="outside upper left", ncols=min(LEGEND_COLUMNS, len(handles) or 1))
    return drawn


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


def _filling(key: tuple[str, str], keys: Sequence[tuple[str, str]]) -> dict[str, Any]:
    kinds = list(dict.fromkeys(kind for kind, direction in keys if direction))
    colour = KINDS[kinds.index(key[0]) % len(KINDS)] if key[1] else NO_PAYLOAD
    return {"facecolor": colour, "edgecolor": PAPER, "hatch": HATCHES[key[1]]}


def times_figure(shares: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Stacked bars of the time of an average agent by category.

    Args:
        shares: (label, mean time in each of ``times.CATEGORIES``).
    """
    keys = [one.key for one in times.MEANINGS]
    titles = {one.key: one.title for one in times.MEANINGS}
    columns = {key: [found[keys.index(key)] for _, found in shares] for key in keys}
    shown = [key for key in keys if any(columns[key])]
    return _stacked(
        [label for label, _ in shares],
        {titles[key]: columns[key] for key in shown},
        [TIMES[key] for key in shown],
        "simulated time of an average agent",
    )


def rounds_figure(parts: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """Stacked bars of the parts of an average round's critical path.

    Args:
        parts: (label, mean time in each of ``rounds.PARTS``).
    """
    columns = {part: [found[number] for _, found in parts] for number, part in enumerate(rounds_.PARTS)}
    shown = [part for part in rounds_.PARTS if any(columns[part])]
    return _stacked(
        [label for label, _ in parts],
        {rounds_.TITLES[part]: columns[part] for part in shown},
        [PARTS[part] for part in shown],
        "simulated time of an average round",
    )


def _stacked(labels: Sequence[str], columns: dict[str, list[float]], colours: Iterable[str], title: str) -> Figure:
    drawn, (axis,) = _rows(labels, 1, legend=legend_height(len(columns)))
    left = np.zeros(len(labels))
    for (name, widths), colour in zip(columns.items(), colours, strict=True):
        axis.barh(
            range(len(labels)), widths, left=left, height=0.62, color=colour, edgecolor=PAPER, linewidth=0.5, label=name
        )
        left += np.asarray(widths)
    axis.set_xlim(left=0)
    axis.set_xlabel(title)
    _thousands(axis)
    drawn.legend(loc="outside upper left", ncols=LEGEND_COLUMNS)
    return drawn


def _rows(labels: Sequence[str], panels: int, legend: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Panels side by side with one row per label, the first on top; at most three panels in a line."""
    columns = min(panels, 3)
    lines = -(-panels // columns)
    empty = figure(lines * (0.75 + 0.27 * len(labels)) + legend)
    axes: list[Axes] = []
    for number in range(panels):
        axis = empty.add_subplot(lines, columns, number + 1)
        axis.set_ylim(len(labels) - 0.4, -0.6)
        first = number % columns == 0
        axis.set_yticks(range(len(labels)), list(map(_short, labels)) if first else [""] * len(labels))
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.grid(visible=True, axis="x")
        axes.append(axis)
    return empty, axes


def _short(label: str) -> str:
    return label if len(label) <= LONG_LABEL else f"{label[: LONG_LABEL - 1]}…"


def _thousands(axis: Axes) -> None:
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
