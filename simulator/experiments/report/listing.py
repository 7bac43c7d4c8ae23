"""A comparison as plain values, for ``coband compare --json`` and for Python."""

from __future__ import annotations

from typing import Any

from coband.simulator.experiments.report import theory_table
from coband.simulator.experiments.report.analysis import Analysis
from coband.simulator.experiments.report.comparison import Difference, Ranking


def listed(analysis: Analysis) -> dict[str, Any]:
    """Labels, remarks, rankings and differences."""
    return {
        "labels": {one.label: one.algorithm for one in analysis.contenders},
        "remarks": list(analysis.comparison.remarks()),
        "rankings": [_ranking(one) for one in analysis.rankings],
        "differences": [_difference(one) for measure in analysis.measures for one in analysis.shown(measure)],
        "theory": theory_table.listed(analysis.growths),
    }


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "measure": ranking.measure.key,
        ranking.measure.end: list(ranking.leaders),
        "not_told_apart": list(ranking.undecided),
        "sentence": ranking.sentence,
        "means": {label: estimate.mean for label, estimate in ranking.order},
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "measure": one.measure.key,
        "first": one.first,
        "second": one.second,
        "paired": one.paired,
        "n": one.count,
        "mean": one.mean,
        "relative": one.relative,
        "ci95_t": one.student,
        "ci95_bootstrap": one.bootstrap,
        "verdict": one.verdict,
    }
