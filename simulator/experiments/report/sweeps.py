"""Figures of sweeps: how a result depends on the parameters of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from coband.simulator.experiments.report.drawing import LEGEND_COLUMNS, figure, legend_height, tick
from coband.simulator.experiments.report.palette import line_style
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.experiments.store.variants import StoredVariant, variants

COLUMNS = 3
MAX_HEAT_MAPS = 9


@dataclass(frozen=True)
class VariantMean:
    """A variant of a sweep with the mean of its results."""

    variant: StoredVariant
    estimate: Estimate

    def value(self, name: str) -> str | None:
        """Label of the value of a parameter; None if the parameter does not apply to the variant."""
        return next((one.text for one in self.variant.parameters if one.name == name), None)


class ResponseSurface:
    """A number of the results as a function of the parameters of a sweep.

    Args:
        run: a sweep; with tuning, the tuning replications are used, since they cover the whole grid.
        key: name of the number; lower is better.
    """

    def __init__(self, run: StoredRun, key: str) -> None:
        self.key = key
        self._found = variants(run)
        self._values: dict[str, list[float]] = {}
        for job in run.jobs:
            value = None if job.record is None else job.record.get(key)
            if isinstance(value, (int, float)):
                self._values.setdefault(job.label, []).append(float(value))

    @cached_property
    def cells(self) -> list[VariantMean]:
        """The variants that have finished replications."""
        phase = "tuning" if any(one.phase == "tuning" for one in self._found.values()) else "fresh"
        return [
            VariantMean(variant, statistics.estimate(self._values[label]))
            for label, variant in self._found.items()
            if variant.phase == phase and label in self._values
        ]

    @property
    def entries(self) -> list[str]:
        """The entries of ``algorithms``."""
        return list(dict.fromkeys(cell.variant.entry for cell in self.cells))

    def names(self, entry: str | None = None) -> dict[str, list[str]]:
        """Parameter -> labels of its values in their order, for parameters with several values."""
        found: dict[str, dict[str, None]] = {}
        for cell in self.cells:
            for one in cell.variant.parameters if entry in (None, cell.variant.entry) else ():
                found.setdefault(one.name, {}).setdefault(one.text)
        return {name: list(values) for name, values in found.items() if len(values) > 1}

    def best(self, entry: str, **values: str) -> Estimate | None:
        """The lowest mean among the variants with these values; None if there is no such variant."""
        means = [
            cell.estimate
            for cell in self.cells
            if cell.variant.entry == entry and all(cell.value(name) == text for name, text in values.items())
        ]
        return min(means, key=lambda estimate: estimate.mean) if means else None


def sensitivity_figure(surface: ResponseSurface, title: str) -> Figure:
    """The mean against each parameter with the other parameters at their best; one curve per algorithm."""
    names, entries = surface.names(), surface.entries
    lines = -(-len(names) // COLUMNS)
    drawn = figure(2.6 * lines + legend_height(len(entries)))
    for number, (name, values) in enumerate(names.items()):
        axis = drawn.add_subplot(lines, min(COLUMNS, len(names)), number + 1)
        for order, entry in enumerate(entries):
            points = [
                (place, found) for place, text in enumerate(values) if (found := surface.best(entry, **{name: text}))
            ]
            if points:
                style = line_style(order)
                axis.errorbar(
                    [place for place, _ in points],
                    [found.mean for _, found in points],
                    yerr=[found.half_width or 0.0 for _, found in points],
                    color=style.colour,
                    marker=style.marker,
                    linestyle=style.dash,
                    markersize=4,
                    capsize=2,
                )
        axis.set_xticks(range(len(values)), values)
        axis.set_title(f"{title} against {name}")
        axis.set_xlabel(name)
        axis.yaxis.set_major_formatter(FuncFormatter(tick))
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        axis.grid(visible=True)
    handles = [
        drawn.axes[0].plot(
            [],
            [],
            color=line_style(order).colour,
            marker=line_style(order).marker,
            markersize=5,
            linestyle=line_style(order).dash,
            label=entry,
        )[0]
        for order, entry in enumerate(entries)
    ]
    drawn.legend(handles=handles, loc="outside upper left", ncols=min(LEGEND_COLUMNS, len(entries)), handlelength=2.6)
    return drawn


@dataclass(frozen=True)
class HeatMap:
    """The content of a heat map: an algorithm and two parameters with their values."""

    entry: str
    across: tuple[str, Sequence[str]]
    down: tuple[str, Sequence[str]]


def heat_maps(surface: ResponseSurface) -> list[HeatMap]:
    """The heat maps of all pairs of parameters of each algorithm, at most :data:`MAX_HEAT_MAPS`."""
    found = []
    for entry in surface.entries:
        names = list(surface.names(entry).items())
        found += [HeatMap(entry, second, first) for i, first in enumerate(names) for second in names[i + 1 :]]
    return found[:MAX_HEAT_MAPS]


def heat_figure(surface: ResponseSurface, title: str) -> Figure:
    """Heat maps of the mean over each pair of parameters, with the others at their best; dark is low."""
    shown = heat_maps(surface)
    lines = -(-len(shown) // COLUMNS)
    drawn = figure(2.8 * lines)
    for number, one in enumerate(shown):
        axis = drawn.add_subplot(lines, min(COLUMNS, len(shown)), number + 1)
        (across, columns), (down, rows) = one.across, one.down
        means = np.array([[_mean(surface.best(one.entry, **{across: x, down: y})) for x in columns] for y in rows])
        axis.imshow(means, cmap="cividis", aspect="auto")
        middle = 0.5 * (np.nanmin(means) + np.nanmax(means))
        for (row, column), mean in np.ndenumerate(means):
            if not np.isnan(mean):
                colour = "#ffffff" if mean < middle else "#1c1c1e"
                axis.text(column, row, tick(mean), ha="center", va="center", color=colour, fontsize=8)
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(across)
        axis.set_ylabel(down)
        axis.set_title(f"{one.entry}: {title}")
    return drawn


def _mean(found: Estimate | None) -> float:
    return float("nan") if found is None else found.mean
