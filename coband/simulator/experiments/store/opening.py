"""Opening the files of stored runs for reading, and what is said of one that is damaged or from an earlier coband."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

from coband.simulator.experiments.store import files
from coband.simulator.experiments.store.files import StoreError, uri

CHECKED_AT_ONCE = 16 * 2**20
"""Bytes: SQLite checks files up to this size whenever they are opened, larger ones for ``coband trace verify``."""
UNUSUAL = (
    *(sqlite3.Error, struct.error, ValueError, TypeError),
    *(LookupError, ArithmeticError, AttributeError, AssertionError),
)
"""What reading a damaged file may end with."""


def connect(file: Path) -> sqlite3.Connection:
    """A store, opened for reading; views and triggers in it cannot call functions that do more than compute.

    Raises:
        StoreError: it has a view in the place of a table, whose rows may have no end.
        sqlite3.Error: it cannot be read.
    """
    connection = sqlite3.connect(uri(file), uri=True, timeout=10.0)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'view' AND name <> 'trace'"
        if (found := connection.execute(query).fetchone()) is not None:
            raise StoreError(f"{file} has a view {found[0]!r}, and a store of coband has none but `trace`.")
    except BaseException:
        connection.close()
        raise
    return connection


def facts(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The manifest and the labels of a run; unlike `store.open_run` it needs no library, so that it takes no time.

    Raises:
        StoreError: there is no run, or its store is damaged or of another version.
    """
    file = database(path)
    try:
        with closing(connect(file)) as connection:
            require_version(connection, file)
            manifest = connection.execute("SELECT value FROM meta WHERE key = 'manifest'").fetchone()
            labels = connection.execute("SELECT label FROM jobs GROUP BY label ORDER BY min(job)").fetchall()
        require_sound(file)
        return json.loads(manifest[0]) if manifest else {}, [label for (label,) in labels]
    except StoreError:
        raise
    except UNUSUAL as error:
        raise explained(file, error) from error


def database(path: Path) -> Path:
    """The file that has the results of a run, which is its directory, or that file.

    Raises:
        StoreError: there is none.
    """
    file = path / files.DATABASE if path.is_dir() else path
    if not file.is_file():
        raise StoreError(
            f"{path} is not a run: there is no {file}. Give a run directory, such as runs/quickstart-0001."
        )
    return file


def require_version(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse a store of another version, or what is none.

    Raises:
        StoreError: it is.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == files.VERSION:
        return
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'jobs'").fetchone():
        raise StoreError(
            f"{file} has no table of jobs: if its run begins just now, try again; else it is not a run of coband."
        )
    if version > files.VERSION:
        raise StoreError(f"{file} was made by a newer version of coband; update this one.")
    raise StoreError(f"{file} was made by an earlier version of coband; run its scenario.yaml again.")


def require_sound(file: Path) -> None:
    """Have SQLite check a store that is not too large for that.

    Raises:
        StoreError: it is damaged.
    """
    if file.stat().st_size <= CHECKED_AT_ONCE and (found := complaint(file, "quick_check")):
        raise damaged(file, found)


def complaint(file: Path, check: str = "integrity_check") -> str | None:
    """What SQLite finds wrong with a file; None if nothing."""
    try:
        with closing(connect(file)) as connection:
            (line,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
            return None if line == "ok" else str(line).splitlines()[-1]
    except sqlite3.DatabaseError as error:
        return None if str(error) in files.PASSING else str(error)


def damaged(file: Path, what: object) -> StoreError:
    """The error for a damaged store; ``what`` shows it."""
    return StoreError(f"{file} is damaged ({what}); {files.again(file.parent)}.")


def explained(file: Path, error: Exception) -> Exception:
    """The error to raise in the place of one that came up while a store was read: the same, unless it is damaged."""
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
        return StoreError(f"{file} is not a run store of coband ({error}).")
    if type(error) in (sqlite3.DatabaseError, sqlite3.OperationalError):
        return error if str(error) in files.PASSING else damaged(file, error)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return damaged(file, "a text in it cannot be read")
    found = complaint(file)
    return error if found is None else damaged(file, found)
