"""The tables of results and of differences as texts, for ``coband compare`` and the browser of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.differences import MIN_BOOTSTRAP, Difference
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.statistics.numerals import between, bounds, evidence, like
from coband.simulator.metrics import Metric

ANY_TIME = ("95 % at any time", "e")
"""Columns of a confidence sequence and of the e-value of its process."""
FEW = f"needs {MIN_BOOTSTRAP} pairs"
"""What stands in place of a bootstrap interval where there are too few pairs for one."""


@dataclass(frozen=True)
class ReportTable:
    """A table of a report.

    Attributes:
        caption: text above the table.
        header: titles of the columns.
        rows: cells; the first cell is the heading of its row.
        texts: number of leading columns that contain text rather than numbers.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1


def results(analysis: Analysis) -> ReportTable:
    """Means and intervals of every label."""
    columns = [[_estimate(measure, found) for found in analysis.estimates(measure)] for measure in analysis.measures]
    rows = tuple(
        (one.label, one.algorithm, str(len(one.records)), *cells)
        for one, cells in zip(analysis.contenders, zip(*columns, strict=True), strict=True)
    )
    header = ("label", "algorithm", "n", *(measure.heading for measure in analysis.measures))
    caption = "Mean over n replications ± half the width of the 95 % confidence interval of the mean (Student t)."
    if shares := [measure.heading for measure in analysis.measures if measure.proportion]:
        caption += f" Of {' and '.join(shares)}: the share, and Wilson's 95 % interval."
    return ReportTable(caption, header, rows, texts=2)


def _estimate(measure: Metric, found: Estimate) -> str:
    if measure.proportion:
        return f"{found.mean:.3g} ({bounds(found.interval)})"
    return between(found.mean, found.interval)


def differences(analysis: Analysis) -> list[tuple[str, ReportTable]]:
    """(title, table) of each measure."""
    header = ("difference", "mean", "relative", "95 % t interval", "95 % bootstrap interval", *ANY_TIME, "n", "verdict")
    return [
        (
            measure.heading,
            ReportTable(_caption(analysis.shown(measure)), header, tuple(map(_row, analysis.shown(measure)))),
        )
        for measure in analysis.measures
    ]


def _caption(found: Sequence[Difference]) -> str:
    early = " Replications were added until a mean was known: what holds at any time decides."
    more = early if any(one.early for one in found) else ""
    if all(one.paired for one in found):
        return f"Differences within the same replication (same arms, same noise); n pairs.{more}"
    if any(one.paired for one in found):
        text = "Differences within the same replication where n says pairs; otherwise of independent means (Welch)."
    else:
        text = "Differences of independent means (Welch): the runs had different arms and noise."
    return f"{text}{more}"


def _row(one: Difference) -> tuple[str, ...]:
    relative = "" if one.relative is None else _percent(100 * one.relative)
    count = f"{one.count} pair{'s' * (one.count != 1)}" if one.paired else f"{one.count}, unpaired"
    resampled = FEW if one.bootstrap is None and one.student is not None else bounds(one.bootstrap)
    at_any_time = (bounds(one.any_time), evidence(one.e_value))
    numbers = (like(one.mean, one.student), relative, bounds(one.student), resampled, *at_any_time)
    return (f"{one.first} − {one.second}", *(number.replace("-", "−") for number in numbers), count, one.verdict)


def _percent(value: float) -> str:
    if value == 0:
        return "0 %"
    return f"{value:+,.0f} %" if abs(value) >= 100 else f"{value:+.3g} %"
