"""What a damaged store says: where it is damaged, which of its jobs are whole, and how to get the others again."""

from __future__ import annotations

import shlex
import sqlite3
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.store import digests, seal
from coband.simulator.experiments.store.errors import DamagedStoreError
from coband.simulator.experiments.store.uri import address

CHECKED_AT_ONCE = 256 * 2**20
"""Bytes: files up to this size are checked whenever they are opened, larger ones by ``coband trace verify`` alone."""
SECONDS = 10.0
"""Time limit of the search for whole jobs."""
PASSING = ("interrupted", "database is locked", "unable to open database file")
"""Errors of SQLite that say nothing about the file's content."""
STEPS = 100_000
"""SQLite instructions between two looks at the clock."""
MOST_JOBS = 40
UNUSUAL = (
    sqlite3.Error,
    struct.error,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
)
"""What reading a damaged file may end with."""


def connect(file: Path) -> sqlite3.Connection:
    """A store, opened for reading; views and triggers in it cannot call functions that do more than compute."""
    connection = sqlite3.connect(address(file), uri=True, timeout=10.0)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def require_whole(file: Path, *, always: bool = False) -> seal.SealCheck:
    """Compare a store with its checksums, or where it has none, have SQLite check its structure.

    Args:
        file: run.sqlite.
        always: check files of any size.

    Raises:
        DamagedStoreError: it is damaged.
        OSError: it cannot be read.
    """
    if file.stat().st_size > CHECKED_AT_ONCE and not always:
        return seal.SealCheck("open")
    found = seal.check(file)
    if found.state == "damaged":
        raise damaged(file, found.where)
    if found.state in ("open", "changed") and (complaint := _structure(file)):
        raise damaged(file, complaint)
    return found


def _structure(file: Path) -> str | None:
    """What SQLite finds wrong with the structure of a file; None if nothing, or if it is no store at all."""
    try:
        with closing(connect(file)) as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'jobs'").fetchone() != (1,):
                return None
            _limit(connection)
            (line,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            return None if line == "ok" else str(line).splitlines()[-1]
    except sqlite3.DatabaseError as error:
        return None if str(error) in PASSING or "not a database" in str(error) else str(error)


def damaged(file: Path, where: str) -> DamagedStoreError:
    """The error for a damaged store.

    Args:
        file: run.sqlite.
        where: the place of the damage.
    """
    whole = list(_whole_jobs(file))
    shown = "; ".join(whole[:MOST_JOBS]) + (f"; and {len(whole) - MOST_JOBS} more" if len(whole) > MOST_JOBS else "")
    jobs = f"these jobs are whole: {shown}" if whole else "no job can be shown to be whole"
    return DamagedStoreError(f"{file}: the store is damaged at {where}; {jobs}; {_advice(file.parent)}.")


def _advice(path: Path) -> str:
    if (path / "status.json").is_file() or (path / "lock").is_file():
        return f"`coband sweep FILE --resume --out {shlex.quote(str(path))}` does the rest again"
    scenario = path / "scenario.yaml"
    if scenario.is_file():
        return f"`coband run {shlex.quote(str(scenario))}` does all of them again"
    return "run the scenario again, or take another copy"


def _whole_jobs(file: Path) -> Iterator[str]:
    """The jobs whose rows are what they were when the job ended, as "label, replication"."""
    try:
        with closing(connect(file)) as connection:
            _limit(connection)
            for (job,) in connection.execute("SELECT job FROM digests ORDER BY job").fetchall():
                name = _whole(connection, job)
                if name is not None:
                    yield name
    except UNUSUAL:
        return


def _whole(connection: sqlite3.Connection, job: int) -> str | None:
    """Name of a job; None if it is not whole."""
    try:
        if is_whole(connection, job):
            label, replication = connection.execute(
                "SELECT label, replication FROM jobs WHERE job = ?", (job,)
            ).fetchone()
            return f"{label}, replication {replication}"
    except UNUSUAL:
        pass
    return None


def is_whole(connection: sqlite3.Connection, job: int) -> bool:
    """Whether the rows of a job are what they were when it ended, by its digest and its fingerprint."""
    if digests.kept(connection, job) != digests.digest(connection, job):
        return False
    query = "SELECT trace, fingerprint FROM jobs WHERE job = ? AND result IS NOT NULL"
    finished = connection.execute(query, (job,)).fetchone()
    if finished is None or finished[0] == tr.OFF:
        return True
    names = [text for (text,) in connection.execute("SELECT text FROM names WHERE job = ? ORDER BY code", (job,))]
    return tr.fingerprint_of(stored_rows(connection, job), names) == str(finished[1])


def stored_rows(connection: sqlite3.Connection, job: int) -> Iterator[tr.Row]:
    """The events of a job in numbers, as they had them when they were recorded."""
    query = f"SELECT {', '.join(tr.NUMERIC)} FROM events WHERE job = ? ORDER BY seq"
    for row in connection.execute(query, (job,)):
        event = tr.Row(*row)
        # SQLite stores NaN as NULL; only this column can be NaN
        yield event if event.value is not None else event._replace(value=float("nan"))


def _limit(connection: sqlite3.Connection) -> None:
    """End what takes too long: a damaged file may lead anywhere."""
    end = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)


def explain(file: Path, error: Exception, others: Iterable[tuple[sqlite3.Connection, int]] = ()) -> Exception:
    """The error to raise in the place of one that came up while a store was read: the same one, unless it is damaged.

    Args:
        file: run.sqlite.
        error: what came up.
        others: jobs in files of their own, each with the connection to its file.
    """
    if isinstance(error, sqlite3.OperationalError) and str(error) in PASSING:
        return error
    try:
        require_whole(file, always=True)
        place = _damaged_job(file, others)
    except DamagedStoreError as found:
        return found
    except UNUSUAL:
        place = f"a row that cannot be read ({error or type(error).__name__})"
    if place is None and isinstance(error, sqlite3.DatabaseError):
        place = f"a row that cannot be read ({error})"
    return error if place is None else damaged(file, place)


def _damaged_job(file: Path, others: Iterable[tuple[sqlite3.Connection, int]]) -> str | None:
    """The first job whose rows are not what they were; None if there is none."""
    with closing(connect(file)) as connection:
        _limit(connection)
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'digests'").fetchone():
            for (job,) in connection.execute("SELECT job FROM digests").fetchall():
                if not is_whole(connection, job):
                    return f"the rows of job {job}"
    for part, job in others:
        tr.fingerprint_of(stored_rows(part, job), ())  # fails if a column holds no number
    return None
