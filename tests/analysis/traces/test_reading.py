"""Which job a question is about, and which runs cannot be asked."""

import sqlite3
from pathlib import Path

import pytest

from coband.simulator.analysis.traces.difference import pairs
from coband.simulator.analysis.traces.reading import TraceReader, one_job
from coband.simulator.experiments.store.store import StoreError, open_run
from tests.experiments.runs.fake_runs import perform


def test_words_are_those_of_the_view(tmp_path: Path) -> None:
    perform(tmp_path / "run")
    with open_run(tmp_path / "run") as run:
        readers = [TraceReader(job) for job in run.select()]
        spelled = [reader.decode(row) for reader in readers for row in reader.raw()]
        assert spelled == list(run.events())


def test_a_question_about_one_job_needs_one(tmp_path: Path) -> None:
    perform(tmp_path / "run", replications=3)
    with open_run(tmp_path / "run") as run:
        message = r"holds 6 jobs, .*; choose --label \(Often, Seldom\) and --replication \(0\.\.2\)\."
        with pytest.raises(StoreError, match=message):
            one_job(run)
        with pytest.raises(StoreError, match=r"holds 2 jobs, .*; choose --label \(Often, Seldom\)\."):
            one_job(run, replication=1)
        assert one_job(run, "Often", 2).replication == 2


def test_a_run_without_a_trace(tmp_path: Path) -> None:
    perform(tmp_path / "run", replications=1, trace="off", labels=("Often",))
    with (
        open_run(tmp_path / "run") as run,
        pytest.raises(
            StoreError,
            match=r"Often, replication 0, kept no trace \(trace: off\)\. Run the scenario again with --trace",
        ),
    ):
        TraceReader(one_job(run))


def test_jobs_stand_against_each_other_by_label_and_replication(tmp_path: Path) -> None:
    perform(tmp_path / "a", replications=2)
    perform(tmp_path / "b", replications=3, labels=("Often", "Never"))
    with open_run(tmp_path / "a") as a, open_run(tmp_path / "b") as b:
        found = [(one.label, one.replication, other.label) for one, other in pairs(a, b, None, None, None)]
        assert found == [("Often", 0, "Often"), ("Often", 1, "Often")]
        found = [(one.label, one.replication, other.label) for one, other in pairs(a, b, "Seldom", "Never", 1)]
        assert found == [("Seldom", 1, "Never")]
        with pytest.raises(StoreError, match="--other-label needs --label"):
            pairs(a, b, None, "Never", None)
        with pytest.raises(StoreError, match="there is no label 'Seldom' in this run; there is"):
            pairs(a, b, "Seldom", None, None)
    perform(tmp_path / "c", replications=1, labels=("Never",))
    nothing = "have no label and replication in common: Often, Seldom and Never"
    with open_run(tmp_path / "a") as a, open_run(tmp_path / "c") as c, pytest.raises(StoreError, match=nothing):
        pairs(a, c, None, None, None)


@pytest.mark.parametrize(
    ("version", "message"),
    [(2, "by an earlier version of coband; run its scenario.yaml again"), (4, "by a newer version of coband; update")],
)
def test_other_versions(tmp_path: Path, version: int, message: str) -> None:
    perform(tmp_path / "run", replications=1, labels=("Often",))
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(StoreError, match=message):
        open_run(tmp_path / "run")


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE t (a)").connection.close()
    (tmp_path / "text.sqlite").write_text("name: x\n" * 100)
    with pytest.raises(StoreError, match="has no table of jobs"):
        open_run(tmp_path / "other.sqlite")
    with pytest.raises(StoreError, match="is not a run store of coband"):
        open_run(tmp_path / "text.sqlite")
    with pytest.raises(StoreError, match="is not a run: there is no"):
        open_run(tmp_path)
