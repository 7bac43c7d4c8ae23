"""Our algorithms against the programs of their authors, in one run, on the same worlds.

Each module runs one program: ``python -m benchmarks.authors.NAME [WORLDS]``. Nothing is fetched: an environment
variable says where a checkout is, and without it the comparison is skipped. Worlds are drawn by coband; the program is
given their arms and rewards turn by turn, so that differences are paired.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy import stats

MARGIN = 0.05
"""Two means are equivalent if they differ by less than this share of the authors' mean."""


def program(variable: str, repository: str, file: str) -> ModuleType:
    """A module of a checkout; the process ends with a reason where the environment names none."""
    place = os.environ.get(variable)
    if not place:
        print(f"skipped: {variable} must name a checkout of github.com/{repository}")
        sys.exit(0)
    path = Path(place) / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        print(f"{variable}={place}: there is no {file}")
        sys.exit(2)
    sys.path.insert(0, str(path.parent))  # its other files
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def equivalence(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The larger p-value of two one-sided paired t-tests (Schuirmann 1987): that means differ by `MARGIN` or more."""
    differences, margin = np.subtract(ours, theirs), MARGIN * float(np.mean(theirs))
    error = float(stats.sem(differences))
    if error == 0.0:
        return 0.0 if abs(float(differences.mean())) < margin else 1.0
    least = min(margin + differences.mean(), margin - differences.mean())
    return float(stats.t.sf(least / error, len(differences) - 1))


def show(what: str, ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Print both means and the test; whether they are equivalent."""
    p, ratio = equivalence(ours, theirs), float(np.mean(ours) / np.mean(theirs))
    verdict = "equivalent" if p < 0.05 else "NOT equivalent"
    print(
        f"{what}: ours {np.mean(ours):.6g}, theirs {np.mean(theirs):.6g}, ratio {ratio:.4f}, {len(ours)} worlds, "
        f"{verdict} within {100 * MARGIN:g} % (p = {p:.2g})",
        flush=True,
    )
    return p < 0.05
