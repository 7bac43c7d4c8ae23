"""Small files in the formats of the real ones."""

from pathlib import Path

import numpy as np

LETTERS = "abcdefghijkl?"


def write_magic(directory: Path, rows: int = 60) -> Path:
    """magic04.data with three groups of points, the first of them all g, the second all h, the third mixed."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(rows):
        group = i % 3
        numbers = 20.0 * group + rng.standard_normal(10)
        label = "gh"[group] if group < 2 else "gh"[i // 3 % 2]
        lines.append(",".join(f"{number:.4f}" for number in numbers) + f",{label}\n")
    path = directory / "magic04.data"
    path.write_text("".join(lines))
    return path


def write_mushroom(directory: Path, rows: int = 60) -> Path:
    """agaricus-lepiota.data with random categories, a third of the mushrooms poisonous; column 22 never varies."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(rows):
        letters = [LETTERS[k] for k in rng.integers(len(LETTERS), size=21)]
        lines.append(",".join(["p" if i % 3 == 0 else "e", *letters, "w"]) + "\n")
    path = directory / "agaricus-lepiota.data"
    path.write_text("".join(lines))
    return path


def write_shuttle(directory: Path, rows: int = 60) -> Path:
    """shuttle.trn and shuttle.tst, two thirds and a third of the rows; class 1 + row % 7, features about its number."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(rows):
        numbers = rng.integers(-9, 10, size=9) + 30 * (i % 7)
        lines.append(" ".join(map(str, [*numbers, 1 + i % 7])) + "\n")
    cut = 2 * rows // 3
    (directory / "shuttle.tst").write_text("".join(lines[cut:]))
    path = directory / "shuttle.trn"
    path.write_text("".join(lines[:cut]))
    return path
