"""The figures of a report, by name; the HTML page and ``coband plot`` both use them."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

from coband.simulator.experiments.report import figures as curves
from coband.simulator.experiments.report import rows, sweeps
from coband.simulator.experiments.report.analysis import Analysis, nothing_but_idle
from coband.simulator.experiments.report.drawing import styled

NAMES = ("results", "regret", "communication", "differences", "times", "rounds", "sensitivity", "heat")
MAX_PANELS = 3
MAX_ROWS = 12
"""With more labels, the figure of results has one line of panels only."""
RESOLUTION = 200
UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True, eq=False)
class NamedFigure:
    """A figure with its name, and a description for readers who cannot see it."""

    name: str
    title: str
    figure: Figure


def figures(analysis: Analysis, names: Collection[str] = NAMES) -> Iterator[NamedFigure]:
    """Yield the figures with these names for which there are data, in the order of the report."""
    with styled():
        for name, title, make in _figure_makers(analysis):
            if name in names:
                yield NamedFigure(name, title, make())


def rendered(found: NamedFigure, kind: str) -> bytes:
    """A figure as the bytes of a pdf, svg or png file with white background; equal runs give equal bytes."""
    with styled():
        buffer = io.BytesIO()
        found.figure.savefig(buffer, format=kind, dpi=RESOLUTION, facecolor="white", metadata=UNDATED[kind])
    return buffer.getvalue()


def _figure_makers(analysis: Analysis) -> Iterator[tuple[str, str, Callable[[], Figure]]]:
    labels, timings = analysis.labels, analysis.timings
    shown = analysis.measures[:MAX_PANELS]
    summarised = analysis.measures if len(labels) <= MAX_ROWS else shown
    yield (
        "results",
        "Mean and 95 % interval of each algorithm on each measure; the table has the numbers.",
        lambda: rows.totals_figure(labels, summarised, analysis.estimates),
    )
    runs = analysis.comparison.runs
    if len(runs) == 1 and (surface := sweeps.ResponseSurface(runs[0], shown[0].key)).names():
        yield (
            "sensitivity",
            "How the first measure depends on each parameter of the grid, the others at their best.",
            lambda: sweeps.sensitivity_figure(surface, shown[0].title),
        )
        if sweeps.heat_maps(surface):
            yield (
                "heat",
                "The first measure over pairs of parameters of the grid, the others at their best.",
                lambda: sweeps.heat_figure(surface, shown[0].title),
            )
    if not analysis.comparison.pure_exploration:
        series = [(one.label, one.series) for one in analysis.contenders]
        yield (
            "regret",
            "Cumulative regret against turns, scalars sent and simulated time, and turns against time.",
            lambda: curves.curve_figure(series),
        )
    if not analysis.silent:
        yield (
            "communication",
            "Scalars and messages by kind and direction for each algorithm; the table has them.",
            lambda: rows.communication_figure(analysis.flows),
        )
    if len(labels) > 1:
        yield (
            "differences",
            "Differences between algorithms with 95 % intervals; the tables have the numbers.",
            lambda: rows.difference_figure([analysis.shown(one) for one in shown]),
        )
    if timings and not nothing_but_idle(timings):
        shares = [(one.contender.label, one.shares.mean(axis=0).tolist()) for one in timings]
        yield (
            "times",
            "Where the simulated time of an average agent went; the table has the numbers.",
            lambda: rows.times_figure(shares),
        )
    with_rounds = [(one.contender.label, one.parts) for one in timings if one.all_rounds]
    if with_rounds:
        yield (
            "rounds",
            "What the critical path of an average round consists of; the table has the numbers.",
            lambda: rows.rounds_figure(with_rounds),
        )
