"""The trade-off of a report: regret against what it costs, a point per label, and which of them are not dominated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coband.simulator.analysis.frontier.objectives import values
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import SETTING, WORLD, differing
from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.experiments.runs.variant import Parameter
from coband.simulator.experiments.statistics.dominance import Standing, standings
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.statistics.numerals import between
from coband.simulator.metrics import Metric

COSTS = ("scalars", "simulated_time", "energy")
VERDICTS = {"frontier": "not dominated", "undecided": "not distinguishable", "beaten": "dominated by "}


@dataclass(frozen=True)
class TradeOff:
    """One label on one pair of axes.

    Attributes:
        entry: the algorithm in the scenario file; in a run the label itself.
        setting: number of its world and network; points of different ones are not compared.
        gain: the problem's aim, such as regret.
        standing: how it stands among the points of its setting in these two numbers.
        beaten_by: label of a point that is shown to beat it.
    """

    label: str
    entry: str
    parameters: tuple[Parameter, ...]
    setting: int
    cost: Estimate
    gain: Estimate
    standing: Standing
    beaten_by: str | None


def trade_offs(analysis: Analysis) -> list[tuple[Metric, Metric, list[TradeOff]]]:
    """(cost, aim, points) for each cost in which labels differ.

    None if there is one label, if nobody sends anything, or if the aim is a share, such as that of right answers.
    """
    if analysis.silent or len(analysis.labels) < 2:
        return []
    found = {measure.name: measure for measure in analysis.measures}
    aim = analysis.measures[0]
    if aim.proportion:
        return []
    return [(found[key], aim, _points(analysis, found[key], aim)) for key in COSTS if key in found and key != aim.name]


def _points(analysis: Analysis, cost: Metric, aim: Metric) -> list[TradeOff]:
    settings = _settings(analysis)
    places = [[i for i, one in enumerate(settings) if one == number] for number in dict.fromkeys(settings)]
    standing: dict[int, tuple[Standing, str | None]] = {}
    for group in places:
        members = [analysis.contenders[i] for i in group]
        points = [values((cost, aim), list(one.records.values())) for one in members]
        for index, stands in zip(group, standings(points), strict=True):
            beater = None if stands.beaten_by is None else members[stands.beaten_by].label
            standing[index] = stands, beater
    costs, gains = analysis.estimates(cost), analysis.estimates(aim)
    return [
        TradeOff(
            one.label,
            one.entry,
            () if one.variant is None else one.variant.parameters,
            settings[index],
            costs[index],
            gains[index],
            *standing[index],
        )
        for index, one in enumerate(analysis.contenders)
    ]


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


def curves(points: Sequence[TradeOff]) -> list[tuple[str | None, list[TradeOff]]]:
    """(parameter, points in the order of its values) for the points of one algorithm in one setting.

    The parameter is the number that takes the most values; a curve has the points that agree in all others. Where no
    two points agree, one curve joins those whose means no other point of the algorithm beats, by cost, and has no
    parameter.
    """
    texts: dict[str, set[str]] = {}
    for point in points:
        for one in point.parameters:
            if one.number is not None:
                texts.setdefault(one.name, set()).add(one.text)
    name = max(texts, key=lambda name: len(texts[name]), default=None)
    if name is None:
        return []
    groups: dict[tuple[str, ...], list[tuple[float, TradeOff]]] = {}
    for point in points:
        values = {one.name: one for one in point.parameters}
        if name in values and (number := values[name].number) is not None:
            rest = tuple(f"{one.name}={one.text}" for one in point.parameters if one.name != name)
            groups.setdefault(rest, []).append((number, point))
    found: list[tuple[str | None, list[TradeOff]]] = [
        (name, [point for _, point in sorted(group, key=lambda item: item[0])])
        for group in groups.values()
        if len(group) > 1
    ]
    if found:
        return found
    best = _best_means(points)
    return [(None, best)] if len(best) > 1 else []


def _best_means(points: Sequence[TradeOff]) -> list[TradeOff]:
    """The points that no other one of these beats in the means, by cost."""
    ordered = sorted(points, key=lambda point: (point.cost.mean, point.gain.mean))
    found: list[TradeOff] = []
    for point in ordered:
        if not found or point.gain.mean < found[-1].gain.mean:
            found.append(point)
    return found


def standing_table(analysis: Analysis) -> ReportTable | None:
    """How every label stands on each trade-off; None if there is none."""
    found = trade_offs(analysis)
    if not found:
        return None
    rows = []
    for index, label in enumerate(analysis.labels):
        cells = [between(found[0][2][index].gain.mean, found[0][2][index].gain.interval)]
        for _, _, points in found:
            point = points[index]
            cells += [between(point.cost.mean, point.cost.interval), in_words(point)]
        rows.append((label, *cells))
    header = [found[0][1].heading]
    for cost, _, _ in found:
        header += [cost.heading, f"verdict on {found[0][1].heading} and {cost.heading}"]
    caption = (
        "Not dominated: no other label is at least as good in both numbers and better in one. A label is "
        "dominated, or is not, where paired differences show it; each verdict holds with 95 %."
    )
    return ReportTable(caption, ("label", *header), tuple(rows))


def in_words(point: TradeOff) -> str:
    """How a point stands."""
    if point.gain.count < 2:
        return "best mean" if point.standing.best_mean else "-"
    return VERDICTS[point.standing.verdict] + (point.beaten_by or "")
