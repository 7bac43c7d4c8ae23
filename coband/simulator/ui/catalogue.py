"""All runs and sweeps below a directory, each as a list shows it: found again at each look, read again only when their
files have changed.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from coband.simulator.experiments.runs.status import ENDED
from coband.simulator.experiments.store import opening
from coband.simulator.experiments.store.files import (
    DATABASE,
    JOBS,
    MANIFEST,
    SCENARIO,
    STATUS,
    StoreError,
    manifest_of,
    runs_below,
)
from coband.simulator.experiments.store.manifest import Manifest

DAMAGED, KILLED, RUNNING, UNKNOWN = "damaged", "killed", "running", "unknown"
SILENCE = 120.0
"""Seconds without a change of any file after which a run on another machine counts as killed."""
WATCHED = (MANIFEST, DATABASE, f"{DATABASE}-wal", STATUS)
"""Files that change when anything does that a list shows."""

Signature = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class Entry:
    """A run or a sweep in a list.

    Attributes:
        id: a short digest of its place, which pages are asked for by.
        path: its directory.
        place: that below the directory of all runs.
        kind: "run", "sweep" or "frontier".
        status: running, finished, failed, interrupted, stopped, killed, damaged or unknown.
        started, finished: in UTC as ISO 8601; empty if unknown.
        algorithms: names, in the run's order.
        labels: labels, or variants of a sweep.
        trouble: what is wrong with the store; empty if nothing is known to be.
    """

    id: str
    path: Path
    place: str
    kind: str = "run"
    status: str = UNKNOWN
    scenario: str = ""
    started: str = ""
    finished: str = ""
    algorithms: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    jobs: dict[str, int] = field(default_factory=dict)
    total: int = 0
    trouble: str = ""
    process: int | None = None
    host: str = ""

    @property
    def done(self) -> int:
        return self.jobs.get("finished", 0)

    @property
    def broken(self) -> int:
        """Jobs that broke off."""
        return self.jobs.get("failed", 0) + self.jobs.get("violated", 0)

    @property
    def duration(self) -> str:
        """How long it took, in words; empty if that is unknown."""
        try:
            seconds = (datetime.fromisoformat(self.finished) - datetime.fromisoformat(self.started)).total_seconds()
        except (ValueError, TypeError):
            return ""
        hours, rest = divmod(round(seconds), 3600)
        return (
            f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{rest} s"
        )

    def is_alive(self) -> bool:
        """Whether its driver still works: by its process on this machine, elsewhere by its files."""
        if self.process is not None and self.host == socket.gethostname() and os.name == "posix":
            return _is_process(self.process)
        return time.time() - _last_change(self.path) < SILENCE


def id_of(place: str) -> str:
    """The digest of a place below the directory of all runs."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def signature(path: Path) -> Signature:
    """What changes when the files of a run do: time and size of each."""
    return tuple(_stamp(path / name) for name in WATCHED)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def read(path: Path, root: Path) -> Entry:
    """Read what a list shows of a run; what is wrong with it is part of the entry, not an error."""
    place = str(path.relative_to(root)) if path != root else path.resolve().name
    manifest = manifest_of(path)
    jobs, algorithms, labels, trouble = _jobs(path, root)
    status = str(manifest.get("status") or UNKNOWN)
    return Entry(
        id=id_of(place),
        path=path,
        place=place,
        kind=_kind(manifest, path),
        status=status if status in (*ENDED, RUNNING) else UNKNOWN,
        scenario=str(manifest.get("scenario") or ""),
        started=str(manifest.get("started") or ""),
        finished=str(manifest.get("finished") or ""),
        algorithms=algorithms,
        labels=labels,
        jobs=jobs,
        total=max(sum(jobs.values()), _whole(manifest.get("jobs")) or 0),
        trouble=trouble,
        process=_whole(manifest.get("process")),
        host=str(manifest.get("host") or ""),
    )


def _kind(manifest: Manifest, path: Path) -> str:
    if "objectives" in manifest:
        return "frontier"
    return "sweep" if (path / STATUS).is_file() else "run"


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None


def _jobs(path: Path, root: Path) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...], str]:
    """Jobs by status, algorithms, labels, and what is wrong with the store."""
    file = path / DATABASE
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):  # links may lead in a circle
        return {}, (), (), f"{DATABASE} is a link that leads out of the directory"
    if not file.is_file():
        return {}, (), (), f"there is no {DATABASE}"
    query = "SELECT label, algorithm, status, count(*) FROM jobs GROUP BY label, algorithm, status ORDER BY min(job)"
    try:
        with closing(opening.connect(file)) as connection:
            opening.require_version(connection, Path(DATABASE))
            rows = [
                (str(label), str(name), str(status), int(n)) for label, name, status, n in connection.execute(query)
            ]
    except StoreError as error:
        return {}, (), (), str(error).rstrip(".")
    except opening.UNUSUAL as error:
        return {}, (), (), f"{DATABASE} cannot be read ({error})"
    jobs: dict[str, int] = {}
    for _, _, status, count in rows:
        jobs[status] = jobs.get(status, 0) + count
    return jobs, tuple(dict.fromkeys(row[1] for row in rows)), tuple(dict.fromkeys(row[0] for row in rows)), ""


def _is_process(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _last_change(path: Path) -> float:
    """When any file of a run changed last, in seconds since 1970."""
    files = [path / name for name in (*WATCHED, SCENARIO)]
    with suppress(OSError):
        files += (path / JOBS).iterdir()
    return max((stamp[0] / 1e9 for file in files if (stamp := _stamp(file)) is not None), default=0.0)


PATIENCE = 0.25
"""Seconds that one look spends on checks; stores for which there was no time are checked at the next looks."""


@dataclass
class _Known:
    """What is remembered of a run as long as its files stay the same."""

    signature: Signature
    entry: Entry
    checked: bool = False


class Catalogue:
    """Finds and remembers runs; several threads may look at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[Path, _Known] = {}
        self._lock = Lock()

    def entries(self) -> list[Entry]:
        """All runs, the one that was started last first."""
        with self._lock:
            self._refresh()
            found = [_current(known.entry) for known in self._known.values()]
        return sorted(found, key=lambda entry: (entry.started, entry.place), reverse=True)

    def find(self, ids: Sequence[str]) -> list[Entry]:
        """The runs with these ids, in their order; ids of no run are left out."""
        found = {entry.id: entry for entry in self.entries()}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    @property
    def unchecked(self) -> bool:
        """Whether some stores have not been checked yet."""
        with self._lock:
            return any(not known.checked for known in self._known.values())

    def _refresh(self) -> None:
        """Look at all directories, and read those that are new or have changed."""
        found = list(runs_below(self.root))
        for path in set(self._known) - set(found):
            del self._known[path]
        for path in found:
            now, known = signature(path), self._known.get(path)
            if known is None or known.signature != now:
                self._known[path] = _Known(now, read(path, self.root))
        self._check(time.monotonic() + PATIENCE)

    def _check(self, end: float) -> None:
        """Check stores, as long as there is time."""
        for known in self._known.values():
            if not known.checked and time.monotonic() < end:
                known.checked = True
                ended = known.entry.status != RUNNING
                if ended and not known.entry.trouble and (found := _trouble(known.entry.path / DATABASE)):
                    known.entry = replace(known.entry, trouble=found)


def _trouble(file: Path) -> str:
    """What is wrong with a store; empty if nothing."""
    try:
        opening.require_sound(file)
    except StoreError:
        return f"{DATABASE} is damaged"
    except OSError as error:
        return f"{DATABASE} cannot be read ({error.strerror})"
    return ""


def _current(entry: Entry) -> Entry:
    """An entry as it is now: a driver may have died without a trace."""
    if entry.status == RUNNING and not entry.is_alive():
        return replace(entry, status=KILLED)
    if entry.trouble and entry.status != RUNNING:
        return replace(entry, status=DAMAGED)
    return entry


@dataclass(frozen=True)
class Choice:
    """Which runs to list; an empty part lets all through.

    Attributes:
        words: each must occur in the place, scenario, an algorithm or a label, whatever the case.
        since, until: first and last day on which a run was started, as ISO 8601.
    """

    words: str = ""
    status: str = ""
    algorithm: str = ""
    scenario: str = ""
    since: str = ""
    until: str = ""

    def of(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The runs that it lets through."""
        return (entry for entry in entries if self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        text = " ".join((entry.place, entry.scenario, entry.kind, *entry.algorithms, *entry.labels)).casefold()
        day = entry.started[:10]
        return (
            all(word in text for word in self.words.casefold().split())
            and self.status in ("", entry.status)
            and (not self.algorithm or self.algorithm in entry.algorithms)
            and self.scenario in ("", entry.scenario)
            and (not self.since or (bool(day) and day >= self.since))
            and (not self.until or (bool(day) and day <= self.until))
        )
