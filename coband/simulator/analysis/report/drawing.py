"""The common style of all figures: fonts, sizes, legends, and numbers at axes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from coband.simulator.analysis.report.palette import INK, MUTED, RULE

SIZE = 9.0
"""Of the font, in points."""
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
WIDTH = 10.2
"""Width of a figure of the page, in inches."""
CHARACTER = 0.6
"""Width of an average character of the font, as a share of its size."""
HANDLE = 4.8
"""Width of the line or patch beside an entry of a legend and of the space between entries, in font sizes."""
LEGEND_LINE = 1.9
"""Height of a line of a legend, in font sizes."""
POINTS = 72
NARROW = 4
"""With more panels side by side there is room for few numbers at an axis."""
TITLES = 104
"""Number of characters of the titles side by side."""


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style of all figures within a ``with`` block."""
    with mpl.rc_context(STYLE):
        yield


def legend_columns(labels: Sequence[str], width: float = WIDTH, size: float = SIZE) -> int:
    """Number of columns of a legend that fit side by side.

    Args:
        width: width of the figure, in inches.
        size: size of the font, in points.
    """
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    entry = size * (CHARACTER * longest + HANDLE) / POINTS
    return max(1, min(len(labels), int(width / entry)))


def legend_height(labels: Sequence[str]) -> float:
    """Height of a legend above the panels, in inches."""
    lines = -(-len(labels) // legend_columns(labels))
    return LEGEND_LINE * SIZE / POINTS * lines + 0.1


def add_legend(drawn: Figure, handles: Sequence[Artist]) -> None:
    """Draw a legend above the panels, with as many columns as fit."""
    if handles:
        labels = [str(one.get_label()) for one in handles]
        drawn.legend(handles=list(handles), loc="outside upper left", ncols=legend_columns(labels), handlelength=2.6)


def balanced(count: int, most: int) -> int:
    """Number of columns, at most ``most``, with which the lines of ``count`` panels are about equally full."""
    lines = -(-count // most)
    return -(-count // max(1, lines))


def columns_for(titles: Sequence[str], most: int) -> int:
    """Number of columns, at most ``most``, of panels that have room for the longest word of their titles."""
    longest = max((len(word) for title in titles for word in title.split()), default=0)
    return balanced(len(titles), max(1, min(most, TITLES // (longest + 1))))


def few_ticks(axis: Axes) -> None:
    """At most four numbers at the horizontal axis of a narrow panel."""
    log = axis.get_xscale() == "log"
    axis.xaxis.set_major_locator(LogLocator(numticks=4) if log else MaxNLocator(3))


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


def figure(height: float) -> Figure:
    """An empty figure of the common width; ``height`` in inches."""
    return Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06, hspace=0.05))
