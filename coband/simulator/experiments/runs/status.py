"""How far a run or a sweep is."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coband.simulator.experiments.runs.results import Broken, Failure

FAILURES_KEPT = 50
ENDED = ("finished", "failed", "interrupted", "stopped")
"""States of runs that have come to an end; that of a killed one stays ``running``."""


def now() -> str:
    """The time, in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class EntryStatus:
    """How far one entry of ``algorithms`` is.

    Attributes:
        total: jobs, as far as is known now.
        done: finished ones, with those of earlier drivers.
        kept: how many of them are from earlier drivers.
        seconds: what the others took, in all.
    """

    total: int = 0
    done: int = 0
    failed: int = 0
    kept: int = 0
    seconds: float = 0.0

    @property
    def remaining(self) -> int:
        """Jobs that are still to end."""
        return max(0, self.total - self.done - self.failed)

    @property
    def mean_seconds(self) -> float | None:
        """What a job takes; None while none has ended."""
        ran = self.done - self.kept
        return self.seconds / ran if ran else None


@dataclass
class Status:
    """How far a run or a sweep is.

    Attributes:
        state: running, finished, failed (all has ended, some jobs broke off), interrupted or stopped (it cannot go on).
        resume: command that goes on with it.
        workers: who runs the jobs.
        dashboard: a page about them.
        elapsed: seconds since this driver began.
        entries: by label in the scenario.
        failures: the first of them; the store has them all.
        message: why it stopped.
        called_off: whether a listener of its driver has stopped it.
        under_way: how much of the jobs under way is done, in jobs.
    """

    name: str
    state: str = "running"
    resume: str = ""
    workers: str = ""
    dashboard: str | None = None
    process: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    started: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    elapsed: float = 0.0
    entries: dict[str, EntryStatus] = field(default_factory=dict)
    failures: list[Broken] = field(default_factory=list)
    message: str = ""
    called_off: bool = False
    under_way: float = 0.0

    @property
    def done(self) -> int:
        """Finished jobs."""
        return sum(entry.done for entry in self.entries.values())

    @property
    def failed(self) -> int:
        """Jobs that broke off."""
        return sum(entry.failed for entry in self.entries.values())

    @property
    def ended(self) -> int:
        """Jobs that have finished or broken off."""
        return self.done + self.failed

    @property
    def total(self) -> int:
        """All jobs, as far as is known now."""
        return sum(entry.total for entry in self.entries.values())

    @property
    def rate(self) -> float | None:
        """Jobs that this driver's workers end per second."""
        ran = self.ended - sum(entry.kept for entry in self.entries.values())
        return ran / self.elapsed if ran and self.elapsed else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate: the seconds of the jobs to come, at the rate at which such seconds went by so far.

        Jobs of an algorithm that has not ended one yet count like the mean of all, and so do those under way. None
        before the first job has ended.
        """
        seconds = sum(entry.seconds for entry in self.entries.values())
        ran = sum(entry.done - entry.kept for entry in self.entries.values())
        if not ran or not seconds or not self.elapsed:
            return None
        means = {name: entry.mean_seconds for name, entry in self.entries.items()}
        mean = seconds / ran
        left = sum(e.remaining * (mean if (m := means[name]) is None else m) for name, e in self.entries.items())
        begun = self.under_way * mean
        return max(0.0, left - begun) * self.elapsed / (seconds + begun)

    def fail(self, failure: Failure) -> None:
        """Note a failure; the store has them all."""
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(failure.plain)
