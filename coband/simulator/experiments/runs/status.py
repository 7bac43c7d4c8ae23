"""How far a run or a sweep is, and the lock that keeps a second driver out."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.store.files import LOCK, OWNER, STATUS, OutputError, again, writing
from coband.simulator.scenario_errors import RequestError

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
    failures: list[dict[str, Any]] = field(default_factory=list)
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
            self.failures.append(asdict(failure))


class UnderWay:
    """The jobs under way, and the pulls that each has made and will make.

    Args:
        folder: where worker processes write their `runs.attempt.ProgressFile`; None where jobs run in this process.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[Hashable, Path | None] = {}
        self._to_make: dict[Hashable, int] = {}
        self._made: dict[Hashable, int] = {}
        self._begun = 0

    def begins(self, key: Hashable, pulls: int | None) -> Path | None:
        """A job is handed out, which makes so many pulls, if that is known; where it is to write how far it is."""
        self._begun += 1
        self._files[key] = None if self._folder is None else self._folder / str(self._begun)
        self._to_make[key] = pulls or 0
        return self._files[key]

    def advances(self, key: Hashable, pulls: int) -> None:
        """A job has made so many pulls."""
        self._made[key] = pulls

    def ends(self, key: Hashable) -> None:
        """A job has ended."""
        if (file := self._files.pop(key)) is not None:
            file.unlink(missing_ok=True)
        self._made.pop(key, None)

    def look(self) -> float:
        """How much of the jobs under way is done, in jobs; of those without a known number of pulls nothing."""
        for key, file in self._files.items():
            if file is not None:
                with suppress(OSError, ValueError):  # there is none yet
                    self._made[key] = int(file.read_text(encoding="ascii"))
        return sum(min(1.0, made / most) for key, made in self._made.items() if (most := self._to_make[key]))


LOOK_SECONDS = 0.1
"""How long a driver waits for the lock, in seconds: longer than `is_held` keeps it."""


class LockedError(RequestError):
    """Another driver works in the directory; the text says which."""


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, which goes when this process goes, however that ends.

    Raises:
        LockedError: another process holds it.
        StorageError: nothing can be written there.
    """
    from filelock import FileLock, Timeout  # what only reads scenarios does without

    lock = FileLock(directory / LOCK)
    with writing(directory):
        try:
            lock.acquire(timeout=LOOK_SECONDS)
        except Timeout:
            raise LockedError(
                f"another run is under way in {directory} ({_owner(directory)}). Wait for it, look at it with "
                f"`coband sweep --status {directory}`, or choose another --out DIR."
            ) from None
    try:
        with writing(directory):
            (directory / OWNER).write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def is_held(directory: Path) -> bool:
    """Whether a driver works in the directory; True too where that cannot be found out, as nothing may be written."""
    if not (directory / LOCK).is_file():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(directory / LOCK).acquire(timeout=0):
            return False
    except (Timeout, OSError):
        return True


def _owner(directory: Path) -> str:
    try:
        return (directory / OWNER).read_text(encoding="utf-8", errors="replace") or "unknown process"
    except OSError:
        return "unknown process"


def read(directory: Path) -> Status:
    """The status of the driver in a directory; one that was killed shows as ``killed``.

    Raises:
        OutputError: nothing has run there, or its status is damaged.
    """
    file = directory / STATUS
    if not file.is_file():
        raise OutputError(f"{directory} holds no run: there is no {file}. Give the directory that --out named.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["entries"] = {name: EntryStatus(**entry) for name, entry in found["entries"].items()}
        status = Status(**found)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise OutputError(f"{file} is damaged ({error}); {again(directory)}.") from error
    if status.state == "running" and not is_held(directory):
        status.state = "killed"
    return status
