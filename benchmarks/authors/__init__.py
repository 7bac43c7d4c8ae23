"""Our algorithms against the programs of their authors, in one run, on the same worlds.

``python -m benchmarks.authors.NAME [WORLDS]``. Nothing is fetched: an environment variable names a checkout, and
without it the comparison is skipped. Worlds are drawn by coband; the program is given their arms and rewards turn by
turn, so that differences are paired.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import stats

from coband.extensions.conformance.runs import algorithm, plan_of, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.result import RunResult

MARGIN = 0.05
"""Two means are equivalent if they differ by less than this share of the authors' mean."""


def checkout(variable: str, repository: str, file: str) -> Path:
    """A file of a checkout; the process ends with a reason where the environment names none."""
    place = os.environ.get(variable)
    if not place:
        print(f"skipped: {variable} must name a checkout of github.com/{repository}")
        sys.exit(0)
    path = Path(place) / file
    if not path.is_file():
        print(f"{variable}={place}: there is no {file}")
        sys.exit(2)
    return path


def program(variable: str, repository: str, file: str) -> ModuleType:
    """The same as a module."""
    path = checkout(variable, repository, file)
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def timed(
    name: str, config: dict[str, Any], problem: dict[str, Any], agents: int, seed: int, **plan: Any
) -> tuple[RunResult, float]:
    """A run of ours without delays, and its CPU seconds."""
    asked, entry = plan_of({"agents": {"count": agents}, "network": {}, **plan}), algorithm(name)
    engine = Engine(asked, entry, entry.config.model_validate(config), world(problem, seed, agents), Streams(seed))
    started = time.process_time()
    return engine.run(), time.process_time() - started


def equivalence(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The larger p-value of two one-sided paired t-tests (Schuirmann 1987): that means differ by `MARGIN` or more."""
    differences, margin = np.subtract(ours, theirs), MARGIN * float(np.mean(theirs))
    error = float(stats.sem(differences))
    if error == 0.0:
        return 0.0 if abs(float(differences.mean())) < margin else 1.0
    least = min(margin + differences.mean(), margin - differences.mean())
    return float(stats.t.sf(least / error, len(differences) - 1))


def compared(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], *names: str) -> bool:
    """Print the numbers of both sides, world by world (ours, theirs), and last their CPU seconds; whether all numbers
    are equivalent."""
    *numbers, seconds = (
        np.array(column).T for column in zip(*(zip(*pair, strict=True) for pair in pairs), strict=True)
    )
    alike = True
    for name, (ours, theirs) in zip(names, numbers, strict=True):
        p, difference = equivalence(ours, theirs), ours - theirs
        apart = difference.mean() / (stats.sem(difference) or 1.0)
        alike &= p < 0.05
        print(
            f"{name}: ours {ours.mean():.6g}, theirs {theirs.mean():.6g}, ratio {ours.mean() / theirs.mean():.4f}, "
            f"{apart:.1f} standard errors apart, the same in {np.isclose(difference, 0).sum()} of {len(pairs)} worlds, "
            f"{'' if p < 0.05 else 'NOT '}equivalent within {MARGIN:.0%} (p = {p:.2g})"
        )
    own, other = seconds.sum(axis=1)
    print(f"CPU seconds: ours {own:.3g}, theirs {other:.3g}, {other / own:.1f} times as many")
    return alike
