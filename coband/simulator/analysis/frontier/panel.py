"""The panel `trade_off`: the aim against what it costs, and which labels are not dominated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import SETTING, WORLD, differing
from coband.simulator.analysis.frontier.objectives import values
from coband.simulator.analysis.report import draw
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.sweeps import estimated
from coband.simulator.experiments.statistics.dominance import Standing, standings
from coband.simulator.metrics import Metric

COSTS = ("scalars", "simulated_time", "energy")
VERDICTS = {"frontier": "not dominated", "undecided": "not distinguishable", "beaten": "dominated"}


def trade_offs(analysis: Analysis) -> pd.DataFrame:
    """A row per cost in which labels differ, and label; none if nobody sends anything, or the aim is a share."""
    measures, aim = {one.name: one for one in analysis.measures}, analysis.measures[0]
    if analysis.silent or len(analysis.labels) < 2 or aim.proportion:
        return pd.DataFrame()
    rows = []
    for cost in (measures[name] for name in COSTS if name in measures and name != aim.name):
        numbers = zip(analysis.estimates(cost), analysis.estimates(aim), _standings(analysis, cost, aim), strict=True)
        for label, (paid, gained, standing) in zip(analysis.labels, numbers, strict=True):
            of_cost = {f"cost_{name}": value for name, value in estimated(paid).items() if name != "n"}
            row = {"cost": cost.name, "label": label, "measure": aim.heading, **of_cost, **estimated(gained)}
            rows.append(row | {"standing": standing})
    return pd.DataFrame(rows)


def _standings(analysis: Analysis, cost: Metric, aim: Metric) -> list[str]:
    """How every label stands among those of its world and network, in words."""
    found: dict[int, str] = dict.fromkeys(range(len(analysis.labels)), draw.NOT_RANKED)  # those that have waited
    settings = _settings(analysis)
    for setting in dict.fromkeys(settings):
        members = {i: one for i, one in enumerate(analysis.contenders) if settings[i] == setting}
        points = values((cost, aim), members, analysis.comparison.stops_itself)
        ready = [number for number in members if points[number]]
        for number, standing in zip(ready, standings([points[one] for one in ready]), strict=True):
            beater = None if standing.beaten_by is None else analysis.labels[ready[standing.beaten_by]]
            found[number] = _words(standing, beater, single=len(points[number]) < 2)
    return list(found.values())


def _words(standing: Standing, beater: str | None, *, single: bool) -> str:
    if single:
        return "best mean" if standing.best_mean else "-"
    return VERDICTS[standing.verdict] + (f" by {beater}" if beater else "")


def _settings(analysis: Analysis) -> list[int]:
    """For each contender the number of its world and network: equal for those that differ in the algorithm alone."""
    known: list[Mapping[str, Any]] = []
    found = []
    for one in analysis.contenders:
        scenario = analysis.comparison.scenario_of(one)
        same = (i for i, other in enumerate(known) if not differing(other, scenario, (*WORLD, *SETTING)))
        number = next(same, len(known))
        if number == len(known):
            known.append(scenario)
        found.append(number)
    return found


TRADE_OFF = Panel(
    "trade_off",
    "Regret against its cost",
    "Both at the end, with 95 % intervals; lower left is better. The dashed line is what the best means reach. A label "
    "is dominated if another is at least as good in both and better in one, as paired differences show with 95 %. One "
    "that makes fewer than half of the most pulls is not ranked.",
    trade_offs,
    draw.trade_off,
    each="cost",
    table=lambda frame: frame.drop(columns="measure"),
    after="progress",
)
