"""How panels are drawn into one pair of axes: curves, rows with intervals, stacked bars, responses, and heat maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from coband.simulator.analysis.report.palette import MUTED
from coband.simulator.analysis.report.style import HEADINGS, MAX_BANDS, OTHERS, Styles, rows
from coband.simulator.analysis.report.sweeps import ordered
from coband.simulator.experiments.statistics.numerals import bounds, number

BAND, PALE, PALE_WIDTH = 0.16, 0.35, 0.8
MAX_BAND_HEIGHT = 1.8
"""Bands are cut off at this multiple of the largest mean."""
MIDDLE = 0.488
"""Lightness of a cell from which dark text has more contrast than white."""


def items(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows, with columns as attributes."""
    return frame.itertuples()


def groups(frame: pd.DataFrame, column: str = "label") -> list[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column, in their order."""
    return [(str(value), own) for value, own in frame.groupby(column, sort=False)]


def curves(axis: Axes, frame: pd.DataFrame, styles: Styles, up: str = "cumulative regret") -> None:
    """Means with bands against ``at``; a row without a place is a dotted line; of many labels most are pale."""
    labels = groups(frame)
    bold, top = styles.bold(label for label, _ in labels), 0.0
    for order, (label, own) in enumerate(labels):
        look, best = styles[label], float(own["mean"].max())
        tip = f"tip:{label}: {number(float(own['mean'].iloc[-1]))} at the end"
        if label not in bold:
            axis.plot(
                own["at"], own["mean"], color=MUTED, alpha=PALE, linewidth=PALE_WIDTH, zorder=1, label=OTHERS, gid=tip
            )
        elif own["at"].isna().all():
            axis.axhline(best, color=look["color"], linestyle=(0, (1, 2)), linewidth=1.3, label=label, gid=tip)
        else:
            places = (0.02 + 0.12 * order / len(labels), 0.14)
            axis.plot(own["at"], own["mean"], markevery=places, markersize=4, label=label, gid=tip, **look)
            if len(bold) <= MAX_BANDS and own["low"].notna().any():
                axis.fill_between(own["at"], own["low"], own["high"], color=look["color"], alpha=BAND, linewidth=0)
                best = max(best, min(float(own["high"].max()), MAX_BAND_HEIGHT * best))
        top = max(top, best)
    axis.set_ylim(min(0.0, 1.05 * float(frame["mean"].min())), 1.04 * top if top > 0 else 1.0)
    across = frame["x"].iloc[0]
    if across == "scalars" and frame.groupby("label")["at"].count().max() > 1:
        axis.set_xscale("log")
    else:
        axis.set_xlim(left=0)
    axis.set(xlabel=HEADINGS.get(across, across), ylabel=up)


def points(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """A marker with its interval in a row per label."""
    for row, one in enumerate(items(frame)):
        look, interval = styles[one.label], None if np.isnan(one.low) else (one.low, one.high)
        tip = f"tip:{one.label}: {number(one.mean)}" + (f" ({bounds(interval)})" if interval else "")
        axis.plot(
            interval or [one.mean] * 2, [row] * 2, color=look["color"], linewidth=2, solid_capstyle="butt", gid=tip
        )
        axis.plot(one.mean, row, color=look["color"], marker=look["marker"], markersize=6, clip_on=False)
    low, high = min(0.0, frame["mean"].min()), max(0.0, frame[["mean", "high"]].max().max())
    axis.set_xlim(low - 0.02 * (high - low or 1), high + 0.04 * (high - low or 1))
    rows(axis, frame["label"])


def differences(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """A difference with its interval in a row per pair, in the style of the better label; a grey cross is undecided."""
    for row, one in enumerate(items(frame)):
        look = styles[one.better] if one.better else {"color": MUTED, "marker": "x"}
        axis.plot([one.low, one.high], [row] * 2, color=look["color"], linewidth=2.2, solid_capstyle="butt")
        axis.plot(one.mean, row, color=look["color"], marker=look["marker"], gid=f"tip:{one.label}: {one.verdict}")
    axis.axvline(0, color=MUTED, linewidth=0.9)
    minus = frame["minus"].iloc[0]
    axis.set_xlabel(f"difference of {frame['measure'].iloc[0]}" + (f",\nminus {minus}" if minus else ""))
    rows(axis, frame["label"])


def stack(axis: Axes, frame: pd.DataFrame, styles: Styles, unit: str = "") -> None:
    """Stacked bars of the parts that ``part`` names, in a row per label."""
    wide = frame.pivot_table(
        index="label", columns="part", values="mean", aggfunc="sum", sort=False, observed=True
    ).fillna(0.0)
    left = np.zeros(len(wide))
    for part in map(str, wide):
        bars = axis.barh(range(len(wide)), wide[part], 0.62, left, linewidth=0.5, label=part, **styles.filling(part))
        for bar, label, value in zip(bars, wide.index, wide[part], strict=True):
            bar.set_gid(f"tip:{label}, {part}: {number(value)}")
        left += wide[part].to_numpy()
    axis.set(xlim=(0, 1.04 * left.max() or 1.0), xlabel=unit)
    rows(axis, wide.index)


def response(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """Means with intervals against the values of a parameter, which stand at equal distances."""
    values, labels = ordered(frame["value"]), groups(frame)
    for order, (label, own) in enumerate(labels):
        aside = min(0.04, 0.3 / len(labels)) * (order - 0.5 * (len(labels) - 1))
        places = [values.index(value) + aside for value in own["value"]]
        half = (own["high"] - own["mean"]).fillna(0.0)
        axis.errorbar(places, own["mean"], yerr=half, markersize=4, capsize=2, label=label, **styles[label])
    every = -(-len(values) * (max(map(len, values)) + 2) // CHARACTERS)
    axis.set_xticks(range(0, len(values), every), values[::every])
    axis.set(xlabel=frame["parameter"].iloc[0], ylabel=frame["measure"].iloc[0])
    axis.set(xlim=(-0.3, len(values) - 0.7), ylim=(min(0.0, axis.get_ylim()[0]), None))


CHARACTERS = 44
"""Number of characters of the values at the axis of a response."""


def heat(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """Means over two parameters; dark is low."""
    down, across = (list(dict.fromkeys(frame[name])) for name in ("down_value", "across_value"))
    means = np.full((len(down), len(across)), np.nan)
    for one in items(frame):
        means[down.index(one.down_value), across.index(one.across_value)] = one.mean
    colours = axis.imshow(means, cmap="cividis", aspect="auto").to_rgba(means)
    for (row, column), mean in np.ndenumerate(means):
        if not np.isnan(mean):
            light = np.dot(colours[row, column, :3], (0.2126, 0.7152, 0.0722)) > MIDDLE
            colour = "#1c1c1f" if light else "#ffffff"
            size = 8 if len(across) < 7 else 6
            axis.text(column, row, f"{mean:.3g}", ha="center", va="center", color=colour, fontsize=size)
    axis.set_xticks(range(len(across)), across)
    axis.set_yticks(range(len(down)), down)
    axis.set(xlabel=frame["across"].iloc[0], ylabel=frame["down"].iloc[0])
    axis.grid(visible=False)


NOT_RANKED = "not ranked"
"""The standing of a label that has waited while others pulled."""


def trade_off(axis: Axes, frame: pd.DataFrame, styles: Styles) -> None:
    """Points with intervals in both directions; a dashed line shows what the best means reach."""
    bold = styles.bold(frame["label"])
    for one in items(frame):
        tip = f"tip:{one.label}: {number(one.mean)} at {number(one.cost_mean)}; {one.standing}"
        where: dict[str, Any] = {"linestyle": "none", "clip_on": False, "gid": tip}
        if one.label not in bold:
            axis.plot(one.cost_mean, one.mean, color=MUTED, marker=".", alpha=PALE, label=OTHERS, **where)
            continue
        colour, marker = styles[one.label]["color"], styles[one.label]["marker"]
        axis.plot([one.cost_low, one.cost_high], [one.mean] * 2, color=colour, linewidth=1.4)
        axis.plot([one.cost_mean] * 2, [one.low, one.high], color=colour, linewidth=1.4)
        axis.plot(
            one.cost_mean, one.mean, color=colour, marker=marker, markersize=6, zorder=3, label=one.label, **where
        )
    best = frame[frame["standing"] != NOT_RANKED].sort_values(["cost_mean", "mean"])
    best = best[best["mean"] <= best["mean"].cummin()]
    if len(best) > 1:
        axis.step(best["cost_mean"], best["mean"], where="post", color=MUTED, linewidth=0.9, linestyle="--", zorder=1)
    paid = frame["cost_mean"][frame["cost_mean"] > 0]
    free = len(paid) < len(frame)
    if len(paid) and (paid.max() > 10 * paid.min() or free):
        near = 10.0 ** np.floor(np.log10(paid.min()))
        axis.set_xscale("symlog", linthresh=near, linscale=0.3)
        axis.minorticks_off()
        steps = (1, 2, 5) if paid.max() < 100 * paid.min() else (1,)  # powers of ten would be one or two
        powers = near * 10.0 ** np.arange(np.log10(paid.max() / near) + 1)
        axis.set_xticks(
            [0.0] * free + [power * step for power in powers for step in steps if power * step <= paid.max()]
        )
    axis.set_xlim(left=0.0 if free else None)
    axis.set_ylim(bottom=min(0.0, float(frame["mean"].min())))
    axis.set(
        xlabel=HEADINGS.get(frame["cost"].iloc[0], frame["cost"].iloc[0].replace("_", " ")),
        ylabel=frame["measure"].iloc[0],
    )
