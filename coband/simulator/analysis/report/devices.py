"""Figures about devices: turns, links and availability in the first replication; what became of slow, absent and
exhausted ones; and the age of information, which says what decisions did not know of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from coband.simulator.analysis.devices import Devices, devices_of
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.report.drawing import add_legend, balanced, few_ticks, figure, legend_height, plain
from coband.simulator.analysis.report.figures import BAND, MAX_BANDS
from coband.simulator.analysis.report.multiples import foremost_contenders
from coband.simulator.analysis.report.palette import SERIES, LineStyle
from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.arrays import BoolArray, FloatArray, IntArray
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.store.store import StoredJob

PARTS = 60
"""Parts of a run, of equally many turns, over whose decisions ages are averaged."""
PANELS = (("age", "pulls that a decision did not know of"), ("age_time", "time since the newest message learnt from"))


@dataclass(frozen=True, eq=False)
class AgeCurve:
    """Mean ages of one label.

    Attributes:
        turns: middle of each part of the run, (parts,).
        ages: by name of the panel: one row per replication, (replications, parts); NaN where no decision has an age.
    """

    turns: FloatArray
    ages: dict[str, FloatArray]

    def known(self, name: str) -> BoolArray:
        """The parts in which all replications have ages of this name, (parts,)."""
        found: BoolArray = np.isfinite(self.ages[name].sum(axis=0))
        return found


def age_figure(analysis: Analysis) -> Figure | None:
    """Curves of both ages with 95 % bands, of many labels the best of each algorithm; None if no model has an age."""
    shown = foremost_contenders(analysis)
    found = [age_curve(contender) for contender, _ in shown]
    if not any(found):
        return None
    labels, styles = [one.label for one, _ in shown], [style for _, style in shown]
    drawn = figure(2.9 + legend_height(labels))
    panels = [
        (name, title) for name, title in PANELS if any(one is not None and one.known(name).any() for one in found)
    ]
    for column, (name, title) in enumerate(panels, start=1):
        axis = drawn.add_subplot(1, len(panels), column)
        for number, curve in enumerate(found):
            if curve is not None:
                place = (number + 1) / len(labels)
                _draw(axis, curve, name, styles[number], place, banded=len(labels) <= MAX_BANDS)
        axis.set_ylim(bottom=0.0)
        plain(axis, title, "turns")
    looks = [(label, style) for label, style, curve in zip(labels, styles, found, strict=True) if curve is not None]
    add_legend(drawn, [Line2D([], [], label=label, markersize=5, **style.look) for label, style in looks])
    return drawn


def _draw(axis: Axes, curve: AgeCurve, name: str, style: LineStyle, place: float, *, banded: bool) -> None:
    """One curve, with its first marker at a place, of the parts in which all replications have ages."""
    complete = curve.known(name)
    if not complete.any():
        return
    x, values = curve.turns[complete], curve.ages[name][:, complete]
    bands = estimates.bands(values) if banded else None
    if bands is not None:
        axis.fill_between(x, *bands, color=style.colour, alpha=BAND, linewidth=0)
    axis.plot(x, values.mean(axis=0), markevery=(0.06 * place, 0.14), markersize=5, **style.look)


def age_curve(contender: Contender) -> AgeCurve | None:
    """The mean ages of a label; None if it has none."""
    stored = [rows for job in contender.jobs if len(rows := _stored(job))]
    if not stored:
        return None
    end = min(float(rows[-1, 0]) for rows in stored)
    edges = np.linspace(0.0, end, min(PARTS, min(map(len, stored))) + 1)
    ages = {
        name: np.array([_means(rows[:, 0], rows[:, column], edges) for rows in stored])
        for column, (name, _) in enumerate(PANELS, start=1)
    }
    return AgeCurve(0.5 * (edges[:-1] + edges[1:]), ages)


def _stored(job: StoredJob) -> FloatArray:
    """(turn, age, age in time) of the points of a job, (points, 3); none in stores made before there were ages."""
    if not job.part.execute("SELECT 1 FROM sqlite_master WHERE name = 'ages'").fetchone():
        return np.empty((0, 3))
    rows: Sequence[tuple[object, ...]] = job.part.execute(
        "SELECT turn, age, age_time FROM ages WHERE job = ? ORDER BY turn", (job.id,)
    ).fetchall()
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _means(turns: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """The mean of the values within each part, (parts,); NaN where there is none."""
    there = ~np.isnan(values) & (turns <= edges[-1])
    place = np.searchsorted(edges[1:], turns[there], side="left")
    counts = np.bincount(place, minlength=len(edges) - 1)
    sums = np.bincount(place, weights=values[there], minlength=len(edges) - 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


FIFTHS = 5


@dataclass(frozen=True, eq=False)
class Fate:
    """What became of the agents of one label, in the first replication.

    Attributes:
        regret: of each agent per turn; nan without a turn.
        energy: joules that each has taken; None without batteries.
        ran_out: when each first ran out of energy; nan for never.
        end: when the run ended.
    """

    label: str
    style: LineStyle
    regret: FloatArray
    energy: FloatArray | None
    ran_out: FloatArray
    end: float


def found_in(analysis: Analysis) -> tuple[Devices | None, list[Fate]]:
    """The devices of the first replication, and what became of them; of neither anything without batteries."""
    scenario = analysis.comparison.scenario_of(analysis.contenders[0])
    devices, powered = devices_of(scenario), (scenario.get("agents") or {}).get("energy") is not None
    return devices, _fates(analysis) if devices is not None or powered else []


def _fates(analysis: Analysis) -> list[Fate]:
    """Those of all labels, of many the best of each algorithm, that have finished the first replication."""
    found = []
    for one, style in foremost_contenders(analysis):
        record = one.records.get(0)
        if record is None:
            continue
        agents = one.run.by_agent(one.own, 0)
        regret, turns, energy, ran_out = (
            np.array([np.nan if agent.get(name) is None else agent[name] for agent in agents], dtype=np.float64)
            for name in ("regret", "turns", "energy", "ran_out")
        )
        regret = regret / np.where(turns > 0, turns, np.nan)
        taken = None if np.isnan(energy).any() else energy
        found.append(Fate(one.label, style, regret, taken, ran_out, float(record["simulated_time"])))
    return found


def fifths(values: FloatArray) -> IntArray | None:
    """The fifth (0 to 4, from the smallest) of each device that says; -1 for others; None where all are alike."""
    known = np.flatnonzero(~np.isnan(values))
    if len(np.unique(values[known])) < FIFTHS:
        return None
    found = np.full(len(values), -1)
    found[known[np.argsort(values[known], kind="stable")]] = np.arange(len(known)) * FIFTHS // len(known)
    return found


def groupings(devices: Devices | None) -> dict[str, IntArray]:
    """The fifths of devices by the time of their turns, and by the share of time for which they are up."""
    if devices is None:
        return {}
    given = {"slow": devices.numbers.get("compute"), "there": devices.shares}
    found = {name: fifths(values) for name, values in given.items() if values is not None}
    return {name: groups for name, groups in found.items() if groups is not None}


def by_fifth(fate: Fate, groups: IntArray) -> FloatArray:
    """Mean regret per turn of the agents in each fifth."""
    means = [fate.regret[(groups == fifth) & ~np.isnan(fate.regret)] for fifth in range(FIFTHS)]
    return np.array([values.mean() if len(values) else np.nan for values in means])


def fates_table(analysis: Analysis) -> ReportTable | None:
    """The same numbers: a row per label; None without devices and batteries."""
    devices, fates = found_in(analysis)
    groups, columns = groupings(devices), dict[str, list[str]]()
    ends = {"slow": ("fastest", "slowest"), "there": ("seldom up", "mostly up")}
    for name, of in groups.items():
        for title, place in zip(ends[name], (0, -1), strict=True):
            columns[title] = [f"{by_fifth(fate, of)[place]:.3g}" for fate in fates]
    if any(fate.energy is not None for fate in fates):
        means = [None if fate.energy is None else fate.energy.mean() for fate in fates]
        columns["energy of an agent (joules)"] = [
            "" if mean is None else f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}" for mean in means
        ]
        columns["ran out"] = [f"{int((~np.isnan(fate.ran_out)).sum()):,}" for fate in fates]
    if not (fates and columns):
        return None
    rows = tuple((fate.label, *(column[place] for column in columns.values())) for place, fate in enumerate(fates))
    caption = (
        "Regret per turn of a fifth of the devices each, energy of an agent, and how many ran out; first replication."
    )
    return ReportTable(caption, ("label", *columns), rows)


TITLES = {
    "compute": "time of a turn",
    "speed": "speed",
    "latency": "latency",
    "battery": "battery at first",
    "capacity": "joules of a battery",
    "links": "bits per time unit",
}
MOST = 5
"""Panels of devices side by side."""
Panel = Callable[[Axes], None]
"""What draws into one pair of axes."""
ACROSS = {
    "slow": ("regret and speed", "devices, fast to slow, in fifths"),
    "there": ("regret and availability", "devices, seldom to mostly up, in fifths"),
}


def population_figure(analysis: Analysis) -> Figure | None:
    """Shares of devices below each value, and the share that is up by hour of the day; below them regret by fifths of
    devices, and who has run out of energy; None without devices and batteries."""
    devices, fates = found_in(analysis)
    return draw(devices, fates) if devices is not None or _powered(fates) else None


def _powered(fates: Sequence[Fate]) -> bool:
    return any(fate.energy is not None for fate in fates)


def draw(devices: Devices | None, fates: Sequence[Fate] = ()) -> Figure:
    """The figure of devices: a row of panels for them, and one for what became of them."""
    above, below = _of_devices(devices), _of_fates(devices, fates)
    across = balanced(len(above), MOST)
    rows = [
        *(above[start : start + across] for start in range(0, len(above), across or 1)),
        *([below] if below else []),
    ]
    looks = [(fate.label, fate.style) for fate in fates] if below else []
    drawn = figure(2.9 * len(rows) + (legend_height([label for label, _ in looks]) if looks else 0.0))
    for part, panels in zip(drawn.subfigures(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        for axis, panel in zip(part.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            panel(axis)
    add_legend(drawn, [Line2D([], [], label=label, markersize=5, **style.look) for label, style in looks])
    return drawn


def _of_devices(devices: Devices | None) -> list[Panel]:
    if devices is None:
        return []
    numbers = dict(devices.numbers)
    links: dict[str, FloatArray] = {name: numbers.pop(name) for name in ("uplink", "downlink") if name in numbers}
    columns = {name: {name: values} for name, values in numbers.items()} | ({"links": links} if links else {})
    panels: list[Panel] = [partial(_distribution, title=TITLES[name], columns=of) for name, of in columns.items()]
    return panels if devices.hours is None else [*panels, partial(_by_hour, hours=devices.hours)]


def _of_fates(devices: Devices | None, fates: Sequence[Fate]) -> list[Panel]:
    groups = groupings(devices) if fates else {}
    panels: list[Panel] = [partial(_by_fifths, name=name, groups=of, fates=fates) for name, of in groups.items()]
    return [*panels, partial(_run_out, fates=fates)] if _powered(fates) else panels


def _by_fifths(axis: Axes, name: str, groups: IntArray, fates: Sequence[Fate]) -> None:
    for fate in fates:
        axis.plot(range(1, FIFTHS + 1), by_fifth(fate, groups), markersize=4, **fate.style.look)
    low, high = axis.get_ylim()
    axis.set_ylim(min(0.0, low), high + 0.05 * (high - min(0.0, low)))  # room for markers
    axis.set_xticks(range(1, FIFTHS + 1))
    plain(axis, *ACROSS[name], "regret per turn")


def _run_out(axis: Axes, fates: Sequence[Fate]) -> None:
    for fate in fates:
        times = np.sort(fate.ran_out[~np.isnan(fate.ran_out)])
        steps = np.concatenate([[0.0], times, [fate.end]])
        shares = np.concatenate([np.arange(len(times) + 1), [len(times)]]) / len(fate.ran_out)
        axis.step(steps, shares, where="post", color=fate.style.colour, linestyle=fate.style.dash)
    axis.set_ylim(bottom=0.0)
    few_ticks(axis)
    plain(axis, "share that has run out of energy", "simulated time")


def _distribution(axis: Axes, title: str, columns: dict[str, FloatArray]) -> None:
    for colour, values in zip(SERIES, columns.values(), strict=False):
        known = np.sort(values[~np.isnan(values)])
        shares = np.arange(1, len(known) + 1) / max(len(known), 1)
        axis.step(known, shares, where="post", color=colour)
    if len(columns) > 1:
        axis.legend(axis.lines, list(columns), fontsize=8)
    log = title != TITLES["battery"]
    axis.set_xscale("log" if log else "linear")
    axis.set_ylim(0.0, 1.0)
    plain(axis, title, "log scale" if log else "share of its capacity", "share of devices below")
    axis.xaxis.set_minor_formatter(NullFormatter())


def _by_hour(axis: Axes, hours: FloatArray) -> None:
    if np.isnan(hours).all():
        axis.text(0.5, 0.5, "no device says\nwhen it is up", transform=axis.transAxes, ha="center", va="center")
    else:
        axis.stairs(hours, np.arange(len(hours) + 1), color=SERIES[0], linewidth=1.6)
    axis.set_ylim(bottom=0.0)
    axis.set_xticks(range(0, len(hours) + 1, 6))
    plain(axis, "availability", "hour of the day", "share of devices that are up")
