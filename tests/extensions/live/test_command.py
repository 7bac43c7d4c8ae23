"""``coband live``, ``live agent``, and ``compare`` of a live run and a simulated one."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coband.extensions.live import listener
from coband.extensions.live.config import PROTOCOL, LiveError
from coband.simulator.cli.main import exit_status
from tests.extensions.live.tampering import nested, served
from tests.extensions.live.together import SERIAL

FAST = ("--speed", "0", "--agents-per-process", "2")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("serial.yaml").write_text(SERIAL)
    return tmp_path


def coband(*arguments: str) -> int:
    return exit_status([str(word) for word in arguments])


def test_a_live_run_beside_a_simulated_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coband("run", "serial.yaml", "--only", "Async", "--out", "sim") == 0
    assert coband("live", "run", "serial.yaml", "--only", "Async", *FAST, "--out", "live") == 0
    told = capsys.readouterr()
    assert "listening at tcp://127.0.0.1:" in told.err
    assert told.err.count("60 turns of 3 agents together × 1 algorithm × 1 replication = 60 pulls\n") == 2
    assert "run directory: live" in told.out
    manifest = json.loads(Path("live/manifest.json").read_text())
    assert manifest["live"] == {"speed": 0.0, "agents_per_process": 2, "host": "127.0.0.1"}
    assert not (here / "live/jobs").exists()
    for command in (["trace", "verify", "live"], ["trace", "diff", "sim", "live"], ["trace", "stats", "live"]):
        assert coband(*command) == 0
    assert "the same" in capsys.readouterr().out
    assert coband("compare", "sim", "live") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Async, replication 0: measured over predicted"
    assert any(line.split() == ["time", "of", "100%", "of", "the", "turns", "60", "60", "1.000"] for line in lines)
    assert coband("compare", "live", "sim", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["measured"]
    exact = [row for row in rows if row["group"] in ("messages", "regret")]
    assert len(exact) > 8
    assert all(row["predicted"] == row["measured"] for row in exact)
    (written,) = (row for row in rows if row["title"].startswith("bytes written"))
    assert written["measured"] > written["predicted"] > 0
    assert {row["group"] for row in rows} == {"time", "regret", "messages", "bytes", "rounds", "delays", "overheads"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (("network.topology={kind: ring}",), "hop by hop"),
        (("agents.availability={kind: markov_on_off, mean_up: 5, mean_down: 1}",), "processes are killed"),
        (("checks=full",), "checks: full looks into all nodes at once"),
        (("adversaries=[{agents: [0], behaviour: {kind: alie}}]",), "who live are in other processes"),
        (
            ("messages={privacy: {mechanism: gaussian, sigma: 1, adversary: others, unit: agent, leak: allow}}",),
            "does not know how many pulls agents have made",
        ),
        (
            ("messages={encoding: {default: {kind: delta, of: {kind: delta, of: float32}}}}",),
            "a delta of a delta is not taken apart",
        ),
        (("messages={counting: packed}", "network.scalar_bits=32"), "on a socket an exact number takes 64"),
    ],
)
def test_what_cannot_run_live_is_refused_in_a_sentence(
    changes: tuple[str, ...], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"topology": "push_gossip_kernel_ucb", "privacy": "fed_lin_ucb"}  # where the change makes sense
    for name in (one for word, one in other.items() if word in changes[0]):
        Path("serial.yaml").write_text(SERIAL.split("algorithms:")[0] + f"algorithms: [{{algorithm: {name}}}]\n")
    settings = [word for change in changes for word in ("--set", change)]
    assert coband("live", "run", "serial.yaml", *settings, *FAST) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
    assert not Path("runs").exists()


def test_bad_arguments(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coband("live", "agent", "localhost", "--token", "x") == 2
    assert "is not an address; write tcp://HOST:PORT" in capsys.readouterr().err
    assert coband("live", "agent", "tcp://127.0.0.1:9", "--token", "x", "--patience", "0") == 2
    assert "no hub answers at 127.0.0.1:9" in capsys.readouterr().err
    assert coband("live", "run", "serial.yaml", "--host", "203.0.113.1", "--out", "x") == 2
    assert "203.0.113.1:0 cannot be opened" in capsys.readouterr().err
    assert not Path("x").exists(), "the same command may come again"
    assert coband("live", "agent", "tcp://[::1", "--token", "x") == 2
    assert "is not an address" in capsys.readouterr().err


def test_where_other_machines_can_connect_a_short_token_is_refused_and_a_warning_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for host in ("0.0.0.0", "::", "203.0.113.1", "some.host"):
        assert coband("live", "run", "serial.yaml", "--host", host, "--token", "fifteen letters", "--out", "x") == 2
        error = capsys.readouterr().err
        assert error.startswith(f"--token has 15 characters; with --host {host}, to which other machines can connect")
        assert error.count("\n") == 1
    assert not Path("x").exists()
    assert (
        coband("live", "run", "serial.yaml", "--host", "203.0.113.1", "--token", "sixteen letters.", "--out", "x") == 2
    )
    warning, *_, error = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: other machines can connect to 203.0.113.1, and nothing that goes over the wire")
    assert "cannot be opened" in error


@pytest.mark.parametrize("knows", [False, True], ids=["stranger", "knows the token"])
def test_a_station_at_a_wrong_hub_ends_in_one_line(knows: bool, capsys: pytest.CaptureFixture[str]) -> None:
    async def hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if knows:
            await listener.admit(reader, writer, "x")
        writer.write(b"\x00\x00\x02\xca" + nested(200))
        await writer.drain()
        await reader.read()

    async def main() -> int:
        async with served(hub) as port:
            return await asyncio.to_thread(coband, "live", "agent", f"tcp://127.0.0.1:{port}", "--token", "x")

    assert asyncio.run(main()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    wrong = "extension 2, where none is allowed" if knows else f"no greeting of live mode {PROTOCOL}"
    assert re.match(rf"coband: the hub at 127.0.0.1:\d+ has sent what it may not: {wrong}", line)


def test_two_simulated_runs_are_compared_as_ever(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert coband("run", "serial.yaml", "--only", "Dis", "--out", name) == 0
    assert coband("compare", "one", "two") == 0
    assert "measured over predicted" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_run_goes_on_without_a_process_that_is_killed_by_its_id(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In real time, and with agents that join from a shell."""
    program = [sys.executable, "-m", "coband"]
    environment = {**os.environ, "COBAND_LIVE_TOKEN": "of a test"}
    command = ["live", "run", "serial.yaml", "--only", "Async", "--speed", "0.1", "--join", "--out", "live"]
    hub = subprocess.Popen([*program, *command], env=environment, stderr=subprocess.PIPE, text=True)
    place = next(line for line in hub.stderr if line.startswith("listening")).split()[-1]
    stations = [_station(program, place, environment) for _ in range(3)]
    time.sleep(6.0)
    stations[1].send_signal(signal.SIGKILL)
    stations[1].wait()
    errors = hub.communicate(timeout=60)[1]
    assert hub.returncode == 0, errors
    assert [station.wait(timeout=20) for station in stations] == [0, -signal.SIGKILL, 0]
    assert "is lost; the run goes on without it" in errors
    results = json.loads(Path("live/results.json").read_text())
    assert results["results"][0]["replications"][0]["turns"] < 60
    assert coband("trace", "verify", "live") == 0
    assert "ok" in capsys.readouterr().out


def test_the_command_that_repeats_a_job_has_its_speed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails(*given: object) -> None:
        raise LiveError("a station is gone")

    monkeypatch.setattr("coband.extensions.live.deployment.deploy", fails)
    assert coband("live", "run", "serial.yaml", "--only", "Async", *FAST) == 1
    how = "--speed 0.0 --agents-per-process 2 --seed 3 --replication 0 --only Async"
    assert f"a station is gone\n  to see it again: coband live run serial.yaml {how}" in capsys.readouterr().err


def _station(program: list[str], place: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [*program, "live", "agent", place, "--agents", "1"]
    return subprocess.Popen(command, env=environment)
