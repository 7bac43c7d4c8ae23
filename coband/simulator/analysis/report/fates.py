"""What became of devices: regret of slow ones, of those that are seldom there, and who ran out of energy when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coband.simulator.analysis.devices import Devices, devices_of
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.multiples import foremost_contenders
from coband.simulator.analysis.report.palette import LineStyle
from coband.simulator.analysis.report.tables import ReportTable
from coband.simulator.arrays import FloatArray, IntArray

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
