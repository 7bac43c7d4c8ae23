"""Reading runs back: finished ones, and what a killed one has left."""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import FloatArray
from coband.simulator.core.records.trace import EVENTS
from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.results import Failure, Record, Results
from coband.simulator.experiments.store import files, opening, schema
from coband.simulator.experiments.store.files import StoreError as StoreError
from coband.simulator.experiments.store.manifest import Manifest, declared
from coband.simulator.metrics import Metric, by_name
from coband.simulator.scenario_errors import RequestError

_JOBS = "SELECT job, label, algorithm, replication, seed, trace, address, status, result, error FROM jobs ORDER BY job"


@dataclass(frozen=True)
class StoredJob:
    """One job of a stored run.

    Attributes:
        id: its number in the file that holds its rows.
        status: waiting, running, finished, interrupted, violated or failed; a killed run leaves "running" behind.
        trace: level at which it was traced.
        record: its results, None unless it finished.
        part: the connection that holds its rows.
    """

    id: int
    label: str
    algorithm: str
    replication: int
    seed: int
    trace: str
    address: str
    status: str
    record: Record | None
    error: str | None
    part: sqlite3.Connection


class Event(NamedTuple):
    """One event as the view ``trace`` spells it; None where something does not apply."""

    label: str
    replication: int
    seq: int
    time: float
    event: str
    node: str | None
    peer: str | None
    message: int | None
    cause: int | None
    kind: str | None
    scalars: int
    hop: int
    round: int | None
    version: int | None
    value: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True)
class Series:
    """Cumulative numbers of one job after some of its turns, each array of shape (points,)."""

    replication: int
    turns: NDArray[np.int64]
    times: FloatArray
    regret: FloatArray
    scalars: NDArray[np.int64]
    energy: FloatArray | None = None
    """Joules that turns and messages have taken; None without batteries."""
    reward: FloatArray | None = None
    """Sum of the rewards; None in runs of older versions, which did not keep it."""


class StoredRun:
    """A run, opened for reading.

    Attributes:
        path: its directory, or the file when it was opened as a file.
        file: its run.sqlite.
        files: that, and those of jobs that are not collected.
        manifest: versions, platform, command line, status.
    """

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        self.path, self.file, self.files = path, files[0], tuple(files)
        self._parts: list[sqlite3.Connection] = []
        self.jobs: list[StoredJob] = []
        try:
            for number, file in enumerate(files):
                self._add(file, whole=number == 0)
        except BaseException:
            self.close()
            raise
        self.manifest: Manifest = json.loads(self.meta("manifest") or "{}")
        self.scenario: str = self.meta("scenario") or ""

    def _add(self, file: Path, whole: bool) -> None:
        try:
            connection = opening.connect(file)
            self._parts.append(connection)
            if not whole and connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                return  # a job killed before its tables were there
            opening.require_version(connection, file)
            found = [
                StoredJob(*(*known, None if result is None else json.loads(result), error, connection))
                for *known, result, error in connection.execute(_JOBS)
            ]
        except sqlite3.DatabaseError as error:
            raise opening.explained(file, error) from error
        if whole:
            self.jobs = found
            return
        # Other files count until the run's file has taken them in, in which jobs may have other numbers and labels.
        newer = {job.address: job for job in found}
        self.jobs = [
            replace(newer[job.address], label=job.label) if job.status == "waiting" and job.address in newer else job
            for job in self.jobs
        ]

    @property
    def kind(self) -> str:
        """What to call it: a run, a sweep, or the search of a frontier."""
        return files.kind_of(self.manifest)

    def meta(self, key: str) -> str | None:
        """What the run has noted of itself: ``scenario`` and ``manifest``."""
        row = self._parts[0].execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that results can have, by name, as they were declared when the run began."""
        return by_name(declared(self.manifest))

    @property
    def connection(self) -> sqlite3.Connection:
        return self._parts[0]

    def select(self, label: str | None = None, replication: int | None = None) -> list[StoredJob]:
        """The jobs of a label and a replication, by label in the run's order and then by replication.

        Raises:
            StoreError: there is no such label or replication.
        """
        order = {name: number for number, name in enumerate(self.labels)}
        _check_choice("label", label, order)
        _check_choice("replication", replication, sorted({job.replication for job in self.jobs}))
        jobs = [job for job in self.jobs if label in (None, job.label) and replication in (None, job.replication)]
        return sorted(jobs, key=lambda job: (order[job.label], job.replication))

    @cached_property
    def names(self) -> Mapping[tuple[str, int, str | None], str]:
        """Agents with the names of their devices, such as "agent 3 (phone3)", by label, replication and agent.

        Names are stored with results: those of a job that has not finished are not known.
        """
        query = "SELECT 'agent ' || agent, json_extract(result, '$.name') FROM agents WHERE job = ?"
        rows = ((job, row) for job in self.jobs for row in job.part.execute(query, (job.id,)))
        return {(job.label, job.replication, node): f"{node} ({name})" for job, (node, name) in rows if name}

    def named(self, event: Event) -> Event:
        """An event with the names of its devices, for people."""
        node, peer = (self.names.get((event.label, event.replication, end), end) for end in (event.node, event.peer))
        return event._replace(node=node, peer=peer)

    @property
    def uncollected(self) -> list[StoredJob]:
        """Jobs that are in files of their own, since the run goes on or was killed; ``file`` lacks their events."""
        return [job for job in self.jobs if job.part is not self._parts[0]]

    @property
    def labels(self) -> dict[str, str]:
        """label -> algorithm, in the run's order."""
        return {job.label: job.algorithm for job in self.jobs}

    def results(self) -> Results:
        """The object that results.json holds, from what is stored."""
        records: dict[str, list[Record]] = {}
        failures = []
        for job in self.jobs:
            if job.record is not None:
                records.setdefault(job.label, []).append(job.record)
            elif job.status in ("violated", "failed"):
                failures.append(Failure(job.label, job.replication, job.status, job.error or "", ""))
        entries = [results.summarise(*label, records.get(label[0], ()), self.metrics) for label in self.labels.items()]
        return results.report(str(self.manifest.get("scenario", "")), entries, failures)

    def series(self, label: str) -> list[Series]:
        """The series of a label's finished jobs, in order of replication.

        Raises:
            StoreError: there is no such label.
        """
        return [read_series(job.part, job.id, job.replication) for job in self.select(label) if job.record is not None]

    def by_agent(self, label: str, replication: int | None = None) -> list[Record]:
        """The agents of a label's finished jobs, by replication and agent, with what each reports of itself.

        Raises:
            StoreError: there is no such label or replication.
        """
        query = (
            "SELECT a.agent, turns, regret, rounds, uplink, downlink, peer, result FROM agents a "
            "JOIN ledger_by_agent USING (job, agent) WHERE job = ? ORDER BY agent"
        )
        found = []
        for job in self.select(label, replication):
            for *numbers, own in job.part.execute(query, (job.id,)) if job.record is not None else ():
                known = dict(zip(results.AGENT_KEYS, numbers, strict=True))
                found.append({"replication": job.replication, **known, **json.loads(own or "{}")})
        return found

    def events(
        self, label: str | None = None, replication: int | None = None, **where: str | float | None
    ) -> Iterator[Event]:
        """Events job by job, in order of seq; read as they are asked for.

        Args:
            where: ``event``, ``node`` (as spelled, such as "agent 3") and ``kind``; ``start`` and ``end``, simulated
                times that are included; None for any.

        Raises:
            StoreError: there is no such label, replication, event or kind.
        """
        jobs = self.select(label, replication)
        _check_choice("event", where.get("event"), EVENTS)
        _check_choice("kind", where.get("kind"), self._kinds(jobs) if where.get("kind") is not None else ())
        return self.events_of(jobs, **where)

    def events_of(self, jobs: Iterable[StoredJob], **where: str | float | None) -> Iterator[Event]:
        """Events of some jobs, one job after the other, in order of seq; read as they are asked for."""
        tests = {"start": "time >=", "end": "time <="}
        given = {tests.get(name, f"{name} ="): value for name, value in where.items() if value is not None}
        conditions = "".join(f" AND {test} ?" for test in given)
        query = f"{schema.TRACE} SELECT {', '.join(Event._fields)} FROM trace WHERE job = ?{conditions} ORDER BY seq"
        for job in jobs:
            yield from map(Event._make, job.part.execute(query, (job.id, *given.values())))

    def _kinds(self, jobs: Iterable[StoredJob]) -> list[str]:
        query = "SELECT text FROM names WHERE job = ? ORDER BY code"
        return list(dict.fromkeys(row[0] for job in jobs for row in job.part.execute(query, (job.id,))))

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close all files; an error that comes from a damaged store becomes one that says so."""
        try:
            if isinstance(error, opening.UNUSUAL) and not isinstance(error, RequestError):
                found = opening.explained(self.file, error)
                if found is not error:
                    raise found from error
        finally:
            self.close()


def open_run(path: Path) -> StoredRun:
    """Open a run for reading: its directory, or its run.sqlite alone, which lacks jobs that are not collected yet.

    Raises:
        StoreError: there is no run, or its store is damaged or of another version.
    """
    file = opening.database(path)
    while True:
        jobs = sorted(filter(Path.is_file, (path / files.JOBS).glob("*.sqlite"))) if path.is_dir() else []
        try:
            run = StoredRun(path, [file, *jobs])
            break
        except opening.UNUSUAL as error:
            if not all(map(Path.is_file, jobs)):
                continue  # a job has finished in the meantime, and its file is gone: the run's file has it
            if isinstance(error, StoreError):
                raise
            raise opening.explained(file, error) from error
    try:
        opening.require_sound(file)
    except StoreError:
        run.close()
        raise
    return run


def read_series(part: sqlite3.Connection, job: int, replication: int) -> Series:
    """The series of a finished job."""
    query = "SELECT turn, time, regret, scalars FROM series WHERE job = ? ORDER BY turn"
    rows = np.array(part.execute(query, (job,)).fetchall(), dtype=np.float64).reshape(-1, 4)
    turns, times, regret, scalars = rows.T.copy()
    more = (_curve(part, job, *one, len(turns)) for one in (("energies", "energy"), ("rewards", "reward")))
    return Series(replication, turns.astype(np.int64), times, regret, scalars.astype(np.int64), *more)


def _curve(part: sqlite3.Connection, job: int, table: str, column: str, points: int) -> FloatArray | None:
    """A further number at the points of a job's series; None where it was not counted."""
    if not part.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return None  # a store of an older version
    rows = part.execute(f"SELECT {column} FROM {table} WHERE job = ? ORDER BY turn", (job,)).fetchall()
    return np.array(rows, dtype=np.float64)[:, 0] if points and len(rows) == points else None


def _check_choice(what: str, given: object, known: Iterable[object]) -> None:
    """Refuse a name that does not occur, with the nearest ones."""
    names = [str(name) for name in known]
    if given is None or str(given) in names:
        return
    if listed := [name for name in str(given).split(",") if name in names]:
        raise StoreError(f"this run has no {what} {given!r}; ask for {' and '.join(listed)} one at a time.")
    near = difflib.get_close_matches(given, names, n=3) if isinstance(given, str) else []
    shown = near or (names if len(names) <= 10 else [*names[:9], "...", names[-1]])
    raise StoreError(f"there is no {what} {given!r} in this run; there is {', '.join(shown) or 'none at all'}.")
