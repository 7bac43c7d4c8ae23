"""The figure of a population: turns, links and availability of the devices of the first replication, and what became of
them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from coband.simulator.analysis.devices import Devices
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.drawing import add_legend, few_ticks, figure, legend_height, plain
from coband.simulator.analysis.report.fates import FIFTHS, Fate, by_fifth, found_in, groupings
from coband.simulator.analysis.report.figures import LOG
from coband.simulator.analysis.report.palette import SERIES
from coband.simulator.arrays import FloatArray, IntArray

TITLES = {"compute": "time of a turn", "speed": "speed", "latency": "latency", "links": "bits per time unit"}
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
    """The figure of devices."""
    groups = groupings(devices) if fates else {}
    below = len(groups) + _powered(fates)
    rows = (devices is not None) + bool(below)
    looks = [(fate.label, fate.style) for fate in fates] if below else []
    drawn = figure(2.9 * rows + (legend_height([label for label, _ in looks]) if looks else 0.0))
    if devices is not None:
        _draw_devices(drawn, devices, rows)
    for place, (name, of) in enumerate(groups.items()):
        _by_fifths(drawn.add_subplot(rows, below, (rows - 1) * below + place + 1), name, of, fates)
    if _powered(fates):
        _run_out(drawn.add_subplot(rows, below, rows * below), fates)
    add_legend(drawn, [Line2D([], [], label=label, markersize=5, **style.look) for label, style in looks])
    return drawn


def _draw_devices(drawn: Figure, devices: Devices, rows: int) -> None:
    numbers = dict(devices.numbers)
    links: dict[str, FloatArray] = {name: numbers.pop(name) for name in ("uplink", "downlink") if name in numbers}
    panels = {name: {name: values} for name, values in numbers.items()} | ({"links": links} if links else {})
    count = len(panels) + (devices.hours is not None)
    looks: dict[str, str] = {name: SERIES[place] for place, name in enumerate(links)}
    for place, (name, columns) in enumerate(panels.items()):
        axis = drawn.add_subplot(rows, count, place + 1)
        _distribution(axis, TITLES[name], columns, looks)
        if len(columns) > 1:
            axis.legend([Line2D([], [], color=looks[name]) for name in columns], list(columns), fontsize=8)
    if devices.hours is not None:
        _by_hour(drawn.add_subplot(rows, count, count), devices.hours)


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


def _distribution(axis: Axes, title: str, columns: dict[str, FloatArray], looks: dict[str, str]) -> None:
    for name, values in columns.items():
        known = np.sort(values[~np.isnan(values)])
        shares = np.arange(1, len(known) + 1) / max(len(known), 1)
        axis.step(known, shares, where="post", color=looks.get(name, SERIES[0]))
    axis.set_xscale("log")
    axis.set_ylim(0.0, 1.0)
    plain(axis, title, title + LOG, "share of devices below")
    axis.xaxis.set_minor_formatter(NullFormatter())


def _by_hour(axis: Axes, hours: FloatArray) -> None:
    axis.stairs(hours, np.arange(len(hours) + 1), color=SERIES[0], linewidth=1.6)
    axis.set_ylim(bottom=0.0)
    axis.set_xticks(range(0, len(hours) + 1, 6))
    plain(axis, "availability", "hour of the day", "share of devices that are up")
