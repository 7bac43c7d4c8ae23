"""Draw the pictures of docs/howto/adversity.md: ``python docs/adversity.py BITS LIARS PRIVACY``.

The three are directories of ``coband sweep`` with bits.yaml, liars.yaml and privacy.yaml of scenarios/adversity.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # after the choice of what draws

import coband

FOLDER = Path(__file__).parent / "howto" / "adversity"
Row = dict[str, Any]


def rows(run: str, *names: str) -> list[Row]:
    """A row per variant of a sweep: its parameters, and of numbers the means and ends of 95 % intervals."""
    sweep = coband.Sweep(run)
    found = sweep.estimates(*names)[["mean", "low", "high"]].unstack()
    found.columns = [name if end == "mean" else f"{name}_{end}" for end, name in found.columns]
    return found.join(sweep.parameters).loc[sweep.labels].reset_index().to_dict("records")


def errors(found: list[Row], name: str) -> tuple[list[float], list[list[float]]]:
    """Means, and how far the ends of their intervals are from them."""
    below = [row[name] - row[f"{name}_low"] for row in found]
    above = [row[f"{name}_high"] - row[name] for row in found]
    return [row[name] for row in found], [below, above]


def bits(found: list[Row], file: Path) -> None:
    """Regret against bits."""
    figure, axis = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    (xs, wide), (ys, high) = errors(found, "bits"), errors(found, "regret")
    axis.errorbar(xs, ys, high, wide, fmt="o", capsize=2)
    for row in found:
        axis.annotate(str(row["default"]), (row["bits"], row["regret"]), xytext=(5, 5), textcoords="offset points")
    axis.margins(0.12)
    axis.set(xscale="log", yscale="log", xlabel="bits sent in all", ylabel="regret of all agents")
    figure.savefig(file, dpi=100)


def liars(found: list[Row], file: Path) -> None:
    """Honest regret against the share of liars, for each defence."""
    figure, axis = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    for defence in dict.fromkeys(row["aggregate"] for row in found):
        own = [row for row in found if row["aggregate"] == defence]
        honest = [row if float(row["fraction"]) else _all_honest(row) for row in own]
        ys, high = errors(honest, "honest_regret_per_agent")
        axis.errorbar([float(row["fraction"]) for row in own], ys, high, fmt="o-", capsize=2, label=str(defence))
    axis.set(yscale="log", xlabel="share of liars", ylabel="regret of an honest agent")
    axis.legend(frameon=False, ncols=2)
    figure.savefig(file, dpi=100)


def privacy(found: list[Row], file: Path) -> None:
    """Regret against epsilon, for each mechanism."""
    figure, axis = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    for mechanism in dict.fromkeys(row["mechanism"] for row in found):
        own = [row for row in found if row["mechanism"] == mechanism]
        ys, high = errors(own, "regret")
        asked = [float(row["label"].rpartition("epsilon=")[2].rstrip("]")) for row in own]  # as asked
        axis.errorbar(asked, ys, high, fmt="o-", capsize=2, label=str(mechanism))
    axis.set(xscale="log", yscale="log", xlabel="epsilon asked for (delta = 1e-5)", ylabel="regret of all agents")
    axis.legend(frameon=False)
    figure.savefig(file, dpi=100)


def _all_honest(row: Row) -> Row:
    return {f"honest_{name}": value for name, value in row.items() if name.startswith("regret_per_agent")}


if __name__ == "__main__":
    bits(rows(sys.argv[1], "bits", "regret"), FOLDER / "bits.png")
    liars(rows(sys.argv[2], "honest_regret_per_agent", "regret_per_agent"), FOLDER / "liars.png")
    privacy(rows(sys.argv[3], "regret"), FOLDER / "privacy.png")
