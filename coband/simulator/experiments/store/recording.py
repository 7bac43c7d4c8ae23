"""A job's own file, which fills while the job runs, so that a killed run leaves a readable trace; and done-files, which
hold a finished job as the bytes that a worker sends back.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat, zip_longest
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coband.simulator.core.records.trace import COLUMNS, OFF, PlainRow
from coband.simulator.experiments.runs.results import Record, own_numbers, plain
from coband.simulator.experiments.store import schema
from coband.simulator.experiments.store.files import PASSING, replace_bytes, uri

if TYPE_CHECKING:
    from coband.simulator.core.engine import RunResult
    from coband.simulator.experiments.runs.job import Job


Rows = list[tuple[Any, ...]]
LEVEL = 3
"""Of compression."""


@dataclass(frozen=True)
class CachedResult:
    """What a finished job has given.

    Attributes:
        tables: rows of the store by table.
    """

    record: Record
    tables: Mapping[str, Rows]


def packed(record: Record, tables: Mapping[str, Rows]) -> bytes:
    """The content of a done-file: JSON, compressed by gzip; the rows come without the number of the job."""
    rows = {table: [row[1:] for row in tables[table]] for table in schema.OF_RESULTS}
    content = {"record": record, "tables": rows}
    text = json.dumps(content, allow_nan=False, default=methodcaller("item")).encode()
    return compressed(text)


def unpacked(content: bytes) -> CachedResult:
    """The job in a done-file.

    Raises:
        ValueError: it is not whole, which gzip's checksum says.
    """
    try:
        found = json.loads(decompressed(content))
        record, rows = found["record"], found["tables"]
        if not isinstance(record, dict) or not set(rows) <= set(schema.OF_RESULTS):
            raise ValueError("not a done-file: no record, or other tables than those of a job")
        return CachedResult(record, rows)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a done-file: {error}") from error


def compressed(content: bytes) -> bytes:
    """The content, compressed by gzip; the same bytes for the same content."""
    return gzip.compress(content, compresslevel=LEVEL, mtime=0)


def decompressed(content: bytes) -> bytes:
    """What :func:`compressed` was given.

    Raises:
        ValueError: it is not whole.
    """
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a done-file: {error}") from error


class ResultCache:
    """Done-files, each named after the address of its job.

    Args:
        directory: where they are; made when the first one is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def file(self, address: str) -> Path:
        """Where the job with this address is, or would be."""
        return self._directory / address[:2] / f"{address}.json.gz"

    def holds_any(self) -> bool:
        """Whether any job has finished."""
        return any(self._directory.glob("*/*"))

    def get(self, address: str) -> CachedResult | None:
        """A finished job; None when it is not there, or was cut off by a power failure."""
        with suppress(FileNotFoundError, ValueError):
            return unpacked(self.file(address).read_bytes())
        return None

    def put(self, address: str, content: bytes) -> None:
        """Keep a finished job, whole or not at all.

        Raises:
            OSError: there is no room, or no permission.
        """
        file = self.file(address)
        try:
            replace_bytes(file, content)
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_bytes(file, content)


SERIES_POINTS = 1000

for _number in (np.int64, np.int32, np.bool_, np.float64, np.float32):
    sqlite3.register_adapter(_number, methodcaller("item"))  # nodes may note numpy's numbers


class Recording:
    """Writes one job's file.

    Args:
        file: where; a file of an earlier attempt is replaced.
    """

    def __init__(self, file: Path, job: Job) -> None:
        self.file, self._job = file, job
        remove(file)
        self._connection = schema.connect(str(file), collected=False)
        schema.insert(self._connection, "jobs", [job_row(job, "running")])
        self._names = 0
        places = ", ".join("?" * len(COLUMNS))
        self._insert = f"INSERT INTO events VALUES ({int(job.id)}, {places})"

    def sink(self, rows: Sequence[PlainRow], names: Sequence[str]) -> None:
        """Append a batch of the trace and commit it."""
        connection = self._connection
        try:
            connection.execute("BEGIN")
            connection.executemany(self._insert, rows)
            self._store_names(names)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._names = 0
            raise

    def _store_names(self, names: Sequence[str]) -> None:
        fresh = [(self._job.id, code, names[code]) for code in range(self._names, len(names))]
        if fresh:
            self._connection.executemany("INSERT OR REPLACE INTO names VALUES (?, ?, ?)", fresh)
            self._names = len(names)

    def store(self, result: RunResult) -> dict[str, Rows]:
        """Store ledger, series and single agents of a finished job; returns their rows."""
        found = tables(self._job.id, result, traced=self._job.trace != OFF)
        for table, rows in found.items():
            schema.insert(self._connection, table, rows)
        return found

    def close(self, status: str, record: Record | None = None, error: str | None = None) -> None:
        """Note how the job ended and close the file, which is then complete in itself."""
        try:
            schema.insert(self._connection, "jobs", [job_row(self._job, status, record, error)])
        finally:
            self._connection.close()


@contextmanager
def attached(connection: sqlite3.Connection, file: Path | None) -> Iterator[None]:
    """One transaction, in which what a job has recorded can be copied by :func:`copy_tables`; None for no file."""
    _let_go(connection)
    try:
        if file is not None:
            connection.execute("ATTACH ? AS part", (uri(file, "rw"),))
        with connection:
            connection.execute("BEGIN")
            yield
    finally:
        _let_go(connection)


def _let_go(connection: sqlite3.Connection) -> None:
    """Undo an open transaction and detach a job's file: an interrupt may come between any two steps."""
    if connection.in_transaction:
        connection.rollback()
    if connection.execute("SELECT 1 FROM pragma_database_list WHERE name = 'part'").fetchone():
        connection.execute("DETACH part")


def copy_tables(connection: sqlite3.Connection, tables: Sequence[str], number: int, job: int) -> None:
    """Copy rows of the job with a ``number`` in the attached file into the run's store, as those of ``job``."""
    for table in tables:
        columns = ", ".join(_columns(connection, table))
        copied = f"INSERT OR IGNORE INTO {table} SELECT ?, {columns} FROM part.{table} WHERE job = ?"
        connection.execute(copied, (job, number))


@dataclass(frozen=True)
class Recorded:
    """A job in a store, as far as it has come.

    Attributes:
        file: the store.
        number: of the job there.
        trace: level at which it was traced.
    """

    file: Path
    number: int
    address: str
    trace: str
    status: str
    record: Record | None
    error: str | None

    def content(self) -> bytes:
        """What its done-file holds, if it has finished; empty if not."""
        if self.record is None:
            return b""
        query = "SELECT * FROM {} WHERE job = ?"
        with closing(sqlite3.connect(uri(self.file), uri=True)) as connection:
            rows = {one: connection.execute(query.format(one), (self.number,)).fetchall() for one in schema.OF_RESULTS}
        return packed(self.record, rows)


def recorded(file: Path) -> list[Recorded]:
    """Return the jobs in a store; none where it is damaged, or its driver was killed before its tables were there.

    Raises:
        sqlite3.OperationalError: somebody else holds it.
    """
    query = "SELECT job, address, trace, status, result, error FROM jobs"
    try:
        with closing(sqlite3.connect(uri(file, "rw"), uri=True)) as connection:
            return [
                Recorded(file, number, place, trace, status, None if text is None else json.loads(text), error)
                for number, place, trace, status, text, error in connection.execute(query)
            ]
    except sqlite3.Error as error:
        if str(error) in PASSING:
            raise
    except ValueError:
        pass  # a text in it cannot be read
    return []


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table but for the first, which is the number of the job."""
    return [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")][1:]


BESIDE = ("", "-wal", "-shm")
"""Suffixes of a store and of SQLite's files beside it."""


def move(file: Path, to: Path) -> None:
    """Move a store, and SQLite's files beside it, which are there while somebody reads it."""
    for suffix in BESIDE:
        with suppress(FileNotFoundError):
            file.with_name(file.name + suffix).rename(to.with_name(to.name + suffix))


def remove(file: Path) -> None:
    """Delete a store, and SQLite's files beside it."""
    for suffix in BESIDE:
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def job_row(job: Job, status: str, record: Record | None = None, error: str | None = None) -> tuple[object, ...]:
    """The row of table ``jobs``."""
    numbers = [None] * len(schema.NUMBERS) if record is None else [record.get(key) for key in schema.NUMBERS]
    text = None if record is None else json.dumps(record, allow_nan=False)
    named = (job.id, job.label, job.algorithm, job.replication, job.seed, job.trace, job.address)
    return (*named, status, *numbers, text, error)


def sampled_turns(turns: int) -> list[int]:
    """At most `SERIES_POINTS` turn numbers out of 1 .. turns, evenly spaced, the last one included."""
    if turns <= SERIES_POINTS:
        return list(range(1, turns + 1))
    return [(index * turns + SERIES_POINTS - 1) // SERIES_POINTS for index in range(1, SERIES_POINTS + 1)]


def tables(job: int, result: RunResult, *, traced: bool = False) -> dict[str, Rows]:
    """The rows of ledger, curves and single agents of a finished job, by table; ``traced``: it has events."""
    ledger, ages = result.ledger, result.ages
    points = np.asarray(sampled_turns(len(result.times)), dtype=np.intp)
    turns, times, regret, scalars, energy, reward = (
        column[points - 1] if len(column) else column
        for column in (
            *(result.turns_series, result.times, result.regret_series),
            *(result.scalars_series, result.energy_series, result.reward_series),
        )
    )
    found: dict[str, Rows] = {
        "ledger": [
            (job, *key, one.sends, one.messages, one.scalars, one.scalars_broadcast_once)
            for key, one in sorted(ledger.by_kind.items())
        ],
        "ledger_by_agent": [
            (job, agent, *sent)
            for agent, sent in enumerate(
                zip(ledger.uplink_by_agent, ledger.downlink_by_agent, ledger.peer_by_agent, strict=True)
            )
        ],
        "ledger_by_round": [(job, *item) for item in sorted(ledger.by_round.items())],
        "ledger_by_field": [(job, *key, *numbers) for key, numbers in sorted(ledger.by_field().items())],
        "series": _curve(job, turns, times, regret, scalars),
        "agents": list(_agents(job, result)),
        "ages": _curve(job, points, *ages.series(points.astype(np.float64))) if ages.known else [],
        "energies": _curve(job, turns, energy) if len(energy) else [],
        "rewards": _curve(job, turns, reward) if len(reward) else [],
        "decisions": [],
    }
    if traced and ages.known:  # the age of every decision, by the number of the event that chose the arm
        taken = zip(ages.events, ages.pulls.tolist(), map(plain, ages.times.tolist()), strict=True)
        found["decisions"] = [(job, *one) for one in taken]
    return found


def _curve(job: int, *columns: NDArray[Any]) -> Rows:
    """Rows of some numbers at the points of a series; those that are not finite are null."""
    return list(zip(repeat(job), *(map(plain, column.tolist()) for column in columns), strict=False))


def _agents(job: int, result: RunResult) -> Iterator[tuple[Any, ...]]:
    for agent, gap in zip_longest(result.by_agent, result.closest):
        own = own_numbers(agent)
        if gap is not None:
            own["closest_decision"] = gap
        text = json.dumps(own, allow_nan=False) if own else None
        yield job, agent["agent"], agent["turns"], plain(agent["regret"]), agent["rounds"], text
