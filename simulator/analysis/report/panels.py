"""Single panels of the figures, in any size, for papers: ``coband plot --panel``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coband.simulator.analysis.report import contents, figures, frontier, frontier_figure, multiples, rows
from coband.simulator.analysis.report.analysis import Analysis, nothing_but_idle
from coband.simulator.analysis.report.comparison import Difference
from coband.simulator.analysis.report.contents import NamedFigure
from coband.simulator.analysis.report.data import REGRET, ReportError
from coband.simulator.analysis.report.drawing import legend_columns, styled, wrapped
from coband.simulator.analysis.report.measures import Measure
from coband.simulator.experiments.statistics.estimates import Estimate

SIZE = (3.3, 2.2)
"""Width and height in inches, unless others are asked for: one column of a paper with two."""
FONT = 7.5
SMALL: Any = {
    "font.size": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT,
    "ytick.labelsize": FONT,
    "legend.fontsize": FONT,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
}
LABELS = 0.36
"""Largest share of the width that the names of rows take."""
CURVES = {"regret": 0, "regret-scalars": 1, "regret-time": 2, "turns-time": 3}
"""Name of a panel -> its number in the figure of regret."""
LEAST = 0.35
"""Smallest height and width of the axes of a panel, in inches."""


@dataclass(frozen=True)
class PaperPanel:
    """A panel that can be drawn.

    Attributes:
        draw: draws it into a pair of axes and returns the entries of the legend.
        labels: names of its rows; empty for a panel with numbers at both axes.
    """

    name: str
    draw: Callable[[Axes], Sequence[Artist]]
    labels: tuple[str, ...] = ()


def panels(analysis: Analysis) -> list[PaperPanel]:
    """The panels of one environment for which there are data."""
    return [
        *_curves(analysis),
        *_totals(analysis),
        *_communication(analysis),
        *_differences(analysis),
        *_times(analysis),
    ]


def environment(analysis: Analysis, name: str | None) -> Analysis:
    """The analysis of the environment with this name; None where there is one alone.

    Raises:
        ReportError: there is no such environment, or several and none is named.
    """
    found = {one.environment: one for one in analysis.within}
    if name is None and len(found) == 1:
        return analysis.within[0]
    if name in found:
        return found[name]
    have = "; ".join(repr(one) for one in found if one)
    if not have:
        raise ReportError("a single run has no environments; leave out --environment.")
    what = (
        "a sweep has several environments; choose one" if name is None else f"there is no environment {name!r}; choose"
    )
    raise ReportError(f"{what} with --environment: {have}.")


def panel_figure(analysis: Analysis, name: str, size: tuple[float, float] = SIZE) -> NamedFigure:
    """A figure with one panel.

    Args:
        analysis: the analysis of one environment.
        size: width and height in inches.

    Raises:
        ReportError: there is no such panel, or no room for it; the text lists those that exist.
    """
    found = {one.name: one for one in panels(analysis)}
    if name not in found:
        raise ReportError(f"there is no panel {name!r} for these runs; there is {', '.join(found)}.")
    with styled(), mpl.rc_context(SMALL):
        return NamedFigure(name, name, _drawn(found[name], size), analysis.environment)


def _drawn(panel: PaperPanel, size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.add_subplot()
    if panel.labels:
        width = max(6, int(LABELS * size[0] * 72 / (0.6 * FONT)))
        rows.label_rows(axis, [wrapped(label, width) for label in panel.labels])
    handles = panel.draw(axis)
    if not axis.get_xlabel():
        axis.set_xlabel(axis.get_title(loc="left"))
    axis.set_title("")
    if handles:
        labels = [str(one.get_label()) for one in handles]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=legend_columns(labels, size[0], FONT),
            handlelength=2.0,
            columnspacing=1.2,
            handletextpad=0.5,
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    place = axis.get_position()
    flat = place.width * size[0] < LEAST or place.height * size[1] < LEAST
    if flat or any("constrained_layout" in str(one.message) for one in caught):
        raise ReportError(
            f"a panel of {size[0]:g} x {size[1]:g} inches has no room for {panel.name!r} with its legend and labels; "
            "give a larger --width or --height."
        )
    return figure


def _curves(analysis: Analysis) -> Iterator[PaperPanel]:
    if analysis.comparison.aim == REGRET:
        lines = multiples.foremost(analysis) if analysis.environment else contents.lines(analysis)
        for name, number in CURVES.items():
            yield PaperPanel(name, partial(_draw_curves, lines, figures.PANELS[number]))
    for found in frontier.trade_offs(analysis):
        name = "trade_off" if found[0].key == "scalars" else f"trade_off-{found[0].key}"
        yield PaperPanel(name, partial(_draw_trade_off, found, contents.entry_styles(analysis)))


def _draw_curves(lines: Sequence[figures.Line], panel: figures.Panel, axis: Axes) -> Sequence[Artist]:
    figures.draw_panel(axis, lines, panel)
    return figures.legend_handles(list({one.label: one for one in lines}.values()))


def _draw_trade_off(found: frontier_figure.Panel, styles: frontier_figure.Styles, axis: Axes) -> Sequence[Artist]:
    frontier_figure.draw(axis, found, styles)
    return frontier_figure.handles([found], styles)


def _totals(analysis: Analysis) -> Iterator[PaperPanel]:
    for measure in analysis.measures:
        found = analysis.estimates(measure)

        def draw(axis: Axes, measure: Measure = measure, found: Sequence[Estimate] = found) -> list[Artist]:
            rows.draw_totals(axis, measure, found, analysis.styles)
            return []

        yield PaperPanel(f"results-{measure.key}", draw, tuple(analysis.labels))


def _communication(analysis: Analysis) -> Iterator[PaperPanel]:
    if analysis.silent:
        return
    for attribute in rows.AMOUNTS:

        def draw(axis: Axes, attribute: str = attribute) -> Sequence[Artist]:
            rows.draw_communication(axis, analysis.flows, analysis.kinds, attribute)
            return rows.communication_handles(analysis.flows, analysis.kinds)

        yield PaperPanel(f"communication-{attribute}", draw, tuple(label for label, _ in analysis.flows))


def _differences(analysis: Analysis) -> Iterator[PaperPanel]:
    if len(analysis.labels) < 2:
        return
    styles = dict(zip(analysis.labels, analysis.styles, strict=True))
    for measure in analysis.measures:
        shown = analysis.shown(measure)

        def draw(axis: Axes, shown: Sequence[Difference] = shown) -> list[Artist]:
            rows.draw_differences(axis, shown, styles)
            if analysis.reference is not None:
                axis.set_xlabel(f"{axis.get_title(loc='left')},\nminus {analysis.reference}")
            return []

        names = rows.difference_names(shown, analysis.reference)
        yield PaperPanel(f"differences-{measure.key}", draw, tuple(names))


def _times(analysis: Analysis) -> Iterator[PaperPanel]:
    stacks = {}
    if analysis.timings and not nothing_but_idle(analysis.timings):
        found = contents.shares(analysis)
        stacks["times"] = rows.times_stack(found), tuple(label for label, _ in found)
    if parts := contents.round_parts(analysis):
        stacks["rounds"] = rows.rounds_stack(parts), tuple(label for label, _ in parts)
    for name, (stack, labels) in stacks.items():
        yield PaperPanel(name, partial(rows.draw_stack, stack=stack), labels)
