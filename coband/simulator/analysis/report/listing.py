"""A comparison as plain values, for ``coband compare --json`` and for Python."""

from __future__ import annotations

from dataclasses import asdict

from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.comparison import Difference, Ranking


def listed(analysis: Analysis) -> dict[str, object]:
    """Labels, remarks, rankings and differences; in a sweep the latter are within each environment."""
    return {
        "labels": {one.label: one.algorithm for one in analysis.contenders},
        "remarks": list(analysis.comparison.remarks()),
        "rankings": [{**_place(each), **_ranking(one)} for each in analysis.within for one in each.rankings],
        "at_times": [{**_place(each), **asdict(one)} for each in analysis.within for one in each.at_times],
        "differences": [
            {**_place(each), **difference(one)}
            for each in analysis.within
            for measure in each.measures
            for one in each.shown(measure)
        ],
    }


def _place(analysis: Analysis) -> dict[str, str]:
    """The environment of a sweep; nothing in a single run."""
    return {"environment": analysis.environment} if analysis.environment else {}


def _ranking(ranking: Ranking) -> dict[str, object]:
    return {
        "measure": ranking.measure.name,
        ranking.measure.end: list(ranking.leaders),
        "not_told_apart": list(ranking.undecided),
        "sentence": ranking.sentence,
        "means": {label: estimate.mean for label, estimate in ranking.order},
    }


def difference(one: Difference) -> dict[str, object]:
    """A difference with all its intervals."""
    return {
        "measure": one.measure.name,
        "first": one.first,
        "second": one.second,
        "paired": one.paired,
        "n": one.count,
        "mean": one.mean,
        "relative": one.relative,
        "ci95_t": one.student,
        "ci95_bootstrap": one.bootstrap,
        "cs95": one.any_time,
        "e_value": one.e_value,
        "stops_early": one.early,
        "pulls": one.pulls,
        "at_pulls": one.footing.at,
        "verdict": one.verdict,
    }
