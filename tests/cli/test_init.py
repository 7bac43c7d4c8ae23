"""``coband init``: projects that run at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
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


def test_a_project_has_the_name_of_its_folder(here: Path) -> None:
    assert coband("init", "my-study", "--template", "comparison").output.endswith(
        "    coband run scenario.yaml\n    coband report runs/my_study-0001\n"
    )
    assert yaml.safe_load(Path("my-study/scenario.yaml").read_text())["name"] == "my_study"
    assert coband("init", "share-it", "--template", "own-algorithm").exit_code == 0
    assert sorted(path.name for path in Path("share-it").glob("*.py")) == ["share_it.py", "test_share_it.py"]
    assert "class ShareIt(Agent):" in Path("share-it/share_it.py").read_text()
    everything = "".join(path.read_text() for path in Path("share-it").rglob("*") if path.is_file())
    assert not any(word in everything for word in ("fed_ucb1", "FedUcb1", "fed-ucb1"))
    assert coband("init", "null").exit_code == 0  # which is not a text in YAML without quotes
    assert yaml.safe_load(Path("null/scenario.yaml").read_text())["name"] == "null"


@pytest.mark.parametrize("name", ["class", "lin_ucb", "numpy", "1st"])
def test_a_name_that_no_plugin_can_have_is_not_taken(here: Path, name: str) -> None:
    assert "fed_ucb1.py" in coband("init", name, "--template", "own-algorithm").output


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
