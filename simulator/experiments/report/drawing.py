"""The common style of all figures: fonts, sizes, legends, and numbers at axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from coband.simulator.experiments.report.palette import INK, MUTED, RULE

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
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
    "legend.fontsize": 9,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "coband",
    "pdf.fonttype": 42,
    "lines.linewidth": 1.6,
}
WIDTH = 10.2
LEGEND_COLUMNS = 6


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style of all figures within a ``with`` block."""
    with mpl.rc_context(STYLE):
        yield


def legend_height(labels: int) -> float:
    """Height of a legend above the panels, in inches; ``labels``: number of entries."""
    return 0.24 * -(-labels // LEGEND_COLUMNS) + 0.1


def tick(value: float, position: int | None = None) -> str:
    """A number at an axis: 0.25, 40, 1.5k, 2M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{suffix}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def figure(height: float) -> Figure:
    """An empty figure of the common width; ``height`` in inches."""
    return Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06, hspace=0.05))
