"""The figures of a report, by name; the HTML page and ``coband plot`` both use them."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

from coband.simulator.analysis.report import figures as curves
from coband.simulator.analysis.report import frontier, rows, sweeps
from coband.simulator.analysis.report.adversity import adversity_figure
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import REGRET
from coband.simulator.analysis.report.devices import age_figure, population_figure
from coband.simulator.analysis.report.drawing import styled
from coband.simulator.analysis.report.multiples import regret_multiples, sole, totals_multiples
from coband.simulator.analysis.report.palette import LineStyle, line_style

MAX_PANELS = 3
MAX_ROWS = 12
"""With more labels, the figure of results has one line of panels only."""
RESOLUTION = 200
"""Dots per inch of PNG files, unless another number is asked for."""
UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawing:
    """A kind of figure that a report can have.

    Attributes:
        title: what the figure shows, in words.
        draw: draws the figure; returns None if there are no data for it.
        whole: whether one figure shows all environments of a sweep; otherwise each environment has one of its own.
        rows: whether labels are rows, which one figure has of all environments where each has the same one label.
    """

    name: str
    title: str
    draw: Callable[[Analysis], Figure | None]
    whole: bool = False
    rows: bool = False


@dataclass(frozen=True, eq=False)
class NamedFigure:
    """A figure with its name, a description for readers who cannot see it, and the environment that it shows."""

    name: str
    title: str
    figure: Figure
    environment: str = ""

    @property
    def file(self) -> str:
        """Name of its file, without the ending."""
        place = "".join(one if one.isalnum() or one in "=.,-" else "_" for one in self.environment.replace(", ", ","))
        return f"{self.name}-{place}" if place else self.name


def rendered(found: NamedFigure, kind: str, resolution: int = RESOLUTION) -> bytes:
    """A figure as the bytes of a pdf, svg or png file with white background; the same runs give an identical file."""
    with styled():
        buffer = io.BytesIO()
        found.figure.savefig(buffer, format=kind, dpi=resolution, facecolor="white", metadata=UNDATED[kind])
    return buffer.getvalue()


def surface(analysis: Analysis) -> sweeps.ResponseSurface | None:
    """The first measure as a function of the parameters of a sweep; None unless the report is about one sweep."""
    runs = analysis.comparison.runs
    if len(runs) != 1 or not analysis.swept:
        return None
    measure = analysis.measures[0]
    return sweeps.ResponseSurface(
        runs[0], measure.name, highest=measure.better == "higher", order=analysis.shared.entries
    )


def _totals(analysis: Analysis) -> Figure | None:
    if analysis.swept:
        return totals_multiples(analysis, analysis.measures[:MAX_PANELS])
    most = None if len(analysis.labels) <= MAX_ROWS else MAX_PANELS
    return rows.side_by_side(rows.totals(analysis)[:most])


def _of_surface(draw: Callable[[sweeps.ResponseSurface, str], Figure | None]) -> Callable[[Analysis], Figure | None]:
    """A figure of a sweep's parameters, for a whole report."""

    def drawn(analysis: Analysis) -> Figure | None:
        found = surface(analysis)
        return None if found is None else draw(found, analysis.measures[0].heading)

    return drawn


def _regret(analysis: Analysis) -> Figure | None:
    if analysis.comparison.aim != REGRET:
        return None
    return regret_multiples(analysis) if analysis.swept else curves.curve_figure(lines(analysis))


def lines(analysis: Analysis) -> list[curves.Line]:
    """The curves of the labels of one environment."""
    return [
        curves.Line(one.label, one.series, style)
        for one, style in zip(analysis.contenders, analysis.styles, strict=True)
    ]


def entry_styles(analysis: Analysis) -> dict[str, LineStyle]:
    """Algorithm -> its style, whatever its parameters."""
    entries = analysis.shared.entries
    return {one.entry: line_style(entries.index(one.entry)) for one in analysis.contenders}


def _trade_off(analysis: Analysis) -> Figure | None:
    panels = frontier.trade_offs(analysis)
    return frontier.trade_off_figure(panels, entry_styles(analysis)) if panels else None


DRAWINGS = (
    Drawing(
        "results", "Mean and 95 % interval of each algorithm on each measure; the table has the numbers.", _totals, True
    ),
    Drawing(
        "sensitivity",
        "How the first measure depends on each parameter of the algorithms in each environment, others at their best.",
        _of_surface(sweeps.sensitivity_figure),
        True,
    ),
    Drawing(
        "environments",
        "How the first measure depends on the environment, with the algorithms' parameters at their best.",
        _of_surface(sweeps.environment_figure),
        True,
    ),
    Drawing(
        "heat",
        "The first measure over pairs of parameters of an algorithm in each environment, the others at their best.",
        _of_surface(sweeps.heat_figure),
        True,
    ),
    Drawing(
        "regret",
        "Cumulative regret against turns, scalars sent, simulated time and energy, and turns against time.",
        _regret,
        True,
    ),
    Drawing(
        "trade_off",
        "Final regret against scalars sent, simulated time and energy, with 95 % intervals; points not dominated are "
        "marked, and listed in the table.",
        _trade_off,
    ),
    Drawing(
        "communication",
        "Scalars and messages by kind and direction for each algorithm; the same numbers are in the table.",
        lambda found: rows.side_by_side(rows.communication(found)),
        rows=True,
    ),
    Drawing(
        "adversity",
        "When which agent lied, what was spent of epsilon, and bits by what they hold; the tables have the numbers.",
        adversity_figure,
    ),
    Drawing(
        "differences",
        "Differences between algorithms with 95 % intervals; the same numbers are in the tables.",
        lambda found: rows.side_by_side(rows.differences(found)[:MAX_PANELS]),
    ),
    Drawing("age", "What decisions did not know of, in pulls and in simulated time, against turns.", age_figure),
    Drawing(
        "times",
        "Where the simulated time of an average agent went; the table has the numbers.",
        lambda found: rows.side_by_side(rows.times(found)),
    ),
    Drawing(
        "population",
        "Devices of the first replication: share below each number, share that is up by hour of the day; regret of the "
        "slow and the seldom up, and who ran out of energy.",
        population_figure,
    ),
    Drawing(
        "rounds",
        "What the critical path of an average round consists of; the table has the numbers.",
        lambda found: rows.side_by_side(rows.rounds(found)),
    ),
)
"""All figures, in the order of the report."""

NAMES = tuple(drawing.name for drawing in DRAWINGS)


def figures(
    analysis: Analysis, names: Collection[str] = NAMES, environments: int | None = None
) -> Iterator[NamedFigure]:
    """Yield the figures with these names for which there are data, in the order of the report.

    Args:
        environments: largest number of environments with figures of their own; None for all.
    """
    with styled():
        for drawing in DRAWINGS:
            whole = drawing.whole or (drawing.rows and sole(analysis))
            parts = [analysis] if whole else analysis.within[:environments]
            for part in parts if drawing.name in names else []:
                figure = drawing.draw(part)
                if figure is not None:
                    yield NamedFigure(drawing.name, drawing.title, figure, part.environment)
