"""The figure of a population: turns, links and availability of the devices of the first replication."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from coband.simulator.analysis.devices import Devices, devices_of
from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, plain
from coband.simulator.analysis.report.figures import LOG
from coband.simulator.analysis.report.palette import SERIES
from coband.simulator.arrays import FloatArray

TITLES = {"compute": "time of a turn", "speed": "speed", "latency": "latency", "links": "bits per time unit"}


def population_figure(analysis: Analysis) -> Figure | None:
    """Shares of devices below each value, and the share that is up by hour of the day; None without devices."""
    devices = devices_of(analysis.comparison.scenario_of(analysis.contenders[0]))
    return None if devices is None else draw(devices)


def draw(devices: Devices) -> Figure:
    """The figure of devices."""
    numbers = dict(devices.numbers)
    links: dict[str, FloatArray] = {name: numbers.pop(name) for name in ("uplink", "downlink") if name in numbers}
    panels = {name: {name: values} for name, values in numbers.items()} | ({"links": links} if links else {})
    count = len(panels) + (devices.hours is not None)
    looks: dict[str, str] = {name: SERIES[place] for place, name in enumerate(links)}
    drawn = figure(2.9 + (legend_height(list(looks)) if looks else 0.0))
    for place, (name, columns) in enumerate(panels.items()):
        _distribution(drawn.add_subplot(1, count, place + 1), TITLES[name], columns, looks)
    if devices.hours is not None:
        _by_hour(drawn.add_subplot(1, count, count), devices.hours)
    add_legend(drawn, [Line2D([], [], label=name, color=colour) for name, colour in looks.items()])
    return drawn


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
