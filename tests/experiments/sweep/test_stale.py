"""Finished jobs count only as long as the user's code, and the files around it, are what they were."""

import ast
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from coband.simulator.cli.main import exit_status
from coband.simulator.experiments.runs import address

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(SCENARIO)
    return tmp_path


def swept(capsys: pytest.CaptureFixture[str], *options: str, workers: int = 1) -> tuple[int, str]:
    """How many jobs ``coband sweep`` finds done, and what it says on standard error."""
    capsys.readouterr()
    words = ["sweep", "own.yaml", "--set", "grid={agents.compute: [0]}", "--out", "out", *options]
    assert exit_status([*words, "--workers", str(workers)]) == 0
    entries = json.loads(Path("out/status.json").read_text())["entries"]
    return sum(entry["kept"] for entry in entries.values()), capsys.readouterr().err


def test_a_database_in_the_folder_of_the_code_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(DATABASE.replace("INPUT", str(folder / "x.sqlite")))
    kept = []
    for statement in ("CREATE TABLE t AS SELECT 2.0 AS x", "UPDATE t SET x = 3.25", "SELECT x FROM t"):
        with closing(sqlite3.connect(folder / "x.sqlite")) as connection, connection:
            connection.execute(statement)
        kept.append(swept(capsys, *["--resume"] * (folder / "out").exists())[0])
    assert kept == [0, 0, 1]


@pytest.mark.parametrize("case", CODE)
def test_an_edited_file_leads_to_a_new_run(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / ("helper_of_own.py" if "module" in case else "factor.txt")
    contents = ["FACTOR = 2.0\n", "FACTOR = 3.25\n"] if "module" in case else ["2.0", "3.25"]
    (folder / "own.py").write_text(CODE[case].replace("INPUT", str(file)).replace("FOLDER", str(folder)))
    file.write_text(contents[0])
    workers = 1 if "every turn" in case else 2  # new processes import what was edited
    assert swept(capsys, workers=workers)[0] == 0
    assert swept(capsys, "--resume", workers=workers)[0] == 1
    first = (folder / "out" / "results.json").read_text()
    file.write_text(contents[1])
    assert swept(capsys, "--resume", workers=workers)[0] == 0
    assert (folder / "out" / "results.json").read_text() != first
    assert swept(capsys, "--resume", workers=workers)[0] == 1
    sys.modules.pop("helper_of_own", None)


PLAIN = "def reward(arms):\n    return arms[:, 0]\n"


def test_runs_and_the_scenario_itself_are_no_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(PLAIN)
    swept(capsys)
    (folder / "own.yaml").write_text(SCENARIO.replace("replications: 1", "replications: 2"))
    assert exit_status(["run", "own.yaml", "--workers", "1"]) == 0
    assert swept(capsys, "--resume")[0] == 1


def test_what_this_process_says_is_no_code_and_what_changed_is_said(folder: Path) -> None:
    (folder / "own.py").write_text(PLAIN)
    command = f"{sys.executable} -m coband sweep own.yaml --set 'grid={{agents.compute: [0]}}' --out out --resume"
    said = []
    for shell in ("{} >> log.txt", "{} >> log.txt", "touch more.txt; {} >> log.txt"):
        done = subprocess.run(shell.format(command), shell=True, capture_output=True, text=True, check=True, cwd=folder)
        kept = sum(entry["kept"] for entry in json.loads((folder / "out/status.json").read_text())["entries"].values())
        said.append((kept, "no finished job in out/done was used again: the scenario, " in done.stderr))
    assert said == [(0, False), (1, False), (0, True)]


def test_finished_jobs_run_again_when_asked_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(PLAIN)
    swept(capsys)
    assert swept(capsys, "--again")[0] == 0
    assert swept(capsys, "--resume")[0] == 1


def test_jobs_of_code_among_very_many_files_are_never_used_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own.py").write_text(PLAIN)
    (folder / "large.csv").write_text("1" * 1000)
    for name, most in (("MOST_BYTES", 1000), ("MOST_FILES", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(address, name, most)
            swept(capsys, *["--resume"] * (folder / "out").exists())
            kept, said = swept(capsys, "--resume")
        assert kept == 0
        assert f"warning: {folder} has code of this scenario among more than " in said
        assert "so its finished jobs are never used again" in said


def test_jobs_of_a_notebook_are_never_used_again(folder: Path) -> None:
    code = """if True:
        import warnings, coband
        def reward(arms):
            return arms[:, 0]
        changed = {"problem.reward": reward, "grid": {"agents.compute": [0]}}
        for resume in (False, True):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                coband.sweep("own.yaml", set=changed, out="out", workers=1, resume=resume)
        print([str(one.message) for one in said])
        import json
        print([one["kept"] for one in json.load(open("out/status.json"))["entries"].values()])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    said, kept = done.stdout.splitlines()[-2:]
    why = "some code of this scenario is in no file, as in a notebook, so its finished jobs are never used again"
    assert (ast.literal_eval(said), kept) == ([why], "[0]")
