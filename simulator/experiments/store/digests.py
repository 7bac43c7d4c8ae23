"""The digest of a job: what its rows in the store were when the job ended."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.store.schema import OF_RESULTS

ORDERED_BY = {"names": "code", **OF_RESULTS}
"""The tables of a job but for its events -> the rest of their primary keys."""
ROWS = 4096
"""So many rows are taken into a digest at once."""


def digest(connection: sqlite3.Connection, job: int) -> str:
    """SHA-256 over the rows of a job as they are in the store.

    Of the events of a finished job only ``detail`` counts: its fingerprint covers the other columns.
    """
    found = hashlib.sha256()
    for rows in _tables(connection, job):
        while some := rows.fetchmany(ROWS):
            found.update("".join(map(repr, some)).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def _tables(connection: sqlite3.Connection, job: int) -> Iterator[sqlite3.Cursor]:
    yield connection.execute("SELECT * FROM jobs WHERE job = ?", (job,))
    (result,) = connection.execute("SELECT result FROM jobs WHERE job = ?", (job,)).fetchone()
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, order in ORDERED_BY.items():
        if table not in there:  # the store was made before there was such a table
            continue
        yield connection.execute(f"SELECT * FROM {table} WHERE job = ? ORDER BY {order}", (job,))
    columns = ", ".join(tr.COLUMNS) if result is None else "seq, detail"
    condition = "" if result is None else " AND detail IS NOT NULL"
    yield connection.execute(f"SELECT {columns} FROM events WHERE job = ?{condition} ORDER BY seq", (job,))


def keep(connection: sqlite3.Connection, job: int) -> None:
    """Store the digest of a job that has ended."""
    connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?)", (job, digest(connection, job)))


def kept(connection: sqlite3.Connection, job: int) -> str | None:
    """The stored digest of a job; None if it has none."""
    row = connection.execute("SELECT sha256 FROM digests WHERE job = ?", (job,)).fetchone()
    return None if row is None else str(row[0])
