"""The figure of a population: turns, links and availability of the devices of the first replication, and what became of
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from coband.simulator.analysis.devices import Devices
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.drawing import add_legend, balanced, few_ticks, figure, legend_height, plain
from coband.simulator.analysis.report.fates import FIFTHS, Fate, by_fifth, found_in, groupings
from coband.simulator.analysis.report.palette import SERIES
from coband.simulator.arrays import FloatArray, IntArray

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
