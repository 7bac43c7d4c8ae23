"""The devices of stored runs, drawn once more from the population of their scenario, and the panels about them: what
devices are like, what became of slow, absent and exhausted ones, and regret against energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import REGRET, Contender, name_of
from coband.simulator.analysis.report import draw
from coband.simulator.analysis.report.frames import curves, places, wide
from coband.simulator.analysis.report.palette import SERIES
from coband.simulator.analysis.report.panel import Panel
from coband.simulator.analysis.report.style import Styles
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.populations.kinds import POPULATIONS
from coband.simulator.core.populations.populations import BasePopulation
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.plugins.kinds import adapter

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Devices:
    """Those of the first replication.

    Attributes:
        numbers: by what they set (`core.populations.table.NUMBERS`), shape (agents,); nan where a device does not say.
        hours: share of devices that are up, by hour of the day; None where none says.
        shares: share of time for which each is up; likewise.
    """

    numbers: Mapping[str, FloatArray]
    hours: FloatArray | None
    shares: FloatArray | None = None


def devices_of(scenario: Mapping[str, Any]) -> Devices | None:
    """The devices of a resolved scenario.

    None without a population, and where it cannot be drawn any more: its files are gone, or its kind is not installed.
    """
    agents = scenario.get("agents") or {}
    section = agents.get("population")
    kind = None if section is None else POPULATIONS.get(section.get("kind"))
    if kind is None:
        return None
    try:
        population: BasePopulation = adapter(kind).validate_python(section)
    except (ValueError, OSError):
        return None
    streams = Streams(int(scenario.get("seed", 0)), 0)
    drawn = population.draw(int(agents["count"]), streams("faults", 0, "population")).only(population.sets)
    if drawn.windows is None:
        return Devices(drawn.numbers, None)
    return Devices(drawn.numbers, drawn.by_hour(population.day), drawn.shares)


FIFTHS = 5
TITLES = {
    "compute": "time of a turn",
    "speed": "speed",
    "latency": "latency",
    "uplink": "bits per time unit",
    "downlink": "bits per time unit",
    "battery": "battery at first",
    "capacity": "joules of a battery",
}
DEVICES_UP = "devices, seldom to mostly up, in fifths"
ACROSS = {"speed": "devices, fast to slow, in fifths", "availability": DEVICES_UP}


def _populations(analysis: Analysis) -> list[tuple[str, Devices, list[Contender]]]:
    """The devices, with the labels that ran on them; the name of their run comes first where runs have other ones."""
    members: dict[str, list[Contender]] = {}
    for one in analysis.contenders:
        scenario = analysis.comparison.scenario_of(one)
        members.setdefault(repr((scenario.get("seed"), scenario.get("agents"))), []).append(one)
    drawn = [(devices_of(analysis.comparison.scenario_of(own[0])), own) for own in members.values()]
    several = len(drawn) > 1
    return [(name_of(own[0].run) if several else "", devices, own) for devices, own in drawn if devices is not None]


def _devices(analysis: Analysis) -> pd.DataFrame:
    """A row per number and device of the first replication."""
    return pd.DataFrame(
        {"number": TITLES[name], "part": f"{name} ({run})" if run else name, "value": value}
        for run, devices, _ in _populations(analysis)
        for name, values in devices.numbers.items()
        for value in np.sort(values[~np.isnan(values)]).tolist()
    )


def _draw_devices(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """The share of devices below each value."""
    for part, own in frame.groupby("part", sort=False):
        shares = np.arange(1, len(own) + 1) / len(own)
        axis.step(own["value"], shares, where="post", color=styles.filling(str(part))["facecolor"], label=part)
    number = frame["number"].iloc[0]
    axis.set_xscale("linear" if number == TITLES["battery"] else "log")
    axis.set(xlabel=number, ylabel="share of devices below", ylim=(0.0, 1.0))


def _availability(analysis: Analysis) -> pd.DataFrame:
    found = [
        pd.DataFrame({**({"run": run} if run else {}), "hour": range(len(devices.hours)), "mean": devices.hours})
        for run, devices, _ in _populations(analysis)
        if devices.hours is not None and not np.isnan(devices.hours).all()
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _draw_availability(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    axis.stairs(frame["mean"], np.arange(len(frame) + 1), color=SERIES[0], linewidth=1.6)
    axis.set(xlabel="hour of the day", ylabel="share of devices that are up", ylim=(0.0, None))


def fifths(values: FloatArray) -> IntArray | None:
    """The fifth (0 to 4, from the smallest) of each device that says; -1 for others; None where all are alike."""
    known = np.flatnonzero(~np.isnan(values))
    if len(np.unique(values[known])) < FIFTHS:
        return None
    found = np.full(len(values), -1)
    found[known[np.argsort(values[known], kind="stable")]] = np.arange(len(known)) * FIFTHS // len(known)
    return found


def groupings(devices: Devices) -> dict[str, IntArray]:
    """The fifths of devices by the time of their turns, and by the share of time for which they are up."""
    given = {"speed": devices.numbers.get("compute"), "availability": devices.shares}
    found = {name: fifths(values) for name, values in given.items() if values is not None}
    return {name: groups for name, groups in found.items() if groups is not None}


def _agents(one: Contender, *names: str) -> list[FloatArray]:
    """Numbers of the agents of the first replication."""
    agents = one.run.by_agent(one.own, 0)
    return [np.array([np.nan if each.get(name) is None else each[name] for each in agents], float) for name in names]


def _fates(analysis: Analysis) -> pd.DataFrame:
    """Mean regret per turn of each fifth of the devices, in the first replication."""
    rows = []
    grouped = [(group, own) for _, devices, own in _populations(analysis) for group in groupings(devices).items()]
    for (by, groups), own in grouped:
        for one in (one for one in own if 0 in one.records):
            regret, turns = _agents(one, "regret", "turns")
            regret = regret / np.where(turns > 0, turns, np.nan)
            for fifth in range(FIFTHS):
                known = regret[(groups == fifth) & ~np.isnan(regret)]
                mean = float(known.mean()) if len(known) else np.nan
                rows.append({"by": by, "label": one.label, "fifth": fifth + 1, "mean": mean})
    return pd.DataFrame(rows)


def _draw_fates(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    bold = styles.bold(frame["label"])
    for label, own in frame[frame["label"].isin(bold)].groupby("label", sort=False):
        axis.plot(own["fifth"], own["mean"], markersize=4, label=label, **styles[str(label)])
    axis.set_xticks(range(1, FIFTHS + 1))
    axis.set(xlabel=ACROSS[frame["by"].iloc[0]], ylabel="regret per turn")
    axis.set_ylim(min(0.0, axis.get_ylim()[0]), 1.05 * axis.get_ylim()[1])


def _run_out(analysis: Analysis) -> pd.DataFrame:
    """The share of agents that have run out of energy, after each that has, in the first replication."""
    rows = []
    for one in (one for one in analysis.contenders if 0 in one.records):
        energy, ran_out = _agents(one, "energy", "ran_out")
        times = np.sort(ran_out[~np.isnan(ran_out)]).tolist()
        steps = [0.0, *times, float(one.records[0]["simulated_time"])]
        for number, time in enumerate(steps if not np.isnan(energy).any() and times else ()):
            rows.append({"label": one.label, "at": time, "mean": min(number, len(times)) / len(ran_out)})
    return pd.DataFrame(rows)


def _draw_run_out(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    for label, own in frame.groupby("label", sort=False):
        look = {name: styles[str(label)][name] for name in ("color", "linestyle")}
        axis.step(own["at"], own["mean"], where="post", label=label, **look)
    axis.set(xlabel="simulated time", ylabel="share that has run out", ylim=(0.0, None))


def _energy(analysis: Analysis) -> pd.DataFrame:
    powered = all(one.energy is not None for each in analysis.contenders for one in each.series)
    return curves(analysis, "energy") if powered and analysis.comparison.aim == REGRET else pd.DataFrame()


ENERGY = Panel(
    "energy",
    "Regret against energy",
    "Means over replications against the joules that turns and messages have taken so far; idling is left out.",
    _energy,
    draw.curves,
    table=places,
    after="regret",
)
DEVICES = Panel(
    "devices",
    "Devices",
    "What the devices of the first replication are like: the share of them below each number.",
    _devices,
    _draw_devices,
    each="number",
    table=lambda frame: (
        frame.groupby([one for one in ("environment", "number", "part") if one in frame], sort=False)["value"]
        .agg(["count", "min", "median", "max"])
        .reset_index()
    ),
    after="times",
)
AVAILABILITY = Panel(
    "availability",
    "Availability of devices",
    "The share of devices of the first replication that are up, by hour of the day.",
    _availability,
    _draw_availability,
    each="run",
    after="devices",
)
FATES = Panel(
    "fates",
    "Regret of slow and of absent devices",
    "Regret per turn of a fifth of the devices each, in the first replication.",
    _fates,
    _draw_fates,
    each="by",
    table=wide("fifth", "by", "label"),
    after="availability",
)
RAN_OUT = Panel(
    "ran_out",
    "Devices that ran out of energy",
    "The share of agents that have run out of energy at least once, in the first replication.",
    _run_out,
    _draw_run_out,
    table=lambda frame: frame.drop_duplicates([one for one in ("environment", "label") if one in frame], keep="last"),
    after="fates",
)
