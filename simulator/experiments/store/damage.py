"""What is wrong with a store: whether it is damaged or changed, which jobs are whole, how to get the others again."""

from __future__ import annotations

import shlex
import sqlite3
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.runs.status import ENDED
from coband.simulator.experiments.store import digests, schema, seal
from coband.simulator.experiments.store.errors import DamagedStoreError, StoreError
from coband.simulator.experiments.store.files import MANIFEST
from coband.simulator.experiments.store.finding import manifest_of
from coband.simulator.experiments.store.manifest import Manifest
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
UNTIL_THE_END = ("status", "finished", "jobs")
"""Keys of a manifest that are written again when the run has ended."""
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
    """A store, opened for reading; views and triggers in it cannot call functions that do more than compute.

    Raises:
        StoreError: it has a view in the place of a table, whose rows may have no end.
        sqlite3.Error: it cannot be read.
    """
    connection = sqlite3.connect(address(file), uri=True, timeout=10.0)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'view' AND name <> 'trace'"
        if (found := connection.execute(query).fetchone()) is not None:
            raise StoreError(f"{file} has a view {found[0]!r}, and a store of coband has none but `trace`.")
    except BaseException:
        connection.close()
        raise
    return connection


def sealed(file: Path) -> seal.State:
    """What the seal of a store says; of a large one, whose content is not read, whether SQL has changed it.

    Raises:
        OSError: it cannot be read.
    """
    return seal.check(file, content=file.stat().st_size <= CHECKED_AT_ONCE)


def require_whole(file: Path, *, always: bool = False) -> seal.State:
    """Compare a store with its seal, or where it has none, have SQLite check its structure.

    Args:
        always: check files of any size.

    Raises:
        DamagedStoreError: it is damaged.
        OSError: it cannot be read.
    """
    state = seal.check(file) if always else sealed(file)
    if state == "damaged":
        raise damaged(file, "its content does not match its seal")
    small = always or file.stat().st_size <= CHECKED_AT_ONCE
    if state != "whole" and small and (complaint := _structure(file)):
        raise damaged(file, complaint)
    return state


def require_version(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse a store of another version, or what is none.

    Raises:
        StoreError: it is.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == schema.VERSION:
        return
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'jobs'").fetchone():
        raise StoreError(f"{file} is an SQLite file, but not a run store of coband: it has no table of jobs.")
    advice = "Update coband" if version > schema.VERSION else "Run the scenario again"
    raise StoreError(
        f"{file} has store version {version}, and this coband reads version {schema.VERSION}. {advice}, or read it "
        "with the version of coband that its manifest.json names."
    )


def require_unchanged(file: Path, connection: sqlite3.Connection, manifest: Manifest, state: seal.State) -> None:
    """Refuse a store that shows that its numbers are no longer those that its run wrote.

    A run that goes on or was killed has no seal, and only ``coband trace verify`` compares its jobs with their digests.

    Args:
        manifest: the store's own copy of it.
        state: what its seal says.

    Raises:
        StoreError: the text says what shows it.
    """
    found = other_run(file, manifest)
    if state == "changed":
        found = f"{file} was changed after its run had ended"
    elif state == "open" and manifest.get("status") in ENDED and (name := _changed_job(connection)):
        found = f"{file} was changed after its run had ended: it has lost its seal, and the rows of {name} are others"
    if found:
        place = shlex.quote(str(file.parent if (file.parent / MANIFEST).is_file() else file))
        raise StoreError(
            f"{found}. So its numbers are not shown; `coband trace verify {place}` says what is not as it was; "
            f"{_advice(file.parent)}."
        )


def other_run(file: Path, manifest: Manifest) -> str | None:
    """Says so if a store is not that of the manifest beside it; None if it is, or if there is nothing to compare."""
    beside = manifest_of(file.parent)
    for key, value in manifest.items() if beside else ():
        if key not in UNTIL_THE_END and beside.get(key) != value:
            return f"{file} is not the store of the run that manifest.json beside it is about: they differ in {key!r}"
    return None


def _changed_job(connection: sqlite3.Connection) -> str | None:
    """The first job that has ended and is not what it was then; None if there is none."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'digests'").fetchone():
        return None  # an older coband wrote it
    query = "SELECT job FROM digests UNION SELECT job FROM jobs WHERE status NOT IN ('waiting', 'running')"
    jobs = [job for (job,) in connection.execute(query).fetchall()]
    return next((f"job {job}" for job in jobs if not is_whole(connection, job)), None)


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
        where: the place of the damage, or how it shows.
    """
    whole = list(_whole_jobs(file))
    shown = "; ".join(whole[:MOST_JOBS]) + (f"; and {len(whole) - MOST_JOBS} more" if len(whole) > MOST_JOBS else "")
    jobs = f"these jobs are whole: {shown}" if whole else "no job can be shown to be whole"
    return DamagedStoreError(f"{file}: the store is damaged ({where}); {jobs}; {_advice(file.parent)}.")


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
                with suppress(*UNUSUAL):
                    if is_whole(connection, job):
                        query = "SELECT label, replication FROM jobs WHERE job = ?"
                        label, replication = connection.execute(query, (job,)).fetchone()
                        yield f"{label}, replication {replication}"
    except UNUSUAL:
        return


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
        if name := _changed_job(connection):
            return f"the rows of {name}"
    for part, job in others:
        tr.fingerprint_of(stored_rows(part, job), ())  # fails if a column holds no number
    return None
