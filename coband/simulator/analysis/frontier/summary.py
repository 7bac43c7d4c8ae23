"""What a search reports: its finalists on fresh seeds, how they stand, and which one to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coband.simulator.analysis.frontier import objectives
from coband.simulator.analysis.frontier.finalists import choices
from coband.simulator.analysis.frontier.space import Space
from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.footing import judged
from coband.simulator.experiments.runs.planner import FRESH, TUNING, Tally, Variant
from coband.simulator.experiments.runs.results import Failure, Results
from coband.simulator.experiments.runs.study import Study, entries, estimated
from coband.simulator.experiments.statistics.dominance import Standing, standings
from coband.simulator.metrics import Metric


def summary(
    search: Study,
    chosen: Sequence[Metric],
    spaces: Sequence[Space],
    tally: Tally,
    failures: Sequence[Failure],
) -> Results:
    """The object that ``coband frontier --json`` prints and results.json holds.

    It is that of a sweep with tuning, and ``frontier`` beside: the objectives, what was searched, all ``candidates``
    with their means in the search, the ``points`` that were evaluated again, and the ``choices`` among these.
    """
    report = results.report(search.name, entries(search, tally), failures)
    points = _points(search, chosen, tally)
    finalists = tally.sides(tally.chosen, FRESH).values()
    report["frontier"] = {
        "objectives": [{"name": metric.name, "better": metric.better} for metric in chosen],
        "searched": {
            space.label: {one.name: "all values" if one.range.count else "a range" for one in space.dimensions}
            for space in spaces
        },
        "candidates": [
            {**_named(variant), "search": _estimates(chosen, tally, variant, TUNING)} for variant in search.variants
        ],
        "points": points,
        "judged": [judged(one.name, finalists, tally.stops_itself) for one in chosen],
        "choices": choices(points, chosen),
    }
    return report


def _named(variant: Variant) -> dict[str, Any]:
    return {"label": variant.label, "entry": variant.entry, "parameters": variant.shown}


def _estimates(chosen: Sequence[Metric], tally: Tally, variant: Variant, phase: str) -> dict[str, Mapping[str, Any]]:
    """Objective -> number of replications, mean and interval."""
    records = tally.records(variant.number, phase)
    return {metric.name: estimated(results.numbers(metric.name, records), metric) for metric in chosen}


def _points(search: Study, chosen: Sequence[Metric], tally: Tally) -> list[dict[str, Any]]:
    """The finalists, with as much of their fresh replications as there is."""
    variants = [search.variants[number] for number in tally.chosen]
    fresh = list(objectives.values(chosen, tally.sides(tally.chosen, FRESH), tally.stops_itself).values())
    ready = [index for index, values in enumerate(fresh) if values]
    finalists = tally.sides((variants[i].number for i in ready), TUNING)
    searched = list(objectives.values(chosen, finalists, tally.stops_itself).values())
    stand = standings([fresh[i] for i in ready], other=searched, coarse=[metric.proportion for metric in chosen])
    known: Mapping[int, Standing] = dict(zip(ready, stand, strict=True))
    found = []
    for index, variant in enumerate(variants):
        stands = known.get(index)
        beater = None if stands is None else stands.beaten_by
        found.append(
            {
                **_named(variant),
                "settings": list(variant.settings),
                "verdict": None if stands is None else stands.verdict,
                "best_mean": None if stands is None else stands.best_mean,
                "beaten_by": None if beater is None else variants[ready[beater]].label,
                "pulls": estimated(results.numbers("turns", tally.records(variant.number, FRESH)), None),
                "fresh": _estimates(chosen, tally, variant, FRESH),
                "search": _estimates(chosen, tally, variant, TUNING),
            }
        )
    first = chosen[0].name
    order = [one["search"][first]["mean"] for one in found]
    return [found[i] for i in np.argsort([np.inf if mean is None else mean for mean in order], kind="stable")]
