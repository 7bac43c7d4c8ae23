"""How panels look: matplotlib's style, numbers at axes, names of rows, and colour, marker and dashes of a label."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from coband.simulator.analysis.report.palette import (
    HATCHES,
    INK,
    KINDS,
    MUTED,
    PAPER,
    PARTS,
    RULE,
    TIME_HATCHES,
    TIMES,
    kind_colour,
    line_style,
    variant_style,
)
from coband.simulator.analysis.traces.times import MEANINGS

if TYPE_CHECKING:
    from coband.simulator.analysis.comparison.analysis import Analysis

SIZE = 9.0
"""Size of the font, in points."""
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": SIZE,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "coband",
    "pdf.fonttype": 42,
    "lines.linewidth": 1.6,
}
SMALL = 7.5
"""Size of the font in files, which are as wide as a column."""
SMALL_STYLE: Any = STYLE | {
    **dict.fromkeys(("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALL),
    "axes.titlesize": 8.0,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
}
MANY = 7
"""With more labels in a drawing, the best of each algorithm and others up to this number have colours."""
MAX_BANDS = 5
"""Largest number of labels with confidence bands; more would hide each other."""
OTHERS = "others"
STATES = PARTS | {one.title: one.key for one in MEANINGS}
"""What a bar of time calls its parts -> the state that gives the colour."""
HEADINGS = {"scalars": "scalars sent", "time": "simulated time", "energy": "joules of turns and messages"}
"""What axes and titles call a value of a column, where that is not the value."""


@contextmanager
def styled(style: Any = STYLE) -> Iterator[None]:
    """Apply the style of all figures within a ``with`` block."""
    with mpl.rc_context(style):
        yield


def wrapped(label: str, width: int) -> str:
    """A label in lines of at most ``width`` characters, cut nowhere."""
    return "\n".join(textwrap.wrap(label, width, break_long_words=False, break_on_hyphens=False)) or label


def tick(value: float, position: int | None = None) -> str:
    """A number at an axis: 0.25, 40, 1.5k, 2M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{suffix}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def plain(axis: Axes, title: str = "", across: str = "", up: str = "") -> None:
    """Name a pair of axes; they get a grid, and numbers as :func:`tick` writes them."""
    axis.set(title=title, xlabel=across, ylabel=up)
    axis.grid(visible=True)
    axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.yaxis.set_major_formatter(FuncFormatter(tick))


def rows(axis: Axes, names: Iterable[str]) -> None:
    """Prepare a drawing with one row per name, the first on top."""
    names = list(names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


class Styles(Mapping[str, dict[str, Any]]):
    """Label -> colour, marker and dashes as matplotlib's keywords, the same in all panels of a run.

    Variants of an algorithm share its colour and differ in shade, marker and dashes. An algorithm of a sweep, and an
    environment with one label, have a style too.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._shared = shared = analysis.shared
        pairs = list(dict.fromkeys((one.entry, one.label) for part in analysis.within for one in part.contenders))
        entries = shared.entries
        self._found = {entry: line_style(number).look for number, entry in enumerate(entries)}
        self._families = {entry: [label for other, label in pairs if other == entry] for entry in entries}
        for number, labels in enumerate(self._families.values()):
            for place, label in enumerate(labels if len(pairs) > len(entries) else ()):
                self._found[label] = variant_style(number, place, len(labels)).look
        for number, part in enumerate(analysis.within):
            self._found.setdefault(part.environment, line_style(number).look)
        self._analysis, self._others = analysis, dict[str, int]()

    def __getitem__(self, label: str) -> dict[str, Any]:
        return self._found[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @cached_property
    def _best(self) -> list[str]:
        """The labels by their mean of the first measure, the best of each algorithm first."""
        measure, means = self._analysis.measures[0], dict[str, list[float]]()
        for part in self._analysis.within:
            for label, estimate in zip(part.labels, part.estimates(measure), strict=True):
                means.setdefault(label, []).append(estimate.mean)
        order = sorted(means, key=lambda one: sum(means[one]) / len(means[one]), reverse=measure.better == "higher")
        first = [next((one for one in order if one in family), "") for family in self._families.values()]
        return [*(one for one in order if one in first), *(one for one in order if one not in first)]

    def bold(self, labels: Iterable[str]) -> set[str]:
        """Those of the labels of a drawing that have colours: all, or the best of each algorithm and a few others."""
        labels = set(labels)
        return labels if len(labels) <= MANY else set([one for one in self._best if one in labels][:MANY])

    def filling(self, name: str) -> dict[str, Any]:
        """Colour and hatching of a part of a bar: a state of an agent, a kind of message, or anything else."""
        if name in STATES:
            key = STATES[name]
            return {"facecolor": TIMES[key], "hatch": TIME_HATCHES.get(key, ""), "edgecolor": PAPER}
        kind = name.rpartition(", ")[0] if name in self._flows else name
        if kind in self._shared.kinds:
            colour = kind_colour(kind, self._shared.kinds)
            number = self._flows.index(name) if name in self._flows else 0
        else:
            number = self._others.setdefault(name, len(self._others))
            colour = KINDS[number % len(KINDS)]
        return {"facecolor": colour, "hatch": HATCHES[number % len(HATCHES)], "edgecolor": PAPER}

    @cached_property
    def _flows(self) -> Sequence[str]:
        """The kinds with their directions, those with the most scalars first."""
        sizes: dict[str, float] = {}
        for one in (one for part in self._analysis.within for _, flows in part.flows for one in flows):
            sizes[one.named] = sizes.get(one.named, 0.0) + one.scalars
        return sorted(sizes, key=lambda name: (-sizes[name], name))
