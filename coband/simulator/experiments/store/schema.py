"""Tables of the run store, documented for users in docs/store.md."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from coband.simulator.core.metrics import ALWAYS
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.store.files import VERSION, uri

PAGE_SIZE = 16384  # fewer, larger pages: bulk copies take half the time that they take with SQLite's default
OF_TRACES = ("events", "names", "decisions")
"""The tables of what a job has recorded while it ran."""
OF_RESULTS = (
    *("ledger", "ledger_by_agent", "ledger_by_round", "ledger_by_field"),
    *("series", "agents", "ages", "energies", "rewards"),
)
"""The tables of what a job has given."""

NUMBERS = (
    *(metric.name for metric in ALWAYS if metric.name not in ("deliveries", "transmissions")),
    "fingerprint",
    "wall_seconds",
)
"""Keys of a record that have a column of their own in ``jobs``; ``result`` holds the whole record."""

_TYPES = {"time": "REAL", "value": "REAL", "detail": "TEXT"}
_JOB_TYPES = {**dict.fromkeys(("regret", "reward", "simulated_time", "wall_seconds"), "REAL"), "fingerprint": "TEXT"}
_EVENT_COLUMNS = ", ".join(f"{column} {_TYPES.get(column, 'INTEGER')}" for column in tr.COLUMNS)
_JOB_COLUMNS = ", ".join(f"{column} {_JOB_TYPES.get(column, 'INTEGER')}" for column in NUMBERS)

_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE jobs (job INTEGER PRIMARY KEY, label TEXT, algorithm TEXT, replication INTEGER, seed INTEGER, trace TEXT,
    address TEXT, status TEXT, {_JOB_COLUMNS}, result TEXT, error TEXT);
CREATE TABLE event_names (code INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE names (job INTEGER, code INTEGER, text TEXT, PRIMARY KEY (job, code)) WITHOUT ROWID;
CREATE TABLE ledger (job INTEGER, kind TEXT, direction TEXT, sends INTEGER, messages INTEGER, scalars INTEGER,
    scalars_broadcast_once INTEGER, PRIMARY KEY (job, kind, direction)) WITHOUT ROWID;
CREATE TABLE ledger_by_agent (job INTEGER, agent INTEGER, uplink INTEGER, downlink INTEGER, peer INTEGER,
    PRIMARY KEY (job, agent)) WITHOUT ROWID;
CREATE TABLE ledger_by_round (job INTEGER, round INTEGER, scalars INTEGER, PRIMARY KEY (job, round)) WITHOUT ROWID;
CREATE TABLE ledger_by_field (job INTEGER, kind TEXT, direction TEXT, field TEXT, meaning TEXT, scalars INTEGER,
    bits INTEGER, PRIMARY KEY (job, kind, direction, field)) WITHOUT ROWID;
CREATE TABLE series (job INTEGER, turn INTEGER, time REAL, regret REAL, scalars INTEGER,
    PRIMARY KEY (job, turn)) WITHOUT ROWID;
CREATE TABLE agents (job INTEGER, agent INTEGER, turns INTEGER, regret REAL, rounds INTEGER, result TEXT,
    PRIMARY KEY (job, agent)) WITHOUT ROWID;
CREATE TABLE ages (job INTEGER, turn INTEGER, age REAL, age_time REAL, PRIMARY KEY (job, turn)) WITHOUT ROWID;
CREATE TABLE energies (job INTEGER, turn INTEGER, energy REAL, PRIMARY KEY (job, turn)) WITHOUT ROWID;
CREATE TABLE rewards (job INTEGER, turn INTEGER, reward REAL, PRIMARY KEY (job, turn)) WITHOUT ROWID;
CREATE TABLE decisions (job INTEGER, seq INTEGER, age INTEGER, age_time REAL, PRIMARY KEY (job, seq)) WITHOUT ROWID;
"""

# A job's own file only grows at its end, and a key would cost a quarter of the time; the collected file has one.
_JOB_EVENTS = f"CREATE TABLE events (job INTEGER, {_EVENT_COLUMNS});"
_RUN_EVENTS = f"CREATE TABLE events (job INTEGER, {_EVENT_COLUMNS}, PRIMARY KEY (job, seq)) WITHOUT ROWID;"


_SWEEPS = """
CREATE TABLE variants (label TEXT PRIMARY KEY, number INTEGER, entry TEXT, algorithm TEXT, phase TEXT,
    chosen INTEGER, scenario TEXT) WITHOUT ROWID;
CREATE TABLE parameters (label TEXT, key TEXT, name TEXT, text TEXT, number REAL,
    PRIMARY KEY (label, key)) WITHOUT ROWID;
"""


def _spelled(column: str) -> str:
    return (
        f"CASE e.{column} WHEN {tr.NOBODY} THEN NULL WHEN {tr.EVERYONE} THEN 'everyone' WHEN -1 THEN 'server' "
        f"ELSE 'agent ' || e.{column} END AS {column}"
    )


def _optional(column: str) -> str:
    return f"nullif(e.{column}, {tr.NONE}) AS {column}"


_SPELLED = f"""
SELECT e.job, j.label, j.replication, e.seq, e.time, n.name AS event, {_spelled("node")}, {_spelled("peer")},
    {_optional("message")}, {_optional("cause")}, k.text AS kind, e.scalars, e.hop, {_optional("round")},
    {_optional("version")}, e.value, r.text AS reason, e.detail{{more}}
FROM events e
LEFT JOIN jobs j ON j.job = e.job
LEFT JOIN event_names n ON n.code = e.event
LEFT JOIN names k ON k.job = e.job AND k.code = e.kind
LEFT JOIN names r ON r.job = e.job AND r.code = e.reason{{joined}}"""
_AGES = {"more": ", d.age, d.age_time", "joined": "\nLEFT JOIN decisions d ON d.job = e.job AND d.seq = e.seq"}
_VIEW = f"\nCREATE VIEW trace AS{_SPELLED.format(**_AGES)};\n"

TRACE = f"WITH trace AS ({_SPELLED.format(more='', joined='')})"
"""What our queries on ``trace`` begin with: they read the tables, whatever the view in a file of others does."""


PATIENCE = 60.0
"""Seconds that a driver waits for somebody else who holds a store."""
TRIES, PAUSE = 40, 0.05
"""How often a driver tries to have a store for itself, and the seconds between."""


def connect(file: str, *, collected: bool) -> sqlite3.Connection:
    """A new file with all tables, in autocommit mode.

    Args:
        file: path of a file that does not exist yet.
        collected: True for the file of a whole run, False for one job's.
    """
    connection = sqlite3.connect(uri(Path(file), "rwc"), uri=True, isolation_level=None, timeout=PATIENCE)
    connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    # A killed process loses nothing either way; waiting for the disk is for power cuts, to which a job may fall victim.
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if collected else 'OFF'}")
    connection.execute("PRAGMA journal_mode = WAL")
    events = _RUN_EVENTS + _SWEEPS if collected else _JOB_EVENTS
    connection.executescript(f"BEGIN;{_TABLES}{events}{_VIEW}PRAGMA user_version = {VERSION};COMMIT;")
    insert(connection, "event_names", enumerate(tr.EVENTS))
    return connection


def reopened(file: Path) -> sqlite3.Connection:
    """A file with all tables, in autocommit mode.

    Raises:
        sqlite3.Error: it is not there, or cannot be read.
    """
    return sqlite3.connect(uri(file, "rw"), uri=True, isolation_level=None, timeout=PATIENCE)


def make_whole(connection: sqlite3.Connection) -> None:
    """Merge the write-ahead log into the file, and delete it unless another process keeps the file open."""
    for _ in range(TRIES):
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if str(error) != "database is locked":
                raise
            time.sleep(PAUSE)
        else:
            return
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # so that little is in the log


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows of full width, in one transaction."""
    batch = list(rows)
    if not batch:
        return
    places = ", ".join("?" * len(batch[0]))
    with connection:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", batch)
