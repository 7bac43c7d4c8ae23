import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from coband.simulator.analysis.traces import reading, verification
from coband.simulator.core.records.trace import COLUMNS, RECORD
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.store import opening, recording, schema, store
from coband.simulator.experiments.store.recording import Recording
from tests.experiments.runs.fake_runs import ROOT, perform

FIRST_DELIVERY = "(SELECT min(seq) FROM events WHERE event = 5)"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("store") / "run"
    perform(out)
    return out


@pytest.fixture
def run(path: Path) -> Iterator[store.StoredRun]:
    with store.open_run(path) as opened:
        yield opened


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    perform(tmp_path / "run", replications=1, labels=("Often",))
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite", isolation_level=None)) as connection:
        yield connection


def test_a_finished_run_is_one_file(path: Path) -> None:
    names = "done lock lock.owner manifest.json results.json run.sqlite scenario.yaml status.json"
    assert sorted(entry.name for entry in path.iterdir()) == names.split()
    with store.open_run(path) as whole, store.open_run(path / "run.sqlite") as alone:
        assert alone.results() == whole.results()
        assert alone.manifest == whole.manifest
        assert alone.scenario == "name: fake\n"
        assert whole.manifest["status"] == "finished"


def test_the_results_of_a_stored_run_name_the_jobs_that_broke_off(tmp_path: Path) -> None:
    perform(tmp_path / "run", mischief=((0, "error"),), labels=("Often",), replications=2)
    with store.open_run(tmp_path / "run") as stored:
        (failure,) = stored.results()["failures"]
        assert (failure["label"], failure["replication"], failure["kind"]) == ("Often", 0, "failed")
        assert "ZeroDivisionError" in failure["error"]


def test_it_reads_from_a_directory_that_cannot_be_written(path: Path) -> None:
    path.chmod(0o555)
    try:
        with store.open_run(path) as run:
            assert len(run.jobs) == 4
    finally:
        path.chmod(0o755)


def test_a_job_that_finishes_while_its_run_is_opened_is_read_from_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(tmp_path / "run", replications=1, labels=("Often",))
    file = tmp_path / "run" / "jobs" / "1-00000.sqlite"
    file.parent.mkdir()
    schema.connect(str(file), collected=False).close()
    usual = opening.connect

    def connect(one: Path) -> sqlite3.Connection:
        recording.remove(file)
        return usual(one)

    monkeypatch.setattr(opening, "connect", connect)
    with store.open_run(tmp_path / "run") as run:
        assert run.files == (tmp_path / "run" / "run.sqlite",)


def test_somebody_who_reads_a_run_as_it_ends_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "TRIES", 2)
    with closing(schema.connect(str(tmp_path / "run.sqlite"), collected=True)) as connection:
        mode = "PRAGMA journal_mode"
        with closing(opening.connect(tmp_path / "run.sqlite")):
            schema.make_whole(connection)
            assert connection.execute(mode).fetchone() == ("wal",)
            (tmp_path / "copy.sqlite").write_bytes((tmp_path / "run.sqlite").read_bytes())
            assert store.open_run(tmp_path / "copy.sqlite").jobs == []
        schema.make_whole(connection)
        assert connection.execute(mode).fetchone() == ("delete",)


def test_the_view_spells_names(run: store.StoredRun) -> None:
    sends = list(run.events("Often", 0, event="send"))
    up, down = sends[0], next(event for event in sends if event.node == "server")
    assert (up.node, up.peer, up.kind, up.scalars, up.round, up.version) == ("agent 0", "server", "sums", 2, 2, None)
    assert (down.peer, down.kind, down.value, down.version) == ("everyone", "mean", 5.0, 1)
    turn = next(run.events("Often", 0))
    assert (turn.event, turn.peer, turn.message, turn.cause, turn.kind) == ("turn", None, None, None, None)


def test_events_can_be_chosen(run: store.StoredRun) -> None:
    chosen = list(run.events("Seldom", 1, event="deliver", node="agent 3", kind="mean", start=4.0, end=6.0))
    assert chosen
    assert {(event.event, event.node, event.kind) for event in chosen} == {("deliver", "agent 3", "mean")}
    assert all(4.0 <= event.time <= 6.0 for event in chosen)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"label": "Oftem"}, "there is no label 'Oftem' in this run; there is Often"),
        ({"replication": 5}, "there is no replication 5 in this run; there is 0, 1"),
        ({"replication": -1}, "there is no replication -1 in this run; there is 0, 1"),
        ({"event": "sent"}, "there is no event 'sent' in this run; there is send"),
        (
            {"event": "send,deliver"},
            "no event 'send,deliver'; ask for send and deliver one at",
        ),
        ({"kind": "sum"}, "there is no kind 'sum' in this run; there is sums"),
    ],
)
def test_an_unknown_choice_names_the_nearest(run: store.StoredRun, choice: dict[str, object], message: str) -> None:
    with pytest.raises(store.StoreError, match=message):
        run.events(**choice)  # type: ignore[arg-type]


def test_series_end_with_the_totals(run: store.StoredRun) -> None:
    for series, record in zip(run.series("Often"), run.results()["results"][0]["replications"], strict=True):
        assert series.replication == record["replication"]
        assert series.turns[-1] == record["turns"]
        assert series.regret[-1] == pytest.approx(record["regret"])
        assert len(series.turns) == 200
        assert (np.diff(series.regret) >= 0).all()
        assert (np.diff(series.times) >= 0).all()
        # the server's answers to the last round's five uploads come after the last pull: 5 answers to 5 agents
        assert record["scalars"] - series.scalars[-1] == 25


def test_jobs_have_columns_for_sql(path: Path) -> None:
    with closing(sqlite3.connect(path / "run.sqlite")) as connection:
        rows = connection.execute(
            "SELECT label, count(*), avg(scalars), min(result ->> 'skipped_points') FROM jobs GROUP BY label"
        ).fetchall()
        (uplink,) = connection.execute("SELECT sum(uplink) FROM ledger_by_agent WHERE job = 0").fetchone()
        (by_round,) = connection.execute("SELECT sum(scalars) FROM ledger_by_round WHERE job = 0").fetchone()
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    assert rows == [("Often", 2, 700.0, 0), ("Seldom", 2, 520.0, 0)]
    assert (uplink, by_round, version) == (200, 700, schema.VERSION)


def test_every_agent_by_itself(run: store.StoredRun) -> None:
    agents = run.by_agent("Often")
    records = run.results()["results"][0]["replications"]
    assert [(agent["replication"], agent["agent"]) for agent in agents] == [(r, a) for r in (0, 1) for a in range(5)]
    for record in records:
        own = [agent for agent in agents if agent["replication"] == record["replication"]]
        for key in ("turns", "regret", "uplink_scalars", "downlink_scalars", "peer_scalars"):
            assert sum(agent[key] for agent in own) == pytest.approx(record[key])
        assert "agents" not in record


DOCUMENT = (ROOT / "docs" / "store.md").read_text()


def test_the_document_names_every_column(path: Path) -> None:
    with closing(sqlite3.connect(path / "run.sqlite")) as connection:
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        tables = [name for (name,) in found]
        columns = {row[1] for table in tables for row in connection.execute(f"PRAGMA table_info({table})")}
    words = set(re.findall(r"\w+", DOCUMENT))
    assert len(tables) == 18
    assert {*tables, *columns} <= words
    assert f"**{schema.VERSION}**" in DOCUMENT
    assert RECORD.format in DOCUMENT


def test_tallies(run: store.StoredRun) -> None:
    by_kind = {(tally.label, tally.groups[0]): tally for tally in reading.tally(run.jobs, "kind")}
    sums, news = by_kind["Often", "sums"], by_kind["Often", "mean"]
    assert (sums.sends, sums.messages, sums.scalars, sums.deliveries) == (200, 200, 400, 200)
    assert (news.sends, news.messages, news.scalars, news.deliveries) == (200, 1000, 1000, 1000)
    for by in reading.GROUPS:
        assert sum(tally.events for tally in reading.tally(run.jobs, by)) == 2 * (1600 + 1250)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE events SET value = value + 1 WHERE seq = 10", "the fingerprint of the stored events is"),
        ("DELETE FROM events WHERE seq = 12", "where number 12 should be, 13 is"),
        ("UPDATE events SET time = 1 WHERE seq = 100", "time goes back at event 100: 1.0 after"),
        ("UPDATE events SET cause = 31 WHERE seq = 30", "event 30 has cause 31, which is not earlier"),
        (f"UPDATE events SET message = 99 WHERE seq = {FIRST_DELIVERY}", "of message 99, has no matching send"),
        ("UPDATE events SET node = 3 WHERE seq = 1598", "delivery 1598 brings message 198 to agent 3 once more"),
        ("DELETE FROM events WHERE seq = 1599", "message 199, sent at event 1574, is missing 1 deliveries"),
        ("UPDATE events SET scalars = 3 WHERE seq = 19", "messages of kind 'sums' (up): the trace has"),
        ("UPDATE ledger SET scalars = 1 WHERE kind = 'mean'", "the ledger 100 sends, 500 messages, 1 scalars"),
        ("UPDATE jobs SET result = json_set(result, '$.scalars', 1)", "add up to 700 scalars, and the result says 1"),
        *[
            (f"UPDATE {table} SET {change} {where}", table)
            for table, change, where in (
                *[("jobs", f"{name} = 7", "") for name in ("regret", "fingerprint", "status", "seed", "wall_seconds")],
                ("series", "regret = 1e9", "WHERE turn = 5"),
                ("series", "regret = regret + 1", "WHERE turn = (SELECT max(turn) FROM series)"),
                ("agents", "regret = regret + 1", "WHERE agent = 1"),
                ("agents", "result = '{\"closest_decision\": -1}'", "WHERE agent = 1"),
                ("ledger_by_agent", "uplink = uplink + 1", "WHERE agent = 1"),
                ("ledger_by_agent", "downlink = downlink + 1", "WHERE agent = 1"),
                ("ledger_by_round", "scalars = scalars + 1", "WHERE round = (SELECT max(round) FROM ledger_by_round)"),
                ("ledger_by_field", "scalars = scalars + 1", "WHERE kind = 'mean'"),
            )
        ],
        ("UPDATE jobs SET trace = 'off'", "there are events of a job without a trace"),
        ("UPDATE jobs SET result = NULL", "the job finished, and its result is missing"),
    ],
)
def test_damage_is_found(damaged: sqlite3.Connection, tmp_path: Path, change: str, message: str) -> None:
    assert damaged.execute(change).rowcount == 1
    with store.open_run(tmp_path / "run") as run:
        (score,) = verification.verify(run)
    assert any(message in difference for difference in score.differences), score.differences


def test_a_full_trace_keeps_contents(tmp_path: Path) -> None:
    perform(tmp_path / "run", replications=1, trace="full", labels=("Often",))
    with store.open_run(tmp_path / "run") as run:
        details = [event.detail for event in run.events(event="send")]
    assert details[0] is not None
    assert details[0].startswith('{"rewards": [')


def test_numpy_numbers_and_nan_can_be_stored(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "job.sqlite", Job(0, "a", "b", 0, 0, "protocol"))
    row = (0, np.float64(0.5), 1, 0, -3, -1, -1, -1, 0, 0, -1, -1, np.int64(3), -1, None)
    recording.sink([row, (1, 0.5, *row[2:12], float("nan"), -1, None)], ["x"])  # type: ignore[list-item]
    recording.close("interrupted")
    with closing(sqlite3.connect(tmp_path / "job.sqlite")) as connection:
        assert connection.execute("SELECT time, value FROM events").fetchall() == [(0.5, 3.0), (0.5, None)]
        assert [line[1] for line in connection.execute("PRAGMA table_info(events)")] == ["job", *COLUMNS]
        assert connection.execute("SELECT text FROM names").fetchall() == [("x",)]
