"""``coband trace follow | why | diff | query | export``: what users see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.fake_cli import Program, install
from tests.experiments.runs.fake_runs import ROOT, perform


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trace") / "run"
    perform(out)
    return out


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    return install(monkeypatch, capsys, tmp_path)


ONE = ["--label", "Often", "--replication", 0]


def test_why(coband: Program, run: Path) -> None:
    _, output, _ = coband("trace", "show", run, *ONE, "--event", "deliver", "--node", 3, "--limit", 1, "--json")
    event = json.loads(output)
    status, output, _ = coband("trace", "why", run, event["seq"], *ONE)
    lines = output.splitlines()
    assert (status, lines[0]) == (0, "Often, replication 0")
    words = [line.split()[2] for line in lines[2:-1] if len(line.split()) > 1]  # a detail has a line of its own
    assert words == ["deliver", "send", "deliver", "send", "trigger", "reward", "choose", "turn"]
    assert lines[-1] == f"event {event['seq']} goes back to turn 2 of agent 0: 2 messages and 0 time units before."
    status, output, _ = coband("trace", "why", run, event["seq"], *ONE, "--json")
    assert [json.loads(line)["event"] for line in output.splitlines()] == words


def test_follow(coband: Program, run: Path) -> None:
    status, output, _ = coband("trace", "follow", run, 5, *ONE)
    lines = output.splitlines()
    assert (status, [line.split()[2] for line in lines[2:-1]]) == (0, ["send", *["deliver"] * 5])
    assert lines[-1] == "mean, 1 scalar, from server to everyone: 5 copies, 5 delivered; 0 time units on the way."
    status, output, _ = coband("trace", "follow", run, 0, *ONE, "--effects", "--json")
    assert [json.loads(line)["event"] for line in output.splitlines()] == ["send", "deliver", "model", "send"]


def test_show_one_message(coband: Program, run: Path) -> None:
    _, output, _ = coband("trace", "show", run, *ONE, "--message", 5, "--json")
    assert [json.loads(line)["message"] for line in output.splitlines()] == [5] * 6


def test_stats_by_several_columns(coband: Program, run: Path) -> None:
    status, output, _ = coband("trace", "stats", run, "--by", "kind,node", "--label", "Often", "--json")
    found = [json.loads(line) for line in output.splitlines()]
    assert status == 0
    assert {
        "label": "Often",
        "kind": "mean",
        "node": "server",
        "events": 200,
        "sends": 200,
        "messages": 1000,
        "scalars": 1000,
        "deliveries": 0,
    } in found


def test_diff(coband: Program, run: Path, tmp_path: Path) -> None:
    status, output, _ = coband("trace", "diff", run, run / "run.sqlite", "--label", "Often")
    assert (status, output) == (
        0,
        "Often, replication 0: the same, 1,600 events\nOften, replication 1: the same, 1,600 events\n",
    )
    status, output, _ = coband(
        "trace", "diff", run, run, "--label", "Often", "--other-label", "Seldom", "--replication", 1
    )
    lines = output.splitlines()
    assert status == 1
    assert lines[0] == (
        "Often and Seldom, replication 1: the first difference is at agent 0 at time 2, after 30 common events"
    )
    assert lines[2].split()[:4] == ["A", "18", "2", "trigger"]
    status, output, _ = coband("trace", "diff", run, run, "--label", "Often", "--other-label", "Seldom", "--json")
    first = json.loads(output.splitlines()[0])
    assert (first["same"], first["common"], first["a"]["event"]) == (False, 30, "trigger")


def test_query(coband: Program, run: Path) -> None:
    sql = "SELECT label, count(*) AS n, 9e999 AS x FROM jobs GROUP BY label"
    status, output, errors = coband("trace", "query", run, sql)
    assert (status, errors) == (0, "")
    assert [line.split() for line in output.splitlines()] == [
        ["label", "n", "x"],
        ["Often", "2", "."],
        ["Seldom", "2", "."],
    ]
    _, output, _ = coband("trace", "query", run, sql, "--json")
    assert json.loads(output.splitlines()[0]) == {"label": "Often", "n": 2, "x": None}


def test_export(coband: Program, run: Path, tmp_path: Path) -> None:
    status, output, _ = coband("trace", "export", run, *ONE, "--format", "jsonl")
    assert (status, len(output.splitlines())) == (0, 1600)
    status, output, _ = coband("trace", "export", run, "--format", "perfetto", "--out", "t.json")
    assert (status, output) == (0, "t.json\n")
    assert json.loads(Path("t.json").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["why", "RUN", "3"], "holds 4 jobs, each with events of its own; choose --label (Often, Seldom) and"),
        (["why", "RUN", "99999", *ONE], "Often, replication 0, has no event 99999; they go from 0 to 1599."),
        (["why", "RUN", "-1", *ONE], "-1"),
        (["why", "RUN", "x", *ONE], "'x' is not a valid integer"),
        (["follow", "RUN", "9999", *ONE], "has no message 9999; they go from 0 to"),
        (["follow", "RUN", "1", "--label", "Oftn"], "there is no label 'Oftn' in this run; there is Often."),
        (["follow", "RUN", "1", "--replication", "9"], "there is no replication 9 in this run; there is 0, 1."),
        (["stats", "RUN", "--by", "kind,day"], "--by 'day' is not one of 'event', 'kind', 'node', 'round'."),
        (["query", "RUN", "DELETE FROM jobs"], "only reading is allowed here"),
        (["query", "RUN", "SELECT 1", "--seconds", "0"], "--seconds"),
        (["query", "nowhere", "SELECT 1"], "nowhere is not a run"),
        (["export", "RUN", "--format", "xml"], "'xml' is not one of"),
        (
            ["export", "RUN", "--format", "csv", "--out", "RUN/run.sqlite/place"],
            "/place cannot be written: File exists. Choose another place with --out.",
        ),
        (
            ["export", "RUN", "--format", "csv", "--out", "RUN/run.sqlite", "--force"],
            "run.sqlite is a file of a run, which nothing replaces. Choose another place with --out.",
        ),
        (["diff", "RUN", "nowhere"], "nowhere is not a run"),
        (["whi", "RUN", "3"], "there is no command 'whi'; did you mean why?"),
    ],
)
def test_bad_input(coband: Program, run: Path, arguments: list[object], message: str) -> None:
    status, output, errors = coband("trace", *(str(word).replace("RUN", str(run)) for word in arguments))
    assert (status, output) == (2, "")
    assert message in errors
    assert "Traceback" not in errors


def test_a_run_without_a_trace_says_so(coband: Program, tmp_path: Path) -> None:
    perform(tmp_path / "off", replications=1, trace="off", labels=("Often",))
    questions = (["show"], ["stats"], ["why", 0], ["follow", 0], ["export", "--format", "csv"])
    for name, *rest in questions:
        status, _, errors = coband("trace", name, tmp_path / "off", *rest)
        assert status == 2
        assert "kept no trace (trace: off)" in errors
    assert coband("trace", "diff", tmp_path / "off", tmp_path / "off")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "RUN", "--format", "jsonl"],
        ["query", "RUN", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"],
    ],
)
def test_a_closed_pager_is_no_error(run: Path, arguments: list[str]) -> None:
    words = [str(run) if word == "RUN" else word for word in arguments]
    command = [sys.executable, "-c", "from coband.simulator.cli.main import main; main()", "trace", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
