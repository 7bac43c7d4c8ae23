from pathlib import Path

import pytest

from coband.simulator.experiments.runs import study
from tests.cli.fake_cli import Program


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    """The program with a fake scenario behind every file name, in an empty working directory."""
    program = Program(capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study, "load_run", program.load)
    return program
