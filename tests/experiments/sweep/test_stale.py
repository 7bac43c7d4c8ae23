"""Finished jobs count only as long as what the user's code has read is what it was."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status

SCENARIO = """
name: own
seed: 1
replications: 1
agents: {count: 2}
schedule: {kind: rounds, turns: 5}
network: {topology: star}
problem:
  kind: contextual
  arms: {kind: sphere, dimension: 2, count: 3}
  reward: {kind: python, function: "own.py:reward"}
algorithms: [{algorithm: dis_lin_ucb, threshold: 1}]
"""
CODE = {
    "a file read at every turn": """
def reward(arms):
    return arms[:, 0] * float(open("INPUT").read())
""",
    "a file read at import": """
from pathlib import Path
FACTOR = float(Path("INPUT").read_text())
def reward(arms):
    return arms[:, 0] * FACTOR
""",
    "a module whose name is made at run time": """
import importlib, sys
sys.path.insert(0, "FOLDER")
def reward(arms):
    return arms[:, 0] * importlib.import_module("helper_" + "of_own").FACTOR
""",
}
DATABASE = """
import sqlite3
def reward(arms):
    return arms[:, 0] * sqlite3.connect("INPUT").execute("SELECT x FROM t").fetchone()[0]
"""
OUTSIDE = """
import subprocess, sys
def reward(arms):
    return arms[:, 0] * float(subprocess.run([sys.executable, "-IS", "-c", "print(2)"], capture_output=True).stdout)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(SCENARIO)
    return tmp_path


def swept(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What ``coband sweep`` says on standard error; its jobs run in processes that have read nothing before."""
    capsys.readouterr()
    assert (
        exit_status(
            ["sweep", "own.yaml", "--set", "grid={agents.compute: [0]}", "--out", "out", "--workers", "2", *options]
        )
        == 0
    )
    return capsys.readouterr().err


def test_a_database_is_a_file_that_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(DATABASE.replace("INPUT", str(folder / "x.sqlite")))
    for statement in ("CREATE TABLE t AS SELECT 2.0 AS x", "UPDATE t SET x = 3.25"):
        with closing(sqlite3.connect(folder / "x.sqlite")) as connection, connection:
            connection.execute(statement)
        said = swept(capsys, *["--resume"] * (folder / "out").exists())
    assert f"warning: {folder / 'x.sqlite'} has changed since jobs read it, so they run again" in said


@pytest.mark.parametrize("case", CODE)
def test_what_was_read_is_looked_at_again(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / ("helper_of_own.py" if "module" in case else "factor.txt")
    contents = ["FACTOR = 2.0\n", "FACTOR = 3.25\n"] if "module" in case else ["2.0", "3.25"]
    (folder / "own.py").write_text(CODE[case].replace("INPUT", str(file)).replace("FOLDER", str(folder)))
    file.write_text(contents[0])
    assert "has changed" not in swept(capsys)
    assert "has changed" not in swept(capsys, "--resume")
    first = (folder / "out" / "results.json").read_text()
    file.write_text(contents[1])
    assert f"warning: {file} has changed since jobs read it, so they run again" in swept(capsys, "--resume")
    assert (folder / "out" / "results.json").read_text() != first
    assert "has changed" not in swept(capsys, "--resume")
    sys.modules.pop("helper_of_own", None)


def test_what_nobody_can_know_is_not_used_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(OUTSIDE)
    swept(capsys)
    said = swept(capsys, "--resume")
    assert "code of this scenario starts another program, so nobody knows whether its results would be the same" in said
