"""``coband whatif``: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.traces.runs import STAR, perform
from tests.cli.fake_cli import Program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return perform(STAR, tmp_path_factory.mktemp("stored") / "star", "replications=2", only=("Async",))


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    monkeypatch.chdir(tmp_path)
    return Program(capsys)


def first(coband: Program, folder: Path, event: str) -> int:
    _, output, _ = coband("trace", "show", folder, "--replication", 0, "--event", event, "--limit", 1, "--json")
    seq: int = json.loads(output)["seq"]
    return seq


def test_what_one_lost_message_has_cost(coband: Program, folder: Path) -> None:
    delivery = first(coband, folder, "deliver")
    status, output, errors = coband("whatif", folder, "--drop", delivery, "--replication", 0)
    lines = output.splitlines()
    assert (status, errors, lines[0]) == (0, "", f"Async [lost={delivery}] against Async, replication 0")
    table = {line.split()[0]: line.split()[1:] for line in lines[2:] if line.split()[0] in ("regret", "dropped")}
    assert table["dropped"] == ["0", "1", "+1"]
    assert "the traces part at server at time" in output
    assert lines[-3].split()[:2] == ["stored", str(delivery)]
    assert (lines[-2], lines[-1]) == (
        "what if         -  nothing in its place",
        "run directory: runs/star-what-if-0001",
    )


def test_json(coband: Program, folder: Path, tmp_path: Path) -> None:
    delivery = first(coband, folder, "deliver")
    out = tmp_path / "late"
    status, output, _ = coband("whatif", folder, "--delay", delivery, "1.5", "--replication", 0, "--out", out, "--json")
    found = json.loads(output)
    (answer,) = found["answers"]
    assert (status, found["delay"], found["directory"]) == (0, [[delivery, 1.5]], str(out))
    assert answer["changes"]["messages"].keys() == {"stored", "changed", "difference"}
    assert answer["traces"]["0"]["stored"]["seq"] == delivery
    assert json.loads((out / "manifest.json").read_text())["whatif"]["delay"] == [[delivery, 1.5]]


def test_several_replications_and_changes(coband: Program, folder: Path) -> None:
    status, output, _ = coband("whatif", folder, "--agent", 3, "speed=1", "--set", "network.latency=0.25")
    lines = output.splitlines()
    assert (status, lines[0]) == (0, "Async [agent 3 speed=1, network.latency=0.25] against Async, 2 replications")
    assert sum("the traces part at" in line for line in lines) == 2
    assert any("paired by replication" in line for line in lines)


def test_split(coband: Program, folder: Path) -> None:
    status, output, _ = coband("whatif", folder, "--split", "--replication", 0)
    lines = output.splitlines()
    assert (status, lines[0]) == (0, "Async, 1 replication: regret by cause, in this order")
    causes = ["all of it", "lost messages", "late messages", "slow and absent agents", "the threshold", "the rest"]
    assert [next(cause for cause in causes if line.startswith(cause)) for line in lines[2:8]] == causes
    assert lines[3].split()[2:4] == ["none", "here"]
    status, output, _ = coband("whatif", folder, "--split", "--replication", 0, "--json")
    (found,) = json.loads(output)["splits"]
    assert [share["cause"] for share in found["shares"]] == causes[1:5]
    status, output, errors = coband("show", "latest")
    assert (status, errors, "\nAsync [split=no delay] " in output) == (0, "", True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "coband: nothing is changed; give --drop, --delay, --agent or --set."),
        (["--drop", 5], "choose --replication (0, 1)"),
        (["--drop", 0, "--replication", 0], "event 0 is no message but a 'turn' of agent 0"),
        (["--agent", 9, "speed=1"], "coband: --agent 9: there is no such agent; they are numbered from 0 to 3."),
        (["--set", "network.los=0"], "network.los"),
        (["--set", "network.loss=2"], "network.loss"),
        (
            ["--set", "algorithms.Async.algorithm=lin_ucb"],
            'does not have; give the whole entry: --set "algorithms.Async={algorithm: lin_ucb, label: Async}".',
        ),
        (["--label", "Anc", "--set", "network.loss=0"], "there is no label 'Anc' in this run; there is Async"),
        (["--split", "--drop", 5], "give it without --drop, --set and others."),
        (["--drop", "x"], "'x' is not a valid integer"),
    ],
)
def test_bad_input(coband: Program, folder: Path, arguments: list[object], text: str) -> None:
    status, output, errors = coband("whatif", folder, *arguments)
    assert (status, output) == (2, "")
    assert text in errors
    assert len(errors.splitlines()) == 1
    assert not Path("runs").exists()


def test_no_run(coband: Program, tmp_path: Path) -> None:
    status, _, errors = coband("whatif", tmp_path, "--drop", 5)
    assert (status, "is not a run" in errors) == (2, True)


def test_a_damaged_store(coband: Program, folder: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    content = (folder / "run.sqlite").read_bytes()
    (damaged / "run.sqlite").write_bytes(content[: len(content) // 2])
    status, _, errors = coband("whatif", damaged, "--drop", 5)
    assert (status, "damaged" in errors or "incomplete" in errors) == (2, True)
    assert "Traceback" not in errors


def test_a_full_directory(coband: Program, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    status, _, errors = coband("whatif", folder, "--set", "network.loss=0.1", "--replication", 0, "--out", tmp_path)
    assert (status, "is not empty" in errors) == (2, True)
