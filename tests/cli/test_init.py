"""``coband init``: projects that run at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coband.simulator.cli.init import ABOUT
from coband.simulator.cli.main import cli


def coband(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("template", [name for name in ABOUT if name != "own-algorithm"])
def test_a_project_runs(here: Path, template: str) -> None:
    written = coband("init", "my project", "--template", template)
    assert written.exit_code == 0, written.output
    os.chdir("my project")
    _, commands = Path("README.md").read_text().rstrip().split("\n\n")
    assert written.output.endswith(f"next:\n    cd 'my project'\n{commands}\n")
    assert coband("validate", "scenario.yaml").exit_code == 0
    few = ("--replications", 3 if template == "paper-study" else 1)  # enough for what it expects
    done = coband(*commands.split("\n")[0].split()[1:], *few, "--workers", 1)
    assert done.exit_code == 0, done.output


def test_a_plugin_project_is_installed(here: Path) -> None:
    """The tutorial's page tests and checks it."""
    assert coband("init", ".", "--template", "own-algorithm").exit_code == 0
    install = "install -q --no-deps --no-build-isolation --disable-pip-version-check --no-warn-conflicts"
    command = [sys.executable, "-m", "pip", *install.split(), "--target", "installed", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_replaced(here: Path) -> None:
    (here / "README.md").write_text("mine")
    refused = coband("init", "--template", "sweep")
    assert refused.exit_code == 2
    assert "README.md exists" in refused.output
    assert os.listdir(here) == ["README.md"]
