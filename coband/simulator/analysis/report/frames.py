"""The numbers of the report's own panels, each as a tidy frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.comparison.data import REGRET
from coband.simulator.analysis.report import draw
from coband.simulator.analysis.report.sweeps import estimate, estimated
from coband.simulator.analysis.traces.rounds import PARTS as ROUND_PARTS
from coband.simulator.analysis.traces.times import FINISHED, IDLE, MEANINGS
from coband.simulator.arrays import FloatArray
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store.store import Series, StoredJob

Axis = Literal["turns", "scalars", "time", "energy"]
Height = Literal["regret", "turns"]
STORED = {"time": "times"}
"""Axis of a curve -> the column of series that has it, where they differ in name."""
POINTS = 200
DECADES = 1e-4
MAX_ROWS, MAX_MEASURES = 12, 3
"""With more labels than the former, results show the latter number of measures."""
MAX_WAITED = 5
AGES = ("pulls not known of", "time since newest message")
PARTS = 60
"""Parts of a run, of equally many turns, over whose decisions ages are averaged."""


# --- results and differences


def results(analysis: Analysis) -> pd.DataFrame:
    """Every measure of every label; of many labels the first measures."""
    most = None if len(analysis.labels) <= MAX_ROWS and len(analysis.shared.environments) < 2 else MAX_MEASURES
    return pd.DataFrame(
        {"measure": measure.heading, "label": label, **estimated(found)}
        for measure in analysis.measures[:most]
        for label, found in zip(analysis.labels, analysis.estimates(measure), strict=True)
    )


def wide(column: str, *keys: str) -> Any:
    """A table with a column for each value of a column of the frame."""

    def table(frame: pd.DataFrame) -> pd.DataFrame:
        rows = [key for key in ("environment", *keys) if key in frame]
        found = frame.pivot_table("mean", rows, column, aggfunc="first", sort=False, observed=True).reset_index()
        return found.fillna("").rename_axis(columns=None)

    return table


def differences(analysis: Analysis) -> pd.DataFrame:
    """Differences on the aim, or what comes next where all reach the same: of all pairs, or with one label."""
    against = analysis.reference
    unequal = [one for one in analysis.measures if any(gap.mean for gap in analysis.differences[one.name])]
    return pd.DataFrame(
        {
            "label": one.first if against else f"{one.first} − {one.second}",
            "measure": measure.heading,
            "minus": against or "",
            "mean": one.mean,
            **dict(zip(("low", "high"), one.student or (np.nan, np.nan), strict=True)),
            "n": one.count,
            "better": one.better or "",
            "verdict": one.verdict,
        }
        for measure in unequal[:1]
        for one in analysis.shown(measure)
    )


# --- curves


def curve(series: Sequence[Series], x: Axis, y: Height, *, log: bool = False) -> pd.DataFrame:
    """The mean of y over replications at places ``at`` of x.

    Between two stored turns a curve keeps the earlier value, so that it has no interpolated one; it ends where the
    shortest replication ends. Where x stays at 0 (nothing is sent) it is its last value, at no place.

    Args:
        series: one per replication, none empty.
        log: space points evenly on a logarithmic axis, from a ten-thousandth of the end.
    """
    columns = [np.asarray(getattr(one, STORED.get(x, x)), dtype=np.float64) for one in series]
    end = min(float(one[-1]) for one in columns)
    if max(float(one[-1]) for one in columns) <= 0:
        grid, values = np.full(1, np.nan), np.array([[float(getattr(one, y)[-1])] for one in series])
    else:
        grid = _grid(columns, x, end, log) if end > 0 else np.zeros(1)
        values = np.array([at(one, x, y, grid) for one in series])
    low, high = statistics.bands(values) or (np.full(len(grid), np.nan),) * 2
    return pd.DataFrame({"at": grid, "mean": values.mean(axis=0), "low": low, "high": high, "n": len(series)})


def _grid(columns: Sequence[FloatArray], x: Axis, end: float, log: bool) -> FloatArray:
    if log:
        return np.geomspace(max(1.0, end * DECADES), end, POINTS)
    first = columns[0]
    if x == "turns" and all(np.array_equal(first, one) for one in columns):
        kept = np.unique(np.linspace(0, len(first) - 1, POINTS).round().astype(np.intp))
        return np.concatenate([[0.0], first[kept]])  # positions at which every replication has a stored value
    return np.linspace(0.0, end, POINTS)


def at(series: Series, x: Axis, y: Height, grid: FloatArray) -> FloatArray:
    """y of one replication at the points of a grid of x; 0 before its first turn.

    Where several turns share one x (nothing was sent in between), the last of them counts.
    """
    index = np.searchsorted(getattr(series, STORED.get(x, x)), grid, side="right") - 1
    heights = np.asarray(getattr(series, y), dtype=np.float64)
    return np.where(index >= 0, heights[np.maximum(index, 0)], 0.0)


def curves(analysis: Analysis, x: Axis, y: Height = "regret") -> pd.DataFrame:
    """The curves of all labels that have series, with columns ``x`` and ``label`` first."""
    found = [
        curve(one.series, x, y, log=x == "scalars").assign(x=x, label=one.label)
        for one in analysis.contenders
        if one.series
    ]
    return pd.concat(found)[["x", "label", "at", "mean", "low", "high", "n"]] if found else pd.DataFrame()


def regret(analysis: Analysis) -> pd.DataFrame:
    """Against turns, scalars (unless nobody sends any) and time; nothing where regret is not the aim."""
    if analysis.comparison.aim != REGRET:
        return pd.DataFrame()
    axes: list[Axis] = ["turns", "time"] if analysis.silent else ["turns", "scalars", "time"]
    return pd.concat([curves(analysis, x) for x in axes])


def progress(analysis: Analysis) -> pd.DataFrame:
    """No rows where all labels are equally fast, or decide themselves when to stop."""
    if analysis.comparison.stops_itself():
        return pd.DataFrame()
    found = curves(analysis, "time", "turns")
    ends = {(series.replication, *series.times[[0, -1]]) for one in analysis.contenders for series in one.series}
    return found if len(ends) > len({replication for replication, *_ in ends}) else found[:0]


def places(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of curves at four places each."""
    keys = [key for key in ("environment", "x", "label") if key in frame]
    groups = frame.groupby(keys, sort=False)
    order, count = groups.cumcount(), groups["at"].transform("size")
    quarters = ((order * 4 // count) != ((order + 1) * 4 // count)) | (count == 1)
    return frame[quarters]


def age(analysis: Analysis) -> pd.DataFrame:
    """Mean ages over parts of the run in which all replications have one."""
    found = []
    for one in analysis.contenders:
        stored = [rows for job in one.jobs if len(rows := _ages(job))]
        if not stored:
            continue
        edges = np.linspace(0.0, min(rows[-1, 0] for rows in stored), min(PARTS, *map(len, stored)) + 1)
        for column, what in enumerate(AGES, start=1):
            values = np.array([_means(rows[:, 0], rows[:, column], edges) for rows in stored])
            known = np.isfinite(values.sum(axis=0))
            low, high = statistics.bands(values) or (np.full(len(edges) - 1, np.nan),) * 2
            ages = {"at": 0.5 * (edges[:-1] + edges[1:]), "mean": values.mean(axis=0), "low": low, "high": high}
            found.append(pd.DataFrame({"age": what, "x": "turns", "label": one.label, **ages, "n": len(stored)})[known])
    return pd.concat(found).sort_values("age", kind="stable") if found else pd.DataFrame()


def _ages(job: StoredJob) -> FloatArray:
    """(turn, age, age in time) of the points of a job, (points, 3); none in stores made before there were ages."""
    if not job.part.execute("SELECT 1 FROM sqlite_master WHERE name = 'ages'").fetchone():
        return np.empty((0, 3))
    rows = job.part.execute("SELECT turn, age, age_time FROM ages WHERE job = ? ORDER BY turn", (job.id,)).fetchall()
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _means(turns: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """The mean of the values within each part, (parts,); NaN where there is none."""
    there = ~np.isnan(values) & (turns <= edges[-1])
    place = np.searchsorted(edges[1:], turns[there], side="left")
    counts = np.bincount(place, minlength=len(edges) - 1)
    sums = np.bincount(place, weights=values[there], minlength=len(edges) - 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def draw_age(axis: Any, frame: pd.DataFrame, styles: Any) -> None:
    """Curves of one of the ages."""
    draw.curves(axis, frame, styles, frame["age"].iloc[0])


# --- communication and time


def communication(analysis: Analysis) -> pd.DataFrame:
    """Scalars and messages by kind and direction."""
    return pd.DataFrame(
        {"measure": measure, "label": label, "part": one.named, "mean": getattr(one, measure), "n": len(job.records)}
        for measure in ("scalars", "messages")
        for job, (label, flows) in zip(analysis.contenders, analysis.flows, strict=True)
        for one in flows
    )


def times(analysis: Analysis) -> pd.DataFrame:
    """No rows where all are idle or finished all the time."""
    states = [one for number, one in enumerate(MEANINGS) if any(t.shares[:, number].any() for t in analysis.timings)]
    if all(one.key in (IDLE, FINISHED) for one in states):
        return pd.DataFrame()
    numbers = {one.title: number for number, one in enumerate(MEANINGS) if one in states}
    return pd.DataFrame(
        {"label": one.contender.label, "part": title, **estimate(one.shares[:, number].tolist())}
        for one in analysis.timings
        for title, number in numbers.items()
    )


def rounds(analysis: Analysis) -> pd.DataFrame:
    """The parts of the critical path of an average round."""
    timings = [one for one in analysis.timings if one.all_rounds]
    shown = [number for number in range(len(ROUND_PARTS)) if any(one.parts[number] for one in timings)]
    return pd.DataFrame(
        {
            "label": one.contender.label,
            "part": ROUND_PARTS[number],
            "mean": one.parts[number],
            "n": len(one.all_rounds),
        }
        for one in timings
        for number in shown
    )


def stragglers(analysis: Analysis) -> pd.DataFrame:
    """The agents that rounds of the first replication waited for, most first."""
    rows = []
    for timing in analysis.timings:
        found = timing.rounds[0]
        whole = sum(one.duration for one in found)
        for wait in timing.waits[:MAX_WAITED]:
            longest = max((one for one in found if one.waited_for == wait.agent), key=lambda one: one.waited)
            row = {"label": timing.contender.label, "agent": wait.agent, "rounds": wait.rounds, "of": len(found)}
            rows.append(row | {"time": wait.time, "share": wait.time / whole, "event": longest.chain[0]})
    return pd.DataFrame(rows)
