"""Limits that a scenario sets to its runs, time by the clock and room on the disk; and a watch over the disk."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.experiments.runs.forecast import LITTLE_DISK, estimate
from coband.simulator.experiments.runs.memory import in_bytes
from coband.simulator.experiments.scenario.document import Limit
from coband.simulator.experiments.store.files import free_bytes

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.study import Study

WEIGH_SECONDS = 10.0
FAR = 3.0
"""So many times what was foretold is worth a warning."""


class LimitReached(BaseException):
    """A limit of the scenario is reached; like Ctrl-C it ends jobs under way. The text says which."""


def check_limit(limit: Limit, seconds: float, directory: Path) -> None:
    """Compare what a run has taken so far with what it may take.

    Args:
        seconds: since it began.
        directory: where its results go.

    Raises:
        LimitReached: it may take no more.
    """
    if seconds >= limit.seconds:
        raise LimitReached(f"limit.wall_time, {limit.wall_time}, is reached")
    if limit.disk is not None and size_of(directory) >= limit.bytes:
        raise LimitReached(f"limit.disk, {limit.disk}, is reached")


def size_of(directory: Path) -> float:
    """Bytes of all files below a directory."""
    total = 0
    for file in directory.rglob("*"):
        with suppress(OSError):  # it has just been removed
            total += file.stat().st_size
    return total


class DiskWatch:
    """Weighs the directory of a run now and then, and says once when it is far larger than was foretold.

    Args:
        now: time by the monotonic clock.
    """

    def __init__(self, study: Study, directory: Path, now: float) -> None:
        self._study, self._directory, self._weighed = study, directory, now

    def weigh(self, now: float) -> str:
        """What there is to say; mostly nothing."""
        if now - self._weighed < WEIGH_SECONDS:
            return ""
        size, self._weighed = size_of(self._directory), now
        if size < LITTLE_DISK or size < FAR * (most := estimate(self._study).most):
            return ""
        self._weighed = math.inf
        return (
            f"{self._directory} has {in_bytes(size)} so far, where about {in_bytes(most)} were foretold, and the disk "
            f"has room for {in_bytes(free_bytes(self._directory))}. Ctrl-C keeps what is finished; --trace off needs "
            "far less, and limit.disk in the scenario ends it in time."
        )
