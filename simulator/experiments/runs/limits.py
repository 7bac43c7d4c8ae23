"""Limits that a scenario sets to its runs: time by the clock, and room on the disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from coband.simulator.experiments.scenario.document import Limit


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
