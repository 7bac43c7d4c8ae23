"""SQL queries of the user on a stored run: read-only, with a time limit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coband.simulator.experiments.store.opening import connect
from coband.simulator.experiments.store.store import StoreError

STEPS = 5_000
"""SQLite instructions between two checks of the time limit: well below a millisecond."""
LARGEST = 10_000_000
"""Size limit of a text or blob in a query, in bytes: the time limit does not reach into single functions."""
LONGEST_PATTERN = 100
"""Characters of a pattern of LIKE and GLOB, whose time grows with a power of them."""
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
PRAGMAS = ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "user_version", "compile_options")
"""Pragmas that only read."""


class QueryError(StoreError):
    """A query is not allowed, wrong or too slow; the text says which."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query; rows are read lazily."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def query(file: Path, sql: str, seconds: float) -> QueryResult:
    """Run one query on a run store.

    Args:
        sql: one SELECT (or WITH … SELECT, EXPLAIN, or a pragma that only reads).
        seconds: time limit, including the time to read the rows.

    Raises:
        QueryError: the query is not allowed or wrong; reading the rows raises it when the time limit is exceeded.
    """
    rows = _rows(file, sql, seconds)
    columns = next(rows)
    return QueryResult(columns, rows)


def _rows(file: Path, sql: str, seconds: float) -> Iterator[Any]:
    """Yield the names of the columns, then the rows."""
    connection = connect(file)
    with closing(connection):
        guard = _QueryGuard(seconds)
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
        connection.set_authorizer(guard.authorise)
        connection.set_progress_handler(guard.timed_out, STEPS)
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                raise QueryError("the query has no columns to show; give one SELECT.")
            yield tuple(column[0] for column in cursor.description)
            yield from cursor
        except sqlite3.Error as error:
            raise QueryError(guard.explain(error)) from error
        except (sqlite3.Warning, ValueError) as error:  # several statements; a zero byte
            raise QueryError(f"the query cannot be read ({error}); give one SELECT.") from error


class _QueryGuard:
    """Limits what a query may do, and for how long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._refused = False
        self._timed_out = False

    def authorise(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Allow or deny an action; SQLite calls this for every action of a statement."""
        allowed = action in ALLOWED
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = second != "load_extension"
        elif action == sqlite3.SQLITE_PRAGMA:
            allowed = first in PRAGMAS and (second is None or first != "user_version")
        self._refused = self._refused or not allowed
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def timed_out(self) -> bool:
        """Whether the time limit is exceeded; SQLite calls this regularly and stops the query if it is true."""
        self._timed_out = time.monotonic() > self._end
        return self._timed_out

    def explain(self, error: sqlite3.Error) -> str:
        """An explanation of the error for the user."""
        if self._timed_out:
            return (
                f"the query was broken off after {self._seconds:g} seconds. Narrow it down (job = …, LIMIT …), or give "
                "it more with --seconds."
            )
        if self._refused:
            return f"only reading is allowed here: one SELECT, no ATTACH, no PRAGMA that sets anything ({error})."
        if isinstance(error, sqlite3.ProgrammingError):
            return f"the query cannot be read ({error}); give one SELECT."
        return f"the query is wrong: {error}. The tables are described in docs/store.md."
