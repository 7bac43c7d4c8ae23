"""Sweeps that go well and sweeps that do not, on this machine."""

import errno
import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.analysis.traces import verification
from coband.simulator.experiments.runs import attempt as attempt_module
from coband.simulator.experiments.runs.attempt import Outcome
from coband.simulator.experiments.runs.driver import drive
from coband.simulator.experiments.runs.executor import WORKER_DIED, Local
from coband.simulator.experiments.runs.planner import FIRST_REPLICATION, Tally
from coband.simulator.experiments.runs.status import LockedError, read
from coband.simulator.experiments.runs.study import study_of
from coband.simulator.experiments.store import directory, schema, store
from coband.simulator.experiments.store.recording import ResultCache
from coband.simulator.problems.datasets import DataError
from tests.experiments.runs.fake_runs import Notes, wait_until
from tests.experiments.sweep.sweeps import GATED_JOBS, fingerprints, gated, perform, result_cache, started, study

GRID = "grid:\n  problem.noise: [0.1, 0.2]\n  algorithms.D.size: [0.01, 0.02]\n"


def test_a_job_gives_what_a_run_gives(tmp_path: Path) -> None:
    report = perform(study(tmp_path, GRID), tmp_path / "out")
    found = fingerprints(report.object)
    assert len(found) == 2 * (2 * 2 + 2)  # the axis of D alone does not multiply K
    one = study(tmp_path, "", "problem.noise=0.2").variants[1].scenario
    whole = drive(study_of(one), directory.create("one", tmp_path / "run"))
    alone = {record["replication"]: record["fingerprint"] for record in whole.object["results"][0]["replications"]}
    assert alone == {replication: found["K [noise=0.2]", replication] for replication in (0, 1)}


def test_a_variant_is_a_label_of_a_stored_run(tmp_path: Path) -> None:
    report = perform(study(tmp_path, GRID), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        assert list(run.labels)[:2] == ["D [noise=0.1, size=0.01]", "K [noise=0.1]"]
        plain = [
            {key: entry[key] for key in ("label", "algorithm", "replications", "mean", "ci95")}
            for entry in report.object["results"]
        ]
        assert sorted(run.results()["results"], key=str) == sorted(plain, key=str)
        first, _ = run.series("K [noise=0.2]")
        assert list(first.turns)[-1] == 40
        (same,) = (entry for entry in plain if entry["label"] == "K [noise=0.2]")
        assert first.regret[-1] == same["replications"][0]["regret"]
        connection = run.jobs[0].part
        rows = connection.execute("SELECT name, text, number FROM parameters WHERE label = ?", ("K [noise=0.2]",))
        assert rows.fetchall() == [("noise", "0.2", 0.2)]
        assert connection.execute("SELECT entry, phase, chosen FROM variants WHERE number = 1").fetchall() == [
            ("K", "fresh", 0)
        ]
        assert connection.execute("SELECT count(*) FROM ledger_by_agent").fetchone() == (24,)


def test_joins_and_leaves_are_axes(tmp_path: Path) -> None:
    """Agents take turns while they are there, and who joins when does not depend on who leaves."""
    joins = ("null", "{kind: poisson, rate: 0.3}", "{kind: times, times: [[1, 8]]}")
    leaves = ("null", "{kind: times, times: [[0, 15]]}")
    grid = f"grid:\n  agents.joins: [{', '.join(joins)}]\n  agents.leaves: [{', '.join(leaves)}]\n"
    perform(study(tmp_path, grid, "agents.count=3"), tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        assert set(run.labels) == {f"{name} [joins={j}, leaves={k}]" for name in "DK" for j in joins for k in leaves}
        turns = {label: [row["turns"] for row in run.by_agent(label)] for label in run.labels}
    for label, found in turns.items():
        first, second = (14 if leaves[1] in label else 20), (13 if joins[2] in label else 20)
        if joins[1] not in label:
            assert found == [first, second, 20] * 2
    drawn = {tuple(found[1:3] + found[4:]) for label, found in turns.items() if joins[1] in label}
    assert len(drawn) == 1
    assert max(*drawn) < 20


def test_what_is_finished_stays_and_new_points_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    perform(study(tmp_path, "grid: {problem.noise: [0.1]}\n"), tmp_path / "out")
    before = {file: file.stat().st_mtime_ns for file in result_cache(tmp_path / "out")}
    assert len(before) == 4
    report = perform(study(tmp_path, "grid: {problem.noise: [0.1, 0.2]}\n"), tmp_path / "out")
    after = {file: file.stat().st_mtime_ns for file in result_cache(tmp_path / "out")}
    assert len(after) == 8
    assert {file: after[file] for file in before} == before
    assert [entry.kept for entry in report.status.entries.values()] == [2, 2]
    assert report.status.done == report.status.total == 8
    monkeypatch.setattr("coband.simulator.experiments.runs.driver.perform", pytest.fail)
    again = perform(study(tmp_path, "grid: {problem.noise: [0.1, 0.2]}\n"), tmp_path / "out")
    assert fingerprints(again.object) == fingerprints(report.object)


def test_a_done_file_that_is_half_written_or_damaged_counts_for_nothing(tmp_path: Path) -> None:
    first = perform(study(tmp_path), tmp_path / "out")
    files = result_cache(tmp_path / "out")
    files[0].write_bytes(files[0].read_bytes()[:50])
    files[1].write_bytes(b"")
    content = bytearray(files[2].read_bytes())
    content[len(content) // 2] ^= 4
    files[2].write_bytes(content)
    again = perform(study(tmp_path), tmp_path / "out")
    assert sum(entry.kept for entry in again.status.entries.values()) == 1
    assert bytes(content) != files[2].read_bytes()
    assert fingerprints(again.object) == fingerprints(first.object)


def test_workers_that_die_cost_only_the_job_that_kills_them(tmp_path: Path) -> None:
    notes = Notes()
    what = study(tmp_path, "grid: {algorithms.D.mischief: [none, kill, error]}\n", "replications=1")
    report = perform(what, tmp_path / "out", Local(2), notes)
    expected = [("D [mischief=error]", "ZeroDivisionError: a bug"), ("D [mischief=kill]", WORKER_DIED)]
    assert sorted((failure.label, failure.error.splitlines()[-1]) for failure in notes.failures) == expected
    assert set(fingerprints(report.object)) == {("D [mischief=none]", 0), ("K", 0)}
    assert report.status.state == "failed"
    assert next(f.replay for f in notes.failures if "kill" in f.label) == (
        "coband run small.yaml --set algorithms.D.mischief=kill --seed 3 --replication 0 --only D --trace full"
    )
    with store.open_run(tmp_path / "out") as run:
        assert sorted(job.status for job in run.jobs) == ["failed", "failed", "finished", "finished"]


def test_a_killed_driver_loses_nothing_finished_and_resume_runs_the_rest(tmp_path: Path) -> None:
    out, (more, gate) = tmp_path / "out", gated(tmp_path)
    with started(tmp_path, out, more) as process:
        wait_until(lambda: len(result_cache(out)) == 4, process)
        with pytest.raises(LockedError, match=f"another run is under way in {out} .process {process.pid} on "):
            perform(study(tmp_path, more), out)
    assert read(out).state == "killed"
    gate.unlink()
    report = perform(study(tmp_path, more), out)
    assert [entry.kept for entry in report.status.entries.values()] == [2, 2]
    assert len(fingerprints(report.object)) == GATED_JOBS
    assert fingerprints(report.object) == fingerprints(perform(study(tmp_path, more), tmp_path / "other").object)


LINUX = Path("/proc/self/task").is_dir()


def children(process: int) -> list[int]:
    files = Path(f"/proc/{process}/task").glob("*/children")
    return [int(word) for file in files for word in file.read_text().split()]


def is_alive(process: int) -> bool:
    """Whether a process runs; one that waits for its parent to notice its end does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    out, (more, _) = tmp_path / "out", gated(tmp_path)
    with started(tmp_path, out, more) as process:
        wait_until(lambda: len(result_cache(out)) == 4, process)
        workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert output.split() == ["interrupted", "4", "2"]
    assert len(workers) >= 2 or not LINUX
    wait_until(lambda: not any(map(is_alive, workers)))
    assert len(fingerprints(json.loads((out / "results.json").read_text()))) == 4
    assert json.loads((out / "manifest.json").read_text())["status"] == "interrupted"


def test_a_full_disk_stops_the_sweep_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, put, calls = tmp_path / "out", ResultCache.put, []

    def full_after_two(self: ResultCache, address: str, content: bytes) -> None:
        calls.append(address)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file(address)))
        put(self, address, content)

    monkeypatch.setattr(ResultCache, "put", full_after_two)
    report = perform(study(tmp_path), out)
    assert report.status.state == "stopped"
    assert report.status.message.endswith(".json.gz: No space left on device")
    assert (report.status.done, report.missing) == (2, 2)
    monkeypatch.undo()
    assert len(fingerprints(perform(study(tmp_path), out).object)) == 4


def test_a_draft_that_cannot_be_written_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        ResultCache(tmp_path / "done").put("ab12", b"x")
    assert list((tmp_path / "done").rglob("*.*")) == []


def test_the_same_job_under_two_labels_runs_once(tmp_path: Path) -> None:
    more = "grid:\n  algorithms.K.lam: {one: 1, again: 1.0}\n  algorithms.D.size: {a: 0.5, b: 0.25}\n"
    report = perform(study(tmp_path, more), tmp_path / "out")
    assert len(result_cache(tmp_path / "out")) == 6
    assert {label for label, _ in fingerprints(report.object)} == {"K", "D [size=a]", "D [size=b]"}


def test_best_parameters_are_chosen_on_other_seeds(tmp_path: Path) -> None:
    more = "grid:\n  problem.noise: [0.1, 0.2]\n  algorithms.K.alpha: [0, 1, 50]\ntuning: {replications: 3}\n"
    report = perform(study(tmp_path, more), tmp_path / "out")
    best = report.object["best"]
    assert [(line["entry"], line["context"], line["candidates"]) for line in best] == [
        ("D", {"noise": "0.1"}, 1),
        ("K", {"noise": "0.1"}, 3),
        ("D", {"noise": "0.2"}, 1),
        ("K", {"noise": "0.2"}, 3),
    ]
    assert all((line["tuning"]["n"], line["fresh"]["n"]) == (3, 2) for line in best)
    entries = {(entry["label"], entry["phase"]): entry for entry in report.object["results"]}
    for line in (line for line in best if line["entry"] == "K"):
        noise = line["context"]["noise"]
        means = {
            alpha: entries[f"K [noise={noise}, alpha={alpha}] (tuning)", "tuning"]["mean"]["regret"]
            for alpha in ("0", "1", "50")
        }
        assert line["chosen"] == {"alpha": min(means, key=lambda alpha: means[alpha])}
        assert line["tuning"]["mean"] == min(means.values())
        assert line["fresh"]["mean"] == entries[line["label"], "fresh"]["mean"]["regret"]
    numbers = {
        record["replication"]
        for (_, phase), entry in entries.items()
        if phase == "tuning"
        for record in entry["replications"]
    }
    assert numbers == {FIRST_REPLICATION, FIRST_REPLICATION + 1, FIRST_REPLICATION + 2}
    with store.open_run(tmp_path / "out") as run:
        chosen = run.jobs[0].part.execute("SELECT label FROM variants WHERE chosen ORDER BY number").fetchall()
    assert [label for (label,) in chosen] == [line["label"] for line in best if line["label"]]


def test_bad_input_of_one_job_is_a_failure_of_that_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    real = attempt_module.attempt

    def refuse(job: Any, *others: Any) -> Outcome:
        if job.label == "D":
            raise DataError("the file is gone")
        return real(job, *others)

    monkeypatch.setattr(attempt_module, "attempt", refuse)
    report = perform(study(tmp_path), tmp_path / "out", listener=notes)
    assert {failure.error for failure in notes.failures} == {"the file is gone"}
    assert {label for label, _ in fingerprints(report.object)} == {"K"}
    assert notes.states[-1] == "failed"


def test_traces_are_kept_where_asked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    without = perform(study(tmp_path, GRID), out)
    with store.open_run(out) as run:
        assert sum(1 for _ in run.events()) == 0
    report = perform(study(tmp_path, GRID, trace="protocol"), out)
    assert fingerprints(report.object) == fingerprints(without.object)
    assert sum(entry.kept for entry in report.status.entries.values()) == 0, "they had no trace"
    again = perform(study(tmp_path, GRID, trace="protocol"), out)
    assert sum(entry.kept for entry in again.status.entries.values()) == again.status.total == 12
    with store.open_run(out) as run:
        scores = list(verification.verify(run))
        events = list(run.events("K [noise=0.2]", 1))
        assert {job.trace for job in run.jobs} == {"protocol"}
    assert len(scores) == 12
    assert all(score.events > 0 and not score.differences for score in scores)
    assert [event.seq for event in events] == list(range(len(events)))
    assert {(event.label, event.replication) for event in events} == {("K [noise=0.2]", 1)}
    for trace in ("off", "protocol"):  # they stay, wanted or not
        again = perform(study(tmp_path, GRID, trace=trace), out)
        assert sum(entry.kept for entry in again.status.entries.values()) == 12
    with store.open_run(out) as run:
        assert all(score.events > 0 and not score.differences for score in verification.verify(run))
    assert not (out / "jobs").exists()


@pytest.mark.parametrize("left", ["a part", "the ends"])
def test_traces_that_were_damaged_are_made_again(tmp_path: Path, left: str) -> None:
    first = perform(study(tmp_path, trace="full"), tmp_path / "out")
    content = bytearray((tmp_path / "out" / "run.sqlite").read_bytes())
    quarter = len(content) // 4
    content[2 * quarter :] = b"" if left == "a part" else bytes(quarter) + content[3 * quarter :]
    (tmp_path / "out" / "run.sqlite").write_bytes(content)
    again = perform(study(tmp_path, trace="full"), tmp_path / "out", Local(2))
    assert sum(entry.kept for entry in again.status.entries.values()) < 4
    assert fingerprints(again.object) == fingerprints(first.object)
    with store.open_run(tmp_path / "out") as run:
        assert all(not score.differences and score.events for score in verification.verify(run))


def test_the_trace_of_a_job_that_broke_off_is_kept_until_it_runs_again(tmp_path: Path) -> None:
    what = study(tmp_path, "grid: {algorithms.D.mischief: [error]}\n", "replications=1", trace="protocol")
    perform(what, tmp_path / "out")
    with store.open_run(tmp_path / "out") as run:
        assert {job.label: job.status for job in run.jobs} == {"D": "failed", "K": "finished"}
        assert sum(1 for _ in run.events("D", 0)) > 0


def test_a_job_that_nobody_has_taken_is_not_lost(tmp_path: Path) -> None:
    """Its driver was killed between its end and the next step."""
    what, out = study(tmp_path, trace="protocol"), tmp_path / "out"
    place = directory.create("small", out, swept=True)
    place.open(what)
    place.begin(what.facts())
    task, *others = next(what.planner(Tally(what.variants, what.entries)))
    place.add([task, *others])
    attempt_module.perform(place.job(task), what.variants[task.variant].scenario, place.job_file(task))
    place.close()
    report = perform(what, out)
    assert (sum(entry.kept for entry in report.status.entries.values()), report.status.done) == (1, 1 + len(others))
    with store.open_run(out) as run:
        assert all(score.events > 0 and not score.differences for score in verification.verify(run))


def test_a_store_that_somebody_reads_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its write-ahead log cannot be put into it as long as it is read, so that it has to come along."""
    what, out = study(tmp_path, trace="protocol"), tmp_path / "out"
    perform(what, out)
    file = out / "run.sqlite"
    monkeypatch.setattr(schema, "PATIENCE", 0.0)
    with closing(sqlite3.connect(file)) as writer, closing(sqlite3.connect(file)) as reader:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE meta SET value = value")
        writer.commit()
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        report = perform(what, out)
    assert sum(entry.kept for entry in report.status.entries.values()) == report.status.total
    with store.open_run(out) as run:
        assert all(score.events > 0 and not score.differences for score in verification.verify(run))


def test_traces_of_points_that_are_gone_are_said_to_go(tmp_path: Path) -> None:
    out, fewer = tmp_path / "out", GRID.replace("[0.1, 0.2]", "[0.1]")
    perform(study(tmp_path, GRID, trace="protocol"), out)
    report = perform(study(tmp_path, fewer, trace="protocol"), out)
    (remark,) = report.remarks
    assert remark.endswith(f"is kept in {out}/done, but for its traces, which are gone, and not shown")
