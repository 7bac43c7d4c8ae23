"""What shells complete, asked of the program as shells ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coband.simulator.cli.main import main
from tests.every import every

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, and with a run in ``runs``."""
    found = tmp_path_factory.mktemp("completion")
    (found / "mine.yaml").write_text("algorithms:\n  - {algorithm: duets, label: Fast}\n  - {algorithm: fn_ucb}\n")
    (found / "broken.yaml").write_text("algorithms: [")
    run = found / "runs" / "study-0001"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    (run / "results.json").write_text(json.dumps({"results": [{"label": "Async"}, {"label": "Alone"}]}))
    (found / "runs" / "other").mkdir()
    return found


@every(
    ("typed", "offered"),
    [
        ("coband sw", ["sweep"]),
        ("coband trace di", ["diff"]),
        ("coband run quick", ["quickstart"]),
        ("coband run mi", ["mine.yaml"]),
        ("coband validate duets/h1", ["duets/h1", "duets/h1_quick"]),
        ("coband counts lock quick", ["quickstart"]),
        ("coband run mine.yaml --only ", ["Fast", "duets", "fn_ucb"]),
        ("coband run broken.yaml --only dist", ["dist_kernel_ucb"]),
        ("coband run quickstart --only A", ["Async", "Approx-Dis", "Alone"]),
        ("coband trace show runs/study-0001 --label A", ["Async", "Alone"]),
        ("coband report st", ["st"]),
        ("coband report ", ["runs/study-0001", "latest"]),
        ("coband trace why runs/", ["runs/study-0001"]),
        ("coband describe fed_glb", ["fed_glb_ucb"]),
        ("coband describe network.topology.se", ["network.topology.seed"]),
        ("coband describe pare", ["pareto", "pareto.minimum", "pareto.shape"]),
        ("coband data fetch mag", ["magic"]),
        ("coband init --template sw", ["sweep"]),
    ],
)
def test_tab(
    typed: str, offered: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What Tab offers at the end of a command line, in a folder."""
    monkeypatch.chdir(folder)
    shell = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_COBAND_COMPLETE": "bash_complete"}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main([])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert [line.partition(",")[2] for line in said.out.splitlines()] == offered


def test_bash_completes(folder: Path) -> None:
    """The script that bash sources, in a real bash."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    program = folder / "bin" / "coband"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -P -c 'from coband.simulator.cli.main import main; main()' \"$@\"\n"
    )
    program.chmod(0o755)
    script = """
        eval "$(_COBAND_COMPLETE=bash_source coband)"
        COMP_WORDS=(coband run quickstart --only Al) COMP_CWORD=4
        _coband_completion coband
        echo "${COMPREPLY[@]}"
    """
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    done = subprocess.run(
        [bash, "-c", script],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("Alone\n", 0)
    assert "complete: command not found" not in done.stderr


def test_the_names_of_commands_are_completed_without_importing_them(folder: Path) -> None:
    code = """if True:
        import sys
        import click
        from coband.simulator.cli.main import cli
        cli.shell_complete(click.Context(cli, info_name="coband", resilient_parsing=True), "")
        print(*[name for name in sys.modules if name.startswith("coband.simulator.cli.")])"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "coband.simulator.cli.run" not in done.stdout.split()
