"""The user's own SQL reads, and does nothing else."""

import hashlib
from pathlib import Path

import pytest

from coband.simulator.analysis.traces.query import QueryError, query
from tests.experiments.runs.fake_runs import perform


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("query") / "run"
    perform(out)
    return out / "run.sqlite"


def test_an_answer(store: Path) -> None:
    answer = query(store, "SELECT label, count(*) AS n FROM trace WHERE event = 'turn' GROUP BY label", 60)
    assert answer.columns == ("label", "n")
    assert list(answer.rows) == [("Often", 400), ("Seldom", 400)]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT max(i) FROM n",
        "EXPLAIN QUERY PLAN SELECT * FROM events WHERE job = 0 AND seq = 3",
        "PRAGMA user_version",
        "PRAGMA table_info(events)",
        "SELECT result ->> 'regret' FROM jobs",
    ],
)
def test_what_reads_is_allowed(store: Path, sql: str) -> None:
    assert list(query(store, sql, 60).rows)


WRITES = """
DELETE FROM events | UPDATE jobs SET regret = 0 | INSERT INTO meta VALUES ('a', 'b') | DROP TABLE events |
CREATE TABLE t (a) | CREATE TEMP TABLE t (a) | CREATE TEMP VIEW v AS SELECT 1 | ATTACH 'other.sqlite' AS other |
DETACH main | VACUUM INTO 'copy.sqlite' | VACUUM | REINDEX | ANALYZE | BEGIN | SAVEPOINT a | PRAGMA user_version = 5 |
PRAGMA journal_mode = DELETE | PRAGMA query_only = OFF | PRAGMA writable_schema = ON |
PRAGMA temp_store_directory = '/tmp' | SELECT load_extension('x')
"""


@pytest.mark.parametrize("sql", [sql.strip() for sql in WRITES.split("|")])
def test_what_does_more_is_refused(store: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = hashlib.sha256(store.read_bytes()).hexdigest()
    with pytest.raises(QueryError):
        list(query(store, sql, 60).rows)
    assert hashlib.sha256(store.read_bytes()).hexdigest() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT x FROM events", "the query is wrong: no such column: x. The tables are described in docs/store.md."),
        ("SELEC 1", 'the query is wrong: near "SELEC": syntax error'),
        ("SELECT 1; SELECT 2", "give one SELECT"),
        ("SELECT 1; DELETE FROM events", "give one SELECT"),
        ("", "give one SELECT"),
        ("-- nothing", "give one SELECT"),
        ("SELECT '\0'", "the query"),
        ("SELECT zeroblob(1000000000)", "the query is wrong: "),
        ("PRAGMA user_version = 5", "only reading is allowed here"),
    ],
)
def test_messages(store: Path, sql: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        list(query(store, sql, 60).rows)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT count(*) FROM events a, events b, events c, events d",
    ],
)
def test_an_endless_query_is_broken_off(store: Path, sql: str) -> None:
    with pytest.raises(QueryError, match=r"broken off after 0\.05 seconds"):
        list(query(store, sql, 0.05).rows)


def test_rows_come_one_by_one(store: Path) -> None:
    answer = query(store, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", 60)
    assert [next(answer.rows) for _ in range(3)] == [(1,), (2,), (3,)]
