"""Draw the README's picture: ``python docs/picture.py runs/quickstart-0001 docs/images/quickstart.png``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from simulator.experiments.statistics import interval
from simulator.experiments.store import Series, open_run

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555")
SHOWN_TIME = 120.0
PANELS = (("turns", "regret", "turns"), ("scalars", "regret", "scalars sent"), ("times", "turns", "simulated time"))


def curve(series: list[Series], x: str, y: str, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and 95 % band of y over replications at the points of a grid of x (the last value before each point)."""
    rows = []
    for one in series:
        index = np.searchsorted(getattr(one, x), grid, side="right") - 1
        rows.append(np.where(index >= 0, getattr(one, y)[np.maximum(index, 0)], 0.0))
    values = np.array(rows)
    mean = values.mean(axis=0)
    bounds = [interval(column.tolist()) or (centre, centre) for column, centre in zip(values.T, mean, strict=True)]
    return mean, np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])


def draw(run_directory: Path, image: Path) -> None:
    """Three panels, one colour per label."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    with open_run(run_directory) as run:
        labels = list(dict.fromkeys(job.label for job in run.jobs))
        for colour, label in zip(COLOURS, labels, strict=False):
            series = run.series(label)
            for axis, (x, y, _) in zip(axes, PANELS, strict=True):
                end = min(float(getattr(one, x)[-1]) for one in series)
                if end == 0:
                    axis.axhline(np.mean([one.regret[-1] for one in series]), color=colour, linestyle=":", label=label)
                    continue
                grid = np.linspace(0.0, min(end, SHOWN_TIME) if x == "times" else end, 300)
                if x == "scalars":
                    grid = np.geomspace(max(1.0, end / 1e4), end, 300)
                mean, low, high = curve(series, x, y, grid)
                axis.plot(grid, mean, color=colour, label=label)
                axis.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0)
    for axis, (_, y, title) in zip(axes, PANELS, strict=True):
        axis.set_xlabel(title)
        axis.set_ylabel(y if y != "turns" else "turns taken")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)
    axes[1].set_xscale("log")
    axes[0].legend(frameon=False)
    figure.savefig(image, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
