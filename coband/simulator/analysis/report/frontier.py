"""The trade-off of a report: regret against what it costs, a point per label with intervals in both directions, curves
of parameters, and which points are not dominated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, SymmetricalLogLocator

from coband.simulator.analysis.frontier.objectives import values
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import SETTING, WORLD, differing
from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, plain
from coband.simulator.analysis.report.figures import LOG, UNITS
from coband.simulator.analysis.report.palette import FADED, INK, MUTED, PAPER, LineStyle, mixed
from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.experiments.runs.planner import Parameter
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
        points = values((cost, aim), dict(zip(group, members, strict=True)), analysis.comparison.stops_itself)
        standing.update(dict.fromkeys(group, (Standing("beaten", None, False), None)))  # those that have waited
        ready = [index for index in group if points[index]]
        for index, stands in zip(ready, standings([points[one] for one in ready]), strict=True):
            beater = None if stands.beaten_by is None else analysis.contenders[ready[stands.beaten_by]].label
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


MOST_NAMED = 16
"""With more points the values of their parameters are not written beside them."""
SIGNS = {"frontier": "not dominated", "undecided": "not distinguishable", "beaten": "dominated"}
Panel = tuple[Metric, Metric, Sequence[TradeOff]]
Styles = Mapping[str, LineStyle]
"""Algorithm -> the style of its points."""


def trade_off_figure(panels: Sequence[Panel], styles: Styles) -> Figure:
    """A panel for each cost, in which lower left is better; full points are those that are not dominated.

    Args:
        panels: (cost, aim, points).
        styles: those of the algorithms.
    """
    entries = handles(panels, styles)
    drawn = figure(3.2 + legend_height([str(one.get_label()) for one in entries]))
    for number, panel in enumerate(panels):
        draw(drawn.add_subplot(1, len(panels), number + 1), panel, styles)
    add_legend(drawn, entries)
    return drawn


def handles(panels: Sequence[Panel], styles: Styles) -> list[Line2D]:
    """The entries of a legend: the algorithms, and the signs of the Pareto front."""
    points = panels[0][2]
    signs = [sign for sign in SIGNS if any(_sign(point) == sign for _, _, found in panels for point in found)]
    found = [_handle(style, _title(entry, points)) for entry, style in styles.items()]
    return found + [_handle(LineStyle(INK, "o", "-"), SIGNS[sign], sign) for sign in signs]


def draw(axis: Axes, panel: Panel, styles: Styles) -> None:
    """Draw one panel into a pair of axes, with titles and ticks."""
    cost, aim, points = panel
    _draw(axis, points, styles)
    _scale(axis, points, cost, aim)


def _title(entry: str, points: Sequence[TradeOff]) -> str:
    """The algorithm, and whose values are written beside its points."""
    names = {name for name, _ in curves([point for point in points if point.entry == entry]) if name is not None}
    return f"{entry} (by {names.pop()})" if names else entry


def _sign(point: TradeOff) -> str:
    """How the point is drawn; of one replication only the means are known."""
    if point.gain.count < 2:
        return "frontier" if point.standing.best_mean else "beaten"
    return point.standing.verdict


def _filling(style: LineStyle, sign: str) -> dict[str, object]:
    """Full for what is not dominated, pale for what is not known, empty for what is dominated."""
    face = {"frontier": style.colour, "undecided": mixed(style.colour, PAPER, FADED), "beaten": PAPER}[sign]
    return {"color": style.colour, "marker": style.marker, "markerfacecolor": face, "markersize": 7}


def _handle(style: LineStyle, label: str, sign: str = "frontier") -> Line2D:
    return Line2D([], [], linestyle="none", label=label, **_filling(style, sign))  # type: ignore[arg-type]


def _draw(axis: Axes, points: Sequence[TradeOff], styles: Styles) -> None:
    settings = list(dict.fromkeys(point.setting for point in points))
    if len(settings) == 1:
        _draw_staircase(axis, points)
    for entry, style in styles.items():
        for setting in settings:
            mine = [point for point in points if point.entry == entry and point.setting == setting]
            _draw_curves(axis, mine, style, named=len(points) <= MOST_NAMED)
    for point in points:
        style = styles[point.entry]
        for across, found in ((True, point.cost), (False, point.gain)):
            low, high = found.interval or (found.mean, found.mean)
            ends = ([max(low, 0.0), high], [point.gain.mean] * 2) if across else ([point.cost.mean] * 2, [low, high])
            axis.plot(*ends, color=style.colour, linewidth=1.4, solid_capstyle="butt")
        filling = _filling(style, _sign(point))
        axis.plot(point.cost.mean, point.gain.mean, linestyle="none", clip_on=False, zorder=3, **filling)  # type: ignore[arg-type]


def _draw_staircase(axis: Axes, points: Sequence[TradeOff]) -> None:
    """What can be reached: the border of the points that the best means beat."""
    best = sorted((p for p in points if p.standing.best_mean), key=lambda p: (p.cost.mean, -p.gain.mean))
    if len(best) > 1:
        across, up = [p.cost.mean for p in best], [p.gain.mean for p in best]
        axis.plot(across, up, drawstyle="steps-post", color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)


def _draw_curves(axis: Axes, points: Sequence[TradeOff], style: LineStyle, named: bool) -> None:
    for name, found in curves(points):
        across, up = [p.cost.mean for p in found], [p.gain.mean for p in found]
        axis.plot(across, up, color=style.colour, linewidth=1.0, alpha=0.7, zorder=2)
        for point in found if named and name is not None else ():
            text = next(one.text for one in point.parameters if one.name == name)
            where = (point.cost.mean, point.gain.mean)
            axis.annotate(text, where, xytext=(5, 4), textcoords="offset points", fontsize=7, color=INK)


def _scale(axis: Axes, points: Sequence[TradeOff], cost: Metric, aim: Metric) -> None:
    """Scales, ticks and titles; a cost of 0 has a place on a logarithmic axis, too."""
    across = {"scalars": UNITS["scalars"], "simulated_time": UNITS["times"]}.get(cost.name, cost.heading)
    paid = [point.cost.mean for point in points if point.cost.mean > 0]
    free = len(paid) < len(points)
    if paid and (max(paid) > 10 * min(paid) or free):
        near = 10.0 ** np.floor(np.log10(min(paid)))
        axis.set_xscale("symlog", linthresh=near, linscale=0.3)
        if max(paid) < 100 * min(paid):  # powers of ten alone would be one or two
            axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=near, subs=[1.0, 2.0, 5.0]))
        axis.xaxis.set_minor_formatter(NullFormatter())
        across += " (log scale, linear near 0)" if free else LOG
    axis.set_xlim(left=0.0 if free else None)
    if aim.better == "lower":
        axis.set_ylim(bottom=min(0.0, *(point.gain.mean for point in points)))
    up = "cumulative regret" if aim.name == "regret" else aim.heading
    plain(axis, f"{aim.heading} against {cost.heading}, at the end", across, up)
