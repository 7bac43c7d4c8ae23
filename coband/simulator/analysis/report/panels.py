"""Single panels of the figures, in any size, for papers: ``coband plot --panel``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from coband.simulator.analysis.report import contents, figures, frontier, multiples, rows
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.contents import NamedFigure
from coband.simulator.analysis.report.data import REGRET, ReportError
from coband.simulator.analysis.report.drawing import legend_columns, styled, wrapped
from coband.simulator.analysis.report.rows import NamedPanel

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
CURVES = ("regret", "regret-scalars", "regret-time", "turns-time", "regret-energy")
"""Names of the panels of the figure of regret, in its order."""
LEAST = 0.35
"""Smallest height and width of the axes of a panel, in inches."""


def panels(analysis: Analysis) -> list[NamedPanel]:
    """The panels of one environment for which there are data."""
    return [
        *_curves(analysis),
        *rows.totals(analysis),
        *rows.communication(analysis),
        *rows.differences(analysis),
        *rows.times(analysis),
        *rows.rounds(analysis),
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
    with styled(), mpl.rc_context(SMALL):
        found = {one.name: one for one in panels(analysis)}
        if name not in found:
            raise ReportError(f"there is no panel {name!r} for these runs; there is {', '.join(found)}.")
        return NamedFigure(name, name, _drawn(found[name], size), analysis.environment)


def _drawn(panel: NamedPanel, size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.add_subplot()
    if panel.labels:
        width = max(6, int(LABELS * size[0] * 72 / (0.6 * FONT)))
        rows.label_rows(axis, [wrapped(label, width) for label in panel.labels])
    panel.draw(axis)
    if panel.minus is not None:
        axis.set_xlabel(f"{axis.get_title(loc='left')},\nminus {panel.minus}")
    elif not axis.get_xlabel():
        axis.set_xlabel(axis.get_title(loc="left"))
    axis.set_title("")
    if panel.legend:
        labels = [str(one.get_label()) for one in panel.legend]
        figure.legend(
            handles=list(panel.legend),
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


def _curves(analysis: Analysis) -> Iterator[NamedPanel]:
    if analysis.comparison.aim == REGRET:
        lines = multiples.foremost(analysis) if analysis.environment else contents.lines(analysis)
        legend = figures.legend_handles(list({one.label: one for one in lines}.values()))
        for name, panel in zip(CURVES, figures.with_energy(figures.PANELS, lines), strict=False):
            yield NamedPanel(name, partial(figures.draw_panel, lines=lines, panel=panel), legend=legend)
    styles = contents.entry_styles(analysis)
    for found in frontier.trade_offs(analysis):
        name = "trade_off" if found[0].name == "scalars" else f"trade_off-{found[0].name}"
        draw = partial(frontier.draw, panel=found, styles=styles)
        yield NamedPanel(name, draw, legend=frontier.handles([found], styles))
