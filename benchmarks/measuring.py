"""One measurement: CPU seconds of two forms of the same computation, in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coband.simulator.experiments.runs.job import few_collections


@dataclass
class Measured:
    """CPU seconds of both forms, whether they decided alike, and what else is worth knowing."""

    textbook: float
    fast: float
    same: bool
    note: str


def seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least CPU time of some calls, and the last result; garbage is collected as in a job of a run."""
    best, result = np.inf, None
    for _ in range(repeats):
        gc.collect()
        with few_collections():
            start = time.process_time()
            result = function()
            best = min(best, time.process_time() - start)
    return best, result


Cases = Mapping[str, tuple[Callable[[], Measured], str]]
"""By name: what to run, and what it is with the target for the ratio."""


@dataclass
class Figure:
    """One number without a textbook form beside it.

    Attributes:
        found: what was measured, with its unit.
        target: what it should be at most, or what the unit says.
        met: whether it is.
    """

    found: str
    target: str
    met: bool


Figures = Mapping[str, tuple[Callable[[], Figure], str]]
"""By name: what to run, and what it is."""
