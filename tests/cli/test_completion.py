"""What shells complete: what click completes by itself, without importing commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coband.simulator.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("coband sw", ["sweep"]),
        ("coband trace di", ["diff"]),
        ("coband run --wor", ["--workers"]),
        ("coband trace export RUN --format p", ["perfetto", "parquet"]),
    ],
)
def test_tab(typed: str, given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shell = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_COBAND_COMPLETE": "bash_complete"}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main([])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert [line.partition(",")[2] for line in said.out.splitlines()] == given


def test_the_names_of_commands_are_completed_without_importing_them() -> None:
    code = """if True:
        import sys
        import click
        from coband.simulator.cli.main import cli
        cli.shell_complete(click.Context(cli, info_name="coband", resilient_parsing=True), "")
        print(*[name for name in sys.modules if name.startswith("coband.simulator.cli.")])"""
    command, environment = [sys.executable, "-P", "-c", code], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "coband.simulator.cli.run" not in done.stdout.split()
