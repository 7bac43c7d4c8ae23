"""The figures of a report, by name; the HTML page and ``coband plot`` both use them."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

from coband.simulator.experiments.report import figures as curves
from coband.simulator.experiments.report import rows, sweeps
from coband.simulator.experiments.report.age import age_figure
from coband.simulator.experiments.report.analysis import Analysis, nothing_but_idle
from coband.simulator.experiments.report.data import REGRET
from coband.simulator.experiments.report.drawing import styled
from coband.simulator.experiments.report.measures import Measure

MAX_PANELS = 3
MAX_ROWS = 12
"""With more labels, the figure of results has one line of panels only."""
RESOLUTION = 200
"""Dots per inch of PNG files, unless another number is asked for."""
SCALARS = "scalars"
UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawing:
    """A kind of figure that a report can have.

    Attributes:
        name: name of the figure and of its file.
        title: what the figure shows, in words.
        draw: draws the figure; returns None if there are no data for it.
    """

    name: str
    title: str
    draw: Callable[[Analysis], Figure | None]


@dataclass(frozen=True, eq=False)
class NamedFigure:
    """A figure with its name, and a description for readers who cannot see it."""

    name: str
    title: str
    figure: Figure


def rendered(found: NamedFigure, kind: str, resolution: int = RESOLUTION) -> bytes:
    """A figure as the bytes of a pdf, svg or png file with white background; equal runs give equal bytes."""
    with styled():
        buffer = io.BytesIO()
        found.figure.savefig(buffer, format=kind, dpi=resolution, facecolor="white", metadata=UNDATED[kind])
    return buffer.getvalue()


def _several(analysis: Analysis) -> list[Measure]:
    return analysis.measures if len(analysis.labels) <= MAX_ROWS else analysis.measures[:MAX_PANELS]


def _surface(analysis: Analysis) -> sweeps.ResponseSurface | None:
    """The first measure as a function of the parameters of a sweep; None unless the report is about one sweep."""
    runs = analysis.comparison.runs
    surface = sweeps.ResponseSurface(runs[0], analysis.measures[0].key) if len(runs) == 1 else None
    return surface if surface is not None and surface.names() else None


def _totals(analysis: Analysis) -> Figure:
    return rows.totals_figure(analysis.labels, _several(analysis), analysis.estimates)


def _sensitivity(analysis: Analysis) -> Figure | None:
    surface = _surface(analysis)
    return None if surface is None else sweeps.sensitivity_figure(surface, analysis.measures[0].title)


def _heat(analysis: Analysis) -> Figure | None:
    surface = _surface(analysis)
    if surface is None or not sweeps.heat_maps(surface):
        return None
    return sweeps.heat_figure(surface, analysis.measures[0].title)


def _regret(analysis: Analysis) -> Figure | None:
    if analysis.comparison.aim != REGRET:
        return None
    return curves.curve_figure([(one.label, one.series) for one in analysis.contenders])


def _trade_off(analysis: Analysis) -> Figure | None:
    if analysis.silent or len(analysis.labels) < 2:
        return None
    found = {measure.key: measure for measure in analysis.measures}
    if not {SCALARS, REGRET} <= found.keys():
        return None
    costs, regrets = analysis.estimates(found[SCALARS]), analysis.estimates(found[REGRET])
    return curves.trade_off_figure(analysis.labels, costs, regrets)


def _communication(analysis: Analysis) -> Figure | None:
    return None if analysis.silent else rows.communication_figure(analysis.flows)


def _differences(analysis: Analysis) -> Figure | None:
    if len(analysis.labels) < 2:
        return None
    return rows.difference_figure([analysis.shown(one) for one in analysis.measures[:MAX_PANELS]])


def _times(analysis: Analysis) -> Figure | None:
    if not analysis.timings or nothing_but_idle(analysis.timings):
        return None
    return rows.times_figure([(one.contender.label, one.shares.mean(axis=0).tolist()) for one in analysis.timings])


def _rounds(analysis: Analysis) -> Figure | None:
    with_rounds = [(one.contender.label, one.parts) for one in analysis.timings if one.all_rounds]
    return rows.rounds_figure(with_rounds) if with_rounds else None


DRAWINGS = (
    Drawing("results", "Mean and 95 % interval of each algorithm on each measure; the table has the numbers.", _totals),
    Drawing(
        "sensitivity",
        "How the first measure depends on each parameter of the grid, the others at their best.",
        _sensitivity,
    ),
    Drawing("heat", "The first measure over pairs of parameters of the grid, the others at their best.", _heat),
    Drawing(
        "regret",
        "Cumulative regret against turns, scalars sent and simulated time, and turns against time.",
        _regret,
    ),
    Drawing("trade_off", "Final regret against scalars sent, with 95 % intervals; the table has them.", _trade_off),
    Drawing(
        "communication",
        "Scalars and messages by kind and direction for each algorithm; the table has them.",
        _communication,
    ),
    Drawing(
        "differences",
        "Differences between algorithms with 95 % intervals; the tables have the numbers.",
        _differences,
    ),
    Drawing("age", "What decisions did not know of, in pulls and in simulated time, against turns.", age_figure),
    Drawing("times", "Where the simulated time of an average agent went; the table has the numbers.", _times),
    Drawing("rounds", "What the critical path of an average round consists of; the table has the numbers.", _rounds),
)
"""All figures, in the order of the report."""

NAMES = tuple(drawing.name for drawing in DRAWINGS)


def figures(analysis: Analysis, names: Collection[str] = NAMES) -> Iterator[NamedFigure]:
    """Yield the figures with these names for which there are data, in the order of the report."""
    with styled():
        for drawing in DRAWINGS:
            figure = drawing.draw(analysis) if drawing.name in names else None
            if figure is not None:
                yield NamedFigure(drawing.name, drawing.title, figure)
