"""Figures of sweeps: how a result depends on what one chooses, in each environment, and on the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from coband.simulator.analysis.report.analysis import combinations, named
from coband.simulator.analysis.report.drawing import (
    NARROW,
    TITLES,
    add_legend,
    balanced,
    columns_for,
    figure,
    legend_height,
    plain,
    tick,
    wrapped,
)
from coband.simulator.analysis.report.figures import same_height
from coband.simulator.analysis.report.multiples import COLUMNS, MAX_ENVIRONMENTS
from coband.simulator.analysis.report.palette import LineStyle, line_style
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.statistics.estimates import Estimate
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.experiments.store.variants import StoredVariant, variants

CHARACTERS = 120
"""Number of characters of the names at all axes of a line of panels."""
MAX_HEAT_MAPS = 36
ASIDE = 0.04
MIDDLE = 0.488
"""Lightness of a cell from which dark text has more contrast than white."""


@dataclass(frozen=True)
class VariantMean:
    """A variant of a sweep with the mean of its results."""

    variant: StoredVariant
    estimate: Estimate


class ResponseSurface:
    """A number of the results as a function of the parameters of a sweep.

    Args:
        run: a sweep; with tuning, the tuning replications are used, since they cover the whole grid.
        highest: whether the highest mean is the best.
        order: the entries of ``algorithms`` in the order of their colours; None for the order in which they are stored.
    """

    def __init__(self, run: StoredRun, key: str, *, highest: bool = False, order: Sequence[str] | None = None) -> None:
        self.key = key
        self._order = order
        self._sign = -1.0 if highest else 1.0
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
        found = list(dict.fromkeys(cell.variant.entry for cell in self.cells))
        return found if self._order is None else [one for one in self._order if one in found]

    def style(self, entry: str) -> LineStyle:
        return line_style((self._order or self.entries).index(entry))

    @cached_property
    def environments(self) -> list[dict[str, str]]:
        """Name -> value of what the algorithms face, in each environment."""
        return combinations([cell.variant.faced for cell in self.cells])

    def choices(self, entry: str | None = None) -> dict[str, list[str]]:
        """Parameter of an algorithm -> its values in order, for parameters with several values."""
        cells = [cell for cell in self.cells if entry in (None, cell.variant.entry)]
        return _several([cell.variant.choices for cell in cells])

    @property
    def conditions(self) -> dict[str, list[str]]:
        """Key of the environment -> its values in order, for keys with several values."""
        return _several([cell.variant.faced for cell in self.cells])

    def best(self, entry: str, faced: Mapping[str, str], **values: str) -> Estimate | None:
        """The best mean of an algorithm in one environment; None if there is no such variant.

        Args:
            faced: the environment, whole.
            values: values of its parameters; the others may have any.
        """
        found = [
            cell.estimate
            for cell in self.cells
            if cell.variant.entry == entry
            and cell.variant.faced.items() <= faced.items()
            and values.items() <= cell.variant.choices.items()
        ]
        return min(found, key=lambda estimate: self._sign * estimate.mean, default=None)


def _several(found: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    values: dict[str, dict[str, None]] = {}
    for one in found:
        for name, text in one.items():
            values.setdefault(name, {}).setdefault(text)
    return {name: _ordered(texts) for name, texts in values.items() if len(texts) > 1}


def _ordered(texts: Iterable[str]) -> list[str]:
    """Values of a parameter: numbers by size, since a search proposes them in any order, others as they came."""
    try:
        return sorted(texts, key=float)
    except ValueError:
        return list(texts)


def sensitivity_figure(surface: ResponseSurface, title: str) -> Figure | None:
    """The mean against each parameter of the algorithms; a row per environment and a curve per algorithm.

    The algorithm's other parameters are at their best in the environment.
    """
    choices, shown = surface.choices(), surface.environments[:MAX_ENVIRONMENTS]
    if not choices:
        return None
    panels = [_Response(faced, faced, name, values) for faced in shown for name, values in choices.items()]
    beside = columns_for([named(faced) for faced in shown], max(1, _across(choices) // len(choices)))
    entries = [entry for entry in surface.entries if surface.choices(entry)]
    return _responses(surface, panels, beside * len(choices), title, entries)


def environment_figure(surface: ResponseSurface, title: str) -> Figure | None:
    """The mean against each key of the environment; a panel for each combination of the others, a curve per algorithm.

    The algorithm's parameters are at their best for each point.
    """
    if not surface.conditions:
        return None
    panels = [
        _Response({**others, name: ""}, others, name, values)
        for name, values in surface.conditions.items()
        for others in _others(surface, name)[:MAX_ENVIRONMENTS]
    ]
    return _responses(surface, panels, balanced(len(panels), _across(surface.conditions)), title, surface.entries)


def _across(keys: Mapping[str, Sequence[str]]) -> int:
    """Largest number of panels side by side in which the values of each key have room."""
    return max(1, min(COLUMNS, CHARACTERS // max(map(_room, keys.values()))))


def _room(values: Sequence[str]) -> int:
    """Number of characters that the names of the values take at an axis."""
    return sum(len(text) + 2 for text in values)


@dataclass(frozen=True)
class _Response:
    """A panel of the mean against one key: what is faced, with the key itself where it is faced, and what is said."""

    faced: Mapping[str, str]
    said: Mapping[str, str]
    name: str
    values: Sequence[str]

    def best(self, surface: ResponseSurface, entry: str, text: str) -> Estimate | None:
        """The best mean of an algorithm at one value."""
        if self.name in self.faced:
            return surface.best(entry, {**self.faced, self.name: text})
        return surface.best(entry, self.faced, **{self.name: text})


def _responses(
    surface: ResponseSurface, panels: Sequence[_Response], columns: int, title: str, entries: Sequence[str]
) -> Figure:
    """Panels with the same vertical axis, unless that would press one flat; a curve per algorithm."""
    lines = -(-len(panels) // columns)
    drawn = figure(2.2 * lines + legend_height(entries))
    for place, panel in enumerate(panels):
        axis = drawn.add_subplot(lines, columns, place + 1)
        for style, aside, entry in _styled(surface):
            means = [panel.best(surface, entry, text) for text in panel.values]
            _draw_response(axis, style, aside, means)
        heading = wrapped(named(panel.said), TITLES // columns)
        plain(axis, heading, panel.name, title if place % columns == 0 else "")
        every = -(-columns * _room(panel.values) // CHARACTERS)
        axis.set_xticks(range(0, len(panel.values), every), list(panel.values[::every]))
        axis.set_xlim(-0.3, len(panel.values) - 0.7)
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    same_height(drawn.axes)
    looks = [(entry, style.look) for style, _, entry in _styled(surface) if entry in entries]
    add_legend(drawn, [Line2D([], [], markersize=5, label=entry, **look) for entry, look in looks])
    return drawn


def _others(surface: ResponseSurface, name: str) -> list[dict[str, str]]:
    """The combinations of the keys of the environment besides one."""
    rest = [{key: text for key, text in faced.items() if key != name} for faced in surface.environments]
    return [dict(items) for items in dict.fromkeys(tuple(one.items()) for one in rest)]


def _styled(surface: ResponseSurface) -> list[tuple[LineStyle, float, str]]:
    """(style, step aside so that intervals do not cover each other, algorithm)."""
    middle = 0.5 * (len(surface.entries) - 1)
    step = min(ASIDE, 0.3 / max(1.0, middle))
    return [(surface.style(entry), step * (place - middle), entry) for place, entry in enumerate(surface.entries)]


def _draw_response(axis: Axes, style: LineStyle, aside: float, means: Sequence[Estimate | None]) -> None:
    points = [(place, found) for place, found in enumerate(means) if found is not None]
    if not points:
        return
    places, heights = [place + aside for place, _ in points], [found.mean for _, found in points]
    halves = [found.half_width or 0.0 for _, found in points]
    axis.errorbar(places, heights, yerr=halves, markersize=4, capsize=2, **style.look)


@dataclass(frozen=True)
class HeatMap:
    """The content of a heat map: an algorithm in an environment, and two of its parameters with their values."""

    entry: str
    faced: Mapping[str, str]
    across: tuple[str, Sequence[str]]
    down: tuple[str, Sequence[str]]


def heat_maps(surface: ResponseSurface) -> list[HeatMap]:
    """The heat maps of all pairs of parameters of each algorithm in each environment, at most :data:`MAX_HEAT_MAPS`."""
    found = []
    for faced in surface.environments[:MAX_ENVIRONMENTS]:
        for entry in surface.entries:
            names = list(surface.choices(entry).items())
            found += [
                HeatMap(entry, faced, second, first) for i, first in enumerate(names) for second in names[i + 1 :]
            ]
    return found[:MAX_HEAT_MAPS]


def heat_figure(surface: ResponseSurface, title: str) -> Figure | None:
    """Heat maps of the mean over pairs of parameters of an algorithm, its others at their best; dark is low."""
    shown = heat_maps(surface)
    if not shown:
        return None
    columns = balanced(len(shown), NARROW)
    lines = -(-len(shown) // columns)
    drawn = figure(2.2 * lines)
    for number, one in enumerate(shown):
        axis = drawn.add_subplot(lines, columns, number + 1)
        (across, columns_), (down, rows) = one.across, one.down
        cells = [[surface.best(one.entry, one.faced, **{across: x, down: y}) for x in columns_] for y in rows]
        _draw_heat(axis, np.array([[_mean(cell) for cell in line] for line in cells]))
        axis.set_xticks(range(len(columns_)), columns_)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(across)
        axis.set_ylabel(down)
        heading = ": ".join(filter(None, (named(one.faced), f"{title} of {one.entry}")))
        axis.set_title(wrapped(heading, TITLES // columns))
    return drawn


def _draw_heat(axis: Axes, means: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    colours = axis.imshow(means, cmap="cividis", aspect="auto").to_rgba(means)
    for (row, column), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            light = np.dot(colours[row, column, :3], (0.2126, 0.7152, 0.0722)) > MIDDLE
            colour = "#1c1c1f" if light else "#ffffff"
            axis.text(column, row, tick(mean), ha="center", va="center", color=colour, fontsize=8)


def _mean(found: Estimate | None) -> float:
    return float("nan") if found is None else found.mean
