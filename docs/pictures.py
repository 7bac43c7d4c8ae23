"""Make the README's pictures with the two commands that users would give: ``make pictures``, or
``python docs/pictures.py FOLDER`` for another folder than docs/images."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

IMAGES = Path(__file__).parent / "images"
FIGURES = ("regret",)
PLOT = (*FIGURES, "--format", "png", "--dpi", "120", "--width", "8.5")


def make(folder: Path, *settings: str) -> None:
    """Run the quickstart and draw its figures."""
    coband = [sys.executable, "-m", "coband"]
    with TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        subprocess.run([*coband, "run", "quickstart", "--out", run, *settings], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*coband, "plot", run, *PLOT, "--force", "--out", folder], check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else IMAGES)
