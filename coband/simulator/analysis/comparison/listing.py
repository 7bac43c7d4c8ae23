"""A comparison as plain values, for ``coband compare --json``, and as data frames, for Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pandas as pd

from coband.simulator.analysis.comparison import data
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.differences import Difference, Ranking
from coband.simulator.analysis.frames import ESTIMATE, STORED, frame
from coband.simulator.experiments.store.store import StoredRun


def listed(analysis: Analysis) -> dict[str, object]:
    """Labels, remarks, rankings and differences; in a sweep the latter are within each environment."""
    return {
        "labels": {one.label: one.algorithm for one in analysis.contenders},
        "remarks": list(analysis.comparison.remarks()),
        "rankings": [{**_place(each), **_ranking(one)} for each in analysis.within for one in each.rankings],
        "at_times": places(analysis),
        "differences": [
            {**_place(each), **difference(one)}
            for each in analysis.within
            for measure in each.measures
            for one in each.shown(measure)
        ],
    }


def places(analysis: Analysis, at: float | None = None) -> list[dict[str, object]]:
    """The labels at a simulated time, or at some, in each environment."""
    return [
        {**_place(each), **asdict(one)}
        for each in analysis.within
        for one in (each.at_times if at is None else each.at(at))
    ]


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


def differences(analysis: Analysis, *, everything: bool = False) -> pd.DataFrame:
    """A row per pair of labels on the first measure, in a sweep of each environment.

    Args:
        analysis: of one or several runs.
        everything: with the intervals of the bootstrap and of the confidence sequence, and its e-value.
    """
    rows = [
        _place(one) | _row(each) | (_further(each) if everything else {})
        for one in analysis.within
        for each in one.shown(analysis.measures[0])
    ]
    keys = [*_place(analysis.within[0]), "first", "second"]
    columns = (*keys, *ESTIMATE, "relative", "paired", "at_pulls", "better", "verdict")
    found = frame(rows, columns).set_index(keys)
    return found.astype(dict.fromkeys(("mean", "low", "high", "relative", "at_pulls"), float))


def _row(one: Difference) -> dict[str, object]:
    low, high = one.student or (None, None)
    return {
        "first": one.first,
        "second": one.second,
        "mean": one.mean,
        "low": low,
        "high": high,
        "n": one.count,
        "relative": one.relative,
        "paired": one.paired,
        "at_pulls": one.footing.at,
        "better": one.better,
        "verdict": one.verdict,
    }


def _further(one: Difference) -> dict[str, object]:
    (low, high), (early, late) = one.bootstrap or (None, None), one.any_time or (None, None)
    at_any_time = {"any_time_low": early, "any_time_high": late, "e_value": one.e_value}
    return {"bootstrap_low": low, "bootstrap_high": high, **at_any_time}


def rankings(analysis: Analysis) -> pd.DataFrame:
    """A row per measure, in a sweep of each environment: the labels with the best mean, and the result in words."""
    rows = [
        _place(one) | {"measure": each.measure.name, "best": ", ".join(each.leaders), "sentence": each.sentence}
        for one in analysis.within
        for each in one.rankings
    ]
    keys = [*_place(analysis.within[0]), "measure"]
    return frame(rows, (*keys, "best", "sentence")).set_index(keys)


def compared(run: StoredRun) -> pd.DataFrame:
    """`differences` of a run by the aim of its problem."""
    return differences(Analysis(data.load([run])))


def words(run: StoredRun) -> pd.DataFrame:
    """`rankings` of a run."""
    return rankings(Analysis(data.load([run])))


TABLES: dict[str, Callable[..., pd.DataFrame]] = {**STORED, "compare": compared, "words": words}
"""What `Run` has under these names, and ``coband show --table`` prints."""
