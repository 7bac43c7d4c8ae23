"""``coband init``: projects that run at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from coband.simulator.cli.init import ABOUT, PLUGINS
from coband.simulator.cli.main import cli
from tests.everyday import slow

ROOT = Path(__file__).parents[2]


def coband(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("template", [name for name in ABOUT if name not in PLUGINS])
def test_a_project_runs_and_its_counts_are_locked(here: Path, template: str) -> None:
    written = coband("init", "my project", "--template", template)
    assert written.exit_code == 0, written.output
    os.chdir("my project")
    _, commands, _ = Path("README.md").read_text().split("\n\n")
    assert written.output.endswith(f"next:\n    cd 'my project'\n{commands}\n")
    checked = coband("check", "counts.lock.json")
    assert checked.exit_code == 0, checked.output
    assert coband("validate", "scenario.yaml").exit_code == 0
    few = ("--replications", 3 if template == "paper-study" else 1)  # enough for what it expects
    done = coband(*commands.split("\n")[0].split()[1:], *few, "--workers", 1)
    assert done.exit_code == 0, done.output
    workflow = yaml.safe_load(Path(".github/workflows/coband.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    assert steps[-2:] == ["coband validate scenario.yaml", "coband check counts.lock.json"]


def test_another_name(here: Path) -> None:
    assert coband("init", "my-study", "--template", "comparison").output.endswith(
        "    coband run scenario.yaml\n    coband report runs/my_study-0001\n"
    )
    assert yaml.safe_load(Path("my-study/scenario.yaml").read_text())["name"] == "my_study"
    assert coband("check", "my-study/counts.lock.json").exit_code == 0
    assert coband("init", "plugin", "--template", "own-algorithm", "--name", "share_it").exit_code == 0
    assert sorted(path.name for path in Path("plugin").glob("*.py")) == ["share_it.py", "test_share_it.py"]
    assert "class ShareIt(Agent):" in Path("plugin/share_it.py").read_text()
    everything = "".join(path.read_text() for path in Path("plugin").rglob("*") if path.is_file())
    assert not any(word in everything for word in ("fed_ucb1", "FedUcb1", "fed-ucb1"))
    for name in ("my study", "_"):
        refused = coband("init", "other", "--name", name)
        assert (refused.exit_code, Path("other").exists()) == (2, False)
    assert coband("init", "null", "--name", "null").exit_code == 0  # which is not a text in YAML without quotes
    assert yaml.safe_load(Path("null/scenario.yaml").read_text())["name"] == "null"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("class", "that is a word of Python itself"),
        ("lin_ucb", "an algorithm of that name is installed"),
        ("numpy", "a module of that name is installed"),
        ("needs", "its class would be Needs, which the plugin imports"),
    ],
)
def test_a_name_that_no_plugin_can_have(here: Path, name: str, why: str) -> None:
    refused = coband("init", "plugin", "--template", "own-algorithm", "--name", name)
    assert (refused.exit_code, Path("plugin").exists()) == (2, False)
    assert f"--name {name}: {why}; choose another name." in refused.output
    assert coband("init", "study", "--name", name).exit_code == 0
    assert f"{name}: counts.lock.json, fed_ucb1.py," in coband("init", name, "--template", "own-algorithm").output


@pytest.mark.parametrize("template", [PLUGINS[0], slow(PLUGINS[1])])
def test_a_plugin_project_is_installed_and_its_counts_are_locked(here: Path, template: str) -> None:
    """The tutorial's page tests and checks the first."""
    assert coband("init", ".", "--template", template).exit_code == 0
    install = "install -q --no-deps --no-build-isolation --disable-pip-version-check --no-warn-conflicts"
    commands = [
        [sys.executable, "-m", "pip", *install.split(), "--target", "installed", "."],
        [sys.executable, "-m", "coband", "check", "counts.lock.json"],
    ]
    if template != "own-algorithm":
        commands += [
            [sys.executable, "-m", "pytest", "-q"],
            [sys.executable, "-m", "coband", "check", "scenario.yaml", "--workers", "1"],
        ]
    path = os.pathsep.join(["installed", str(ROOT), os.environ.get("PYTHONPATH", "")])
    for command in commands:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}, cwd=here
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_replaced(here: Path) -> None:
    (here / "README.md").write_text("mine")
    refused = coband("init", "--template", "sweep")
    assert refused.exit_code == 2
    assert "README.md exists" in refused.output
    assert os.listdir(here) == ["README.md"]
