"""Small multiples: one panel or one row of panels for each environment of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from coband.simulator.analysis.report import figures, rows
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.report.drawing import NARROW, TITLES, columns_for, few_ticks, wrapped
from coband.simulator.analysis.report.figures import Line
from coband.simulator.analysis.report.palette import LineStyle, line_style
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.metrics import Metric

COLUMNS = 6
"""Largest number of environments side by side."""
MAX_ENVIRONMENTS = 12
"""Largest number of environments in a figure."""
MAX_CURVES = 6
"""With more labels in an environment, the best of each algorithm stands before the others."""
OTHERS, BEST = "other parameters", "the best here"


def sole(analysis: Analysis) -> bool:
    """Whether there are several environments with the same one label in each."""
    return len(analysis.within) > 1 and len({tuple(one.labels) for one in analysis.within}) == 1 == len(
        analysis.within[0].labels
    )


def totals_multiples(analysis: Analysis, measures: Sequence[Metric]) -> Figure:
    """A dot with its 95 % interval for every label; a panel per environment, and a block of panels per measure.

    Where each environment has one label, it has a row instead.
    """
    shown = analysis.within[:MAX_ENVIRONMENTS]
    labels = list(dict.fromkeys(label for one in shown for label in one.labels))
    styles = {label: style for one in shown for label, style in zip(one.labels, one.styles, strict=True)}
    if sole(analysis):
        drawn, axes = rows.rows_figure([one.environment for one in shown], len(measures))
        for axis, measure in zip(axes, measures, strict=True):
            means = [one.estimates(measure)[0] for one in shown]
            rows.draw_totals(axis, measure, means, [one.styles[0] for one in shown])
        return drawn
    alone = len(shown) == 1
    columns = len(measures) if alone else columns_for([one.environment for one in shown], COLUMNS)
    block = 1 if alone else -(-len(shown) // columns) * columns
    drawn, axes = rows.rows_figure(labels, block * len(measures), columns=columns)
    for order, measure in enumerate(measures):
        panels = axes[order * block : (order + 1) * block]
        for axis, one in zip(panels, shown, strict=False):
            found = dict(zip(one.labels, one.estimates(measure), strict=True))
            rows.draw_totals(axis, measure, [found.get(label) for label in labels], [styles[one] for one in labels])
            axis.set_title(wrapped(one.environment, TITLES // columns) if block > columns or not order else "")
            axis.set_xlabel(measure.heading)
            if columns > NARROW:
                few_ticks(axis)
        for axis in panels[: len(shown)]:
            axis.set_xlim(min(one.get_xlim()[0] for one in panels), max(one.get_xlim()[1] for one in panels))
        for axis in panels[len(shown) :]:
            axis.set_axis_off()
    return drawn


def regret_multiples(analysis: Analysis) -> Figure:
    """Curves of regret in each environment, against turns, scalars sent, simulated time and energy.

    Where each environment has one label, it has a curve instead of panels.
    """
    shown = analysis.within[:MAX_ENVIRONMENTS]
    if sole(analysis):
        series = [one.contenders[0].series for one in shown]
        return figures.curve_figure(
            [
                figures.Line(one.environment, each, line_style(i))
                for i, (one, each) in enumerate(zip(shown, series, strict=True))
            ]
        )
    found = [(one.environment, foremost(one)) for one in shown]
    legend = {line.label: line for _, lines in found for line in lines}
    panels = figures.with_energy(figures.PANELS[:3], [line for _, lines in found for line in lines])
    return figures.curve_grid(found, panels, list(legend.values()), COLUMNS)


def foremost(analysis: Analysis) -> list[Line]:
    """The curves of one environment; where they are many, the best of each algorithm before the pale others."""
    pairs = list(zip(analysis.contenders, analysis.styles, strict=True))
    if len(pairs) <= MAX_CURVES:
        return [Line(one.label, one.series, style) for one, style in pairs]
    best = best_labels(analysis)
    entries = analysis.shared.entries
    pale = [
        Line(f"{one.entry}, {OTHERS}", one.series, style, pale=True) for one, style in pairs if one.label not in best
    ]
    front = [
        Line(f"{one.entry}, {BEST}", one.series, line_style(entries.index(one.entry)))
        for one, _ in pairs
        if one.label in best
    ]
    return pale + front


def foremost_contenders(analysis: Analysis) -> list[tuple[Contender, LineStyle]]:
    """The contenders with their styles; where they are many, the best of each algorithm."""
    pairs = list(zip(analysis.contenders, analysis.styles, strict=True))
    best = best_labels(analysis) if len(pairs) > MAX_CURVES else analysis.labels
    return [pair for pair in pairs if pair[0].label in best]


def best_labels(analysis: Analysis) -> dict[str, Estimate]:
    """The label of each algorithm with the best mean of the first measure in this environment, with that mean."""
    measure = analysis.measures[0]
    sign = -1.0 if measure.better == "higher" else 1.0
    found: dict[str, tuple[str, Estimate]] = {}
    for one, estimate in zip(analysis.contenders, analysis.estimates(measure), strict=True):
        if one.entry not in found or sign * estimate.mean < sign * found[one.entry][1].mean:
            found[one.entry] = one.label, estimate
    return dict(found.values())
