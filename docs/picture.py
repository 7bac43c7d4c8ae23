"""Draw the README's picture: ``python docs/picture.py runs/quickstart-0001 docs/images/quickstart.png``."""

from __future__ import annotations

import sys
from pathlib import Path

from coband.simulator.experiments.report import data
from coband.simulator.experiments.report.drawing import styled
from coband.simulator.experiments.report.figures import Panel, curve_figure
from coband.simulator.experiments.store.store import open_run

PANELS = (Panel("turns", "regret"), Panel("scalars", "regret"), Panel("times", "turns", until=120.0))


def draw(run_directory: Path, image: Path) -> None:
    """Three panels, one colour per label."""
    with open_run(run_directory) as run, styled():
        series = [(one.label, one.series) for one in data.load([run]).contenders]
        figure = curve_figure(series, PANELS, columns=len(PANELS))
        figure.savefig(image, dpi=130, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
