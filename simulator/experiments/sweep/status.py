"""How far a sweep is: written by its driver, read by anybody, also after the driver's death."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs.results import Failure, dump
from coband.simulator.experiments.store.directory import OutputError, read_json, replace_text
from coband.simulator.experiments.store.manifest import now
from coband.simulator.experiments.sweep import lock

FILE = "status.json"
WRITE_SECONDS = 1.0
FAILURES_KEPT = 50


@dataclass
class Progress:
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
    """How far a sweep is.

    Attributes:
        state: running, finished, failed (all has ended, some jobs broke off), interrupted or stopped (it cannot go on).
        resume: command that goes on with it.
        workers: who does the jobs.
        dashboard: a page about them.
        elapsed: seconds since this driver began.
        message: why it stopped.
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
    entries: dict[str, Progress] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    message: str = ""

    @property
    def done(self) -> int:
        """Finished jobs."""
        return sum(entry.done for entry in self.entries.values())

    @property
    def failed(self) -> int:
        """Jobs that broke off."""
        return sum(entry.failed for entry in self.entries.values())

    @property
    def total(self) -> int:
        """All jobs, as far as is known now."""
        return sum(entry.total for entry in self.entries.values())

    @property
    def rate(self) -> float | None:
        """Jobs that this driver's workers end per second."""
        ran = self.done + self.failed - sum(entry.kept for entry in self.entries.values())
        return ran / self.elapsed if ran and self.elapsed else None

    @property
    def seconds_left(self) -> float | None:
        """An estimate: the seconds of the jobs to come, at the rate at which such seconds went by so far.

        Jobs of an algorithm that has not ended one yet count like the mean of all.
        """
        seconds = sum(entry.seconds for entry in self.entries.values())
        ran = sum(entry.done - entry.kept for entry in self.entries.values())
        if not ran or not seconds or not self.elapsed:
            return None
        means = {name: entry.mean_seconds for name, entry in self.entries.items()}
        mean = seconds / ran
        left = sum(e.remaining * (mean if (m := means[name]) is None else m) for name, e in self.entries.items())
        return left * self.elapsed / seconds

    def fail(self, failure: Failure) -> None:
        """Note a failure; the store has them all."""
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(vars(failure))


class StatusFile:
    """Keeps a sweep's status on disk, at most once a second.

    Args:
        directory: the sweep's.
        status: what is kept.
    """

    def __init__(self, directory: Path, status: Status) -> None:
        self._file, self.status = directory / FILE, status
        self._begun = time.monotonic()
        self._written = -WRITE_SECONDS

    def update(self, expected: Callable[[], Mapping[str, int]], *, at_once: bool = False) -> bool:
        """Bring totals and times up to date and write them, when it is time; returns whether it was."""
        moment = time.monotonic()
        if not at_once and moment - self._written < WRITE_SECONDS:
            return False
        self._written = moment
        self.status.elapsed = moment - self._begun
        for entry, total in expected().items():
            self.status.entries[entry].total = total
        self.status.updated = now()
        replace_text(self._file, dump(asdict(self.status)))
        return True


def read(directory: Path) -> Status:
    """The status of the sweep in a directory; a driver that was killed shows as ``killed``.

    Raises:
        OutputError: there is no sweep.
    """
    file = directory / FILE
    if not file.is_file():
        raise OutputError(f"{directory} holds no sweep: there is no {file}. Give the directory that --out named.")
    found = read_json(file)
    found["entries"] = {name: Progress(**entry) for name, entry in found["entries"].items()}
    status = Status(**found)
    if status.state == "running" and not lock.is_held(directory):
        status.state = "killed"
    return status
