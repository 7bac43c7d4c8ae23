"""The README's pictures: they are there, small, and what the commands beside them draw."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from docs import pictures

ROOT = Path(__file__).parents[2]
MOST_BYTES = 150_000
SMALL = ("--set", "schedule.turns=60", "--set", "agents.count=5", "--replications", "2", "--workers", "1")
TOLERANCE = 0.02
"""Of the mean difference of brightness: fonts are drawn a little differently elsewhere."""


def test_the_readme_shows_what_the_script_makes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.+?\]\(docs/images/(\w+)\.png\)", readme)
    assert shown == list(pictures.FIGURES)
    assert sorted(path.name for path in pictures.IMAGES.iterdir()) == sorted(f"{name}.png" for name in shown)
    assert f"coband plot runs/quickstart-0001 {' '.join(pictures.PLOT)}" in " ".join(readme.split())
    for name in shown:
        file = pictures.IMAGES / f"{name}.png"
        assert file.stat().st_size < MOST_BYTES
        assert image.imread(file).shape[1] == 1020


def test_the_script_makes_pictures(tmp_path: Path) -> None:
    pictures.make(tmp_path, *SMALL)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(pictures.FIGURES)


@pytest.mark.slow
def test_the_pictures_are_those_of_the_quickstart(tmp_path: Path) -> None:
    pictures.make(tmp_path)
    for name in pictures.FIGURES:
        made, kept = (image.imread(folder / f"{name}.png")[..., :3] for folder in (tmp_path, pictures.IMAGES))
        assert made.shape == kept.shape
        assert float(np.abs(made - kept).mean()) < TOLERANCE
