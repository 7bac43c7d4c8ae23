import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.cli.main import INTERRUPTED
from coband.simulator.experiments.runs.reporting import Report
from coband.simulator.experiments.runs.status import EntryStatus, Status
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.store import open_run
from coband.simulator.terminal import progress, tables
from tests.cli.fake_cli import Program
from tests.experiments.runs.fake_runs import ROOT, results_of, wait_until
from tests.experiments.runs.fakes import FakeScenario

SIZE = "fake: 40 turns × 5 agents × 2 algorithms × 2 replications = 800 pulls\n"


def test_a_log_has_a_line_now_and_then(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.simulator.terminal.progress.LOG_SECONDS", (0.0, 0.0))
    first, *lines = coband("run", "x.yaml", "--workers", 1)[2].splitlines(keepends=True)
    assert first == SIZE
    assert lines
    assert all(line.startswith("fake: ") and " of 4 jobs" in line for line in lines)


def test_a_table_and_the_run_directory(coband: Program) -> None:
    status, output, errors = coband("run", "x.yaml", "--workers", 1)
    lines = output.splitlines()
    assert (status, errors) == (0, SIZE)
    assert lines[0].split("  ")[0] == "label"
    assert lines[1].startswith("Often   2  ")
    assert "200       500      700     100" in lines[1]
    assert " ± " in lines[1]
    assert lines[-1] == "run directory: runs/fake-0001"
    assert coband("run", "x.yaml", "--workers", 1)[1].endswith("run directory: runs/fake-0002\n")


def test_sigterm_keeps_what_is_finished_as_ctrl_c_does(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(
        "name: long\nagents: {count: 2}\nreplications: 5000\nschedule: {kind: rounds, turns: 50}\n"
        "problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}\n"
        "algorithms: [{algorithm: lin_ucb}]\n"
    )
    command = [sys.executable, "-m", "coband", "run", "long.yaml", "--workers", "1", "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: results_of(tmp_path / "out") > 1, process)
            process.terminate()
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED
    assert "interrupted: " in errors
    assert "finished jobs are kept in out" in errors
    with open_run(tmp_path / "out") as run:
        assert run.manifest["status"] == "interrupted"
        assert [job.status for job in run.jobs[:2]] == ["finished", "finished"]


def test_json_is_one_strict_object_and_nothing_else(coband: Program) -> None:
    status, output, errors = coband("run", "x.yaml", "--json", "--workers", 1, "--out", "here")
    report = json.loads(output, parse_constant=pytest.fail)
    assert status == 0
    assert report == json.loads(Path("here/results.json").read_text())
    assert list(report) == ["scenario", "results", "failures"]
    assert errors == f"{SIZE}run directory: here\n"


def test_options_change_the_scenario(coband: Program) -> None:
    command = "run x.yaml --json --seed 9 --replications 3 --only Often --trace off --set turns=6 --workers 1"
    report = json.loads(coband(*command.split())[1])
    (entry,) = report["results"]
    found = [(record["seed"], record["replication"], record["turns"]) for record in entry["replications"]]
    assert found == [(9, 0, 30), (9, 1, 30), (9, 2, 30)]
    (entry,) = json.loads(coband("run", "x.yaml", "--json", "--only", "Often", "--replication", 1)[1])["results"]
    assert [record["replication"] for record in entry["replications"]] == [1]


def test_a_replayed_job_gives_the_same_fingerprint(coband: Program) -> None:
    first = json.loads(coband("run", "x.yaml", "--json", "--workers", 1)[1])["results"][1]["replications"][1]
    options = ["--seed", 3, "--replication", 1, "--only", "Seldom", "--trace", "full"]
    again = json.loads(coband("run", "x.yaml", "--json", *options)[1])["results"][0]["replications"][0]
    assert again["fingerprint"] == first["fingerprint"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "Oftne"], "coband: no algorithm or label 'Oftne' in this scenario; did you mean Often?\n"),
        (
            ["--out", "full"],
            "coband: full is not empty, and a run overwrites nothing. Remove it, or choose another --out",
        ),
        (["--workers", "0"], "0 is not in the range x>=1"),
    ],
)
def test_bad_input(coband: Program, arguments: list[str], message: str) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    status, output, errors = coband("run", "x.yaml", *arguments)
    assert (status, output) == (2, "")
    assert message in errors
    assert not Path("runs").exists()


def test_a_violation_ends_with_status_1_and_says_how_to_replay(coband: Program) -> None:
    coband.scenario = FakeScenario(mischief=((1, "negative"),), labels=("Often",))
    status, output, errors = coband("run", "x.yaml", "--workers", 1, "--set", "count=4")
    assert status == 1
    assert output.splitlines()[1].startswith("Often  1  ")
    assert "broke off, and missing above: Often (1 of 2); results.json says why" in output
    assert "Often, replication 1, broke an invariant: the pseudo-regret of a turn is -1.0" in errors
    assert "<- event" in errors
    replay = "coband run x.yaml --set count=4 --seed 3 --replication 1 --only Often --trace full"
    assert f"to see it again: {replay}" in errors
    assert coband(*replay.split()[1:])[0] == 1


def test_an_error_is_shown_in_full_once(coband: Program) -> None:
    coband.scenario = FakeScenario(mischief=((0, "error"), (1, "error")))
    status, output, errors = coband("run", "x.yaml", "--workers", 1)
    assert (status, output) == (1, "run directory: runs/fake-0001\n")
    assert errors.count("Traceback") == 1
    assert errors.count("failed: ZeroDivisionError: a bug") == 4


def test_ctrl_c_ends_with_status_130_and_says_what_is_kept(coband: Program) -> None:
    coband.scenario = FakeScenario(mischief=((1, "interrupt"),))
    status, output, errors = coband("run", "x.yaml", "--workers", 1)
    assert status == 130
    assert "interrupted: 2 finished jobs are kept in runs/fake-0001, 2 are missing" in errors
    assert output.splitlines()[1].startswith("Often   1  ")


def test_a_full_disk_ends_with_status_2_and_says_what_is_kept(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run.sqlite")

    monkeypatch.setattr(RunDirectory, "take", fail)
    status, output, errors = coband("run", "x.yaml", "--workers", 1)
    assert (status, output) == (2, "run directory: runs/fake-0001\n")
    assert errors == (
        f"{SIZE}stopped (run.sqlite: No space left on device): 0 finished jobs are kept in runs/fake-0001, 4 are "
        "missing\n"
    )


def test_jobs_in_a_directory_that_is_gone_are_not_called_kept(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    take, taken = RunDirectory.take, list[object]()

    def removed(place: RunDirectory, *arguments: Any) -> None:
        taken.append(arguments)
        if len(taken) == 3:
            shutil.rmtree(place.path)
        take(place, *arguments)

    monkeypatch.setattr(RunDirectory, "take", removed)
    status, _, errors = coband("run", "x.yaml", "--workers", 1)
    assert status == 2
    assert " jobs had finished, but runs/fake-0001 was removed meanwhile, and what was in it is gone, " in errors
    assert "are kept" not in errors


def test_a_full_disk_is_named_where_the_system_names_no_file(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, said in (
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "x/run: No space left on device"),
        (
            sqlite3.OperationalError("database or disk is full"),
            "x/run/run.sqlite cannot be written: database or disk is",
        ),
    ):

        def fail(*arguments: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(RunDirectory, "take", fail)
        status, _, errors = coband("run", "x.yaml", "--workers", 1, "--out", "x/run")
        assert status == 2
        assert f"stopped ({said}" in errors
        shutil.rmtree("x/run")


def test_turns_that_were_never_taken_are_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"warnings": ["17 turns were never taken: agents were down for good"]}
    entry = {"label": "Sync", "algorithm": "dis_lin_ucb", "replications": [record]}
    progress.warn(Report({"results": [entry]}, Status("s"), [], 0, Path("d")))
    assert "warning: Sync: 17 turns were never taken: agents were down for good\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("algorithm", "metric", "words"),
    [
        ("co_kernel_fc", "theorem_1_holds", "A: the conditions of Theorem 1 of Du et al. 2023 do not hold in 1 of 2 "),
        ("coop_kernel_ucb", "cliques_join", "A: there are almost as many cliques as agents, so most of them learn "),
        ("eager_kernel_ucb", "dictionary_suffices", "A: the dictionary has less than 3 points for each task"),
    ],
)
def test_numbers_that_call_for_caution_are_a_warning(
    algorithm: str, metric: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [{metric: 0}, {metric: 1}]
    entry = {"label": "A", "algorithm": algorithm, "replications": records}
    progress.warn(Report({"results": [entry]}, Status("s"), [], 0, Path("d")))
    said = capsys.readouterr().err
    assert said.startswith(f"warning: {words}")
    assert "1 of 2 replications" in said
    assert said.endswith(f"(coband describe {algorithm})\n")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.Bar("study") as bar:
        bar.changed(Status("study", entries={"A": EntryStatus(total=4, done=1)}))
        bar.changed(
            Status("study", entries={"A": EntryStatus(total=4, done=1, seconds=75.0)}, under_way=1.0, elapsed=75.0)
        )
    shown = capsys.readouterr().err
    assert "study" in shown
    assert "50%" in shown
    assert "about 1 min 15 s left" in shown


@pytest.mark.parametrize(
    ("mean", "bounds", "text"),
    [
        (2354.123, None, "2,354.1"),
        (200.0, None, "200"),
        (None, None, "-"),
        (700.0, (700.0, 700.0), "700"),
        (69.35, (19.0, 119.7), "69 ± 50"),
        (9.254, (8.4584, 10.0496), "9.25 ± 0.80"),
        (0.0123456, (0.0120, 0.0126912), "0.01235 ± 0.00035"),
        (299799.5, (198712.1, 400886.9), "299,800 ± 101,087"),
    ],
)
def test_numbers_as_people_read_them(mean: float | None, bounds: tuple[float, float] | None, text: str) -> None:
    assert tables.between(mean, bounds) == text
