"""The user's own SQL on a run: it reads and does nothing else, and it does not take for ever."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from coband.simulator.experiments.store.store import StoreError

STEPS = 5_000
"""Instructions of SQLite's machine between two looks at the clock: well below a millisecond."""
LARGEST = 100_000_000
"""Bytes of the largest text or blob that a query may make."""
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
PRAGMAS = ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "user_version", "compile_options")
"""Pragmas that only tell something."""


class QueryError(StoreError):
    """A query that is refused, wrong or too slow; the text says which."""


@dataclass(frozen=True)
class Answer:
    """Rows of a query, read as they are asked for.

    Attributes:
        columns: their names.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def query(file: Path, sql: str, seconds: float) -> Answer:
    """Ask a run store one question.

    Args:
        file: run.sqlite.
        sql: one SELECT (or WITH … SELECT, EXPLAIN, or a pragma that only tells something).
        seconds: how long it may take, the reading of the rows included.

    Raises:
        QueryError: the question is refused or wrong. Reading the rows raises it too, when time is up.
    """
    rows = _rows(file, sql, seconds)
    columns = next(rows)
    return Answer(columns, rows)


def _rows(file: Path, sql: str, seconds: float) -> Iterator[Any]:
    """The names of the columns, then the rows."""
    connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True, timeout=10.0)
    with closing(connection):
        guard = _Guard(seconds)
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(guard.authorise)
        connection.set_progress_handler(guard.late, STEPS)
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


class _Guard:
    """Says what a query may do, and for how long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._refused = False
        self._is_late = False

    def authorise(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Called by SQLite for everything that a statement would do."""
        allowed = action in ALLOWED
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = second != "load_extension"
        elif action == sqlite3.SQLITE_PRAGMA:
            allowed = first in PRAGMAS and (second is None or first != "user_version")
        self._refused = self._refused or not allowed
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def late(self) -> bool:
        """Called by SQLite now and then; true breaks the query off."""
        self._is_late = time.monotonic() > self._end
        return self._is_late

    def explain(self, error: sqlite3.Error) -> str:
        """What went wrong, in our words."""
        if self._is_late:
            return (
                f"the query was broken off after {self._seconds:g} seconds. Narrow it down (job = …, LIMIT …), or give "
                "it more with --seconds."
            )
        if self._refused:
            return f"only reading is allowed here: one SELECT, no ATTACH, no PRAGMA that sets anything ({error})."
        if isinstance(error, sqlite3.ProgrammingError):
            return f"the query cannot be read ({error}); give one SELECT."
        return f"the query is wrong: {error}. The tables are described in docs/store.md."
