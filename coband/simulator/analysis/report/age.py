"""The figure of the age of information: what decisions did not know of, as the run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from coband.simulator.analysis.report.analysis import Analysis
from coband.simulator.analysis.report.data import Contender
from coband.simulator.analysis.report.drawing import add_legend, figure, legend_height, plain
from coband.simulator.analysis.report.figures import BAND, MAX_BANDS
from coband.simulator.analysis.report.multiples import foremost_contenders
from coband.simulator.analysis.report.palette import LineStyle
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.experiments.statistics import estimates
from coband.simulator.experiments.store.store import StoredJob

PARTS = 60
"""Parts of a run, of equally many turns, over whose decisions ages are averaged."""
PANELS = (("age", "pulls that a decision did not know of"), ("age_time", "time since the newest message learnt from"))


@dataclass(frozen=True, eq=False)
class AgeCurve:
    """Mean ages of one label.

    Attributes:
        turns: middle of each part of the run, (parts,).
        ages: by name of the panel: one row per replication, (replications, parts); NaN where no decision has an age.
    """

    turns: FloatArray
    ages: dict[str, FloatArray]

    def known(self, name: str) -> BoolArray:
        """The parts in which all replications have ages of this name, (parts,)."""
        found: BoolArray = np.isfinite(self.ages[name].sum(axis=0))
        return found


def age_figure(analysis: Analysis) -> Figure | None:
    """Curves of both ages with 95 % bands, of many labels the best of each algorithm; None if no model has an age."""
    shown = foremost_contenders(analysis)
    found = [age_curve(contender) for contender, _ in shown]
    if not any(found):
        return None
    labels, styles = [one.label for one, _ in shown], [style for _, style in shown]
    drawn = figure(2.9 + legend_height(labels))
    panels = [
        (name, title) for name, title in PANELS if any(one is not None and one.known(name).any() for one in found)
    ]
    for column, (name, title) in enumerate(panels, start=1):
        axis = drawn.add_subplot(1, len(panels), column)
        for number, curve in enumerate(found):
            if curve is not None:
                place = (number + 1) / len(labels)
                _draw(axis, curve, name, styles[number], place, banded=len(labels) <= MAX_BANDS)
        axis.set_ylim(bottom=0.0)
        plain(axis, title, "turns")
    looks = [(label, style) for label, style, curve in zip(labels, styles, found, strict=True) if curve is not None]
    add_legend(drawn, [Line2D([], [], label=label, markersize=5, **style.look) for label, style in looks])
    return drawn


def _draw(axis: Axes, curve: AgeCurve, name: str, style: LineStyle, place: float, *, banded: bool) -> None:
    """One curve, with its first marker at a place, of the parts in which all replications have ages."""
    complete = curve.known(name)
    if not complete.any():
        return
    x, values = curve.turns[complete], curve.ages[name][:, complete]
    bands = estimates.bands(values) if banded else None
    if bands is not None:
        axis.fill_between(x, *bands, color=style.colour, alpha=BAND, linewidth=0)
    axis.plot(x, values.mean(axis=0), markevery=(0.06 * place, 0.14), markersize=5, **style.look)


def age_curve(contender: Contender) -> AgeCurve | None:
    """The mean ages of a label; None if it has none."""
    stored = [rows for job in contender.jobs if len(rows := _stored(job))]
    if not stored:
        return None
    end = min(float(rows[-1, 0]) for rows in stored)
    edges = np.linspace(0.0, end, min(PARTS, min(map(len, stored))) + 1)
    ages = {
        name: np.array([_means(rows[:, 0], rows[:, column], edges) for rows in stored])
        for column, (name, _) in enumerate(PANELS, start=1)
    }
    return AgeCurve(0.5 * (edges[:-1] + edges[1:]), ages)


def _stored(job: StoredJob) -> FloatArray:
    """(turn, age, age in time) of the points of a job, (points, 3); none in stores made before there were ages."""
    if not job.part.execute("SELECT 1 FROM sqlite_master WHERE name = 'ages'").fetchone():
        return np.empty((0, 3))
    rows: Sequence[tuple[object, ...]] = job.part.execute(
        "SELECT turn, age, age_time FROM ages WHERE job = ? ORDER BY turn", (job.id,)
    ).fetchall()
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _means(turns: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """The mean of the values within each part, (parts,); NaN where there is none."""
    there = ~np.isnan(values) & (turns <= edges[-1])
    place = np.searchsorted(edges[1:], turns[there], side="left")
    counts = np.bincount(place, minlength=len(edges) - 1)
    sums = np.bincount(place, weights=values[there], minlength=len(edges) - 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
