"""``schema_version`` at the top of scenario files."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from coband.simulator.cli.init import ABOUT
from coband.simulator.cli.main import cli, exit_status
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.scenario_errors import ScenarioError

TEXT = """\
name: small
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
algorithms: [{algorithm: n_kernel_ucb}]
"""


def test_a_file_may_say_it_and_nothing_changes() -> None:
    silent, said = loads(TEXT), loads(f"schema_version: 1\n{TEXT}")
    assert silent == said
    assert said.resolved()["schema_version"] == 1
    assert loads(said.to_yaml()) == said
    assert configuration_digest(silent, Files(Path())) == configuration_digest(said, Files(Path()))


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("7", "7 is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("'1'", "'1' is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("1.0", "1.0 is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("true", "true is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("0", "0 is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("null", "null is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("[1]", "a list is not allowed: this coband reads 1; a larger number asks for a newer one"),
        ("", "an empty value is not allowed: this coband reads 1; a larger number asks for a newer one"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "run", "sweep"])
def test_another_version_is_refused_before_anything_else(
    version: str, message: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "newer.yaml"
    file.write_text(f"name: 3\nschema_version: {version}\nnothing_known: 3\n")
    assert exit_status([command, str(file)]) == 2
    column = 17 if version else 16
    place, _, text = capsys.readouterr().err.strip().partition(": schema_version: ")
    assert (place, text) == (f"{file}:2:{column}", message)


def test_a_version_can_be_set() -> None:
    with pytest.raises(ScenarioError, match="--set schema_version=2: schema_version: 2 is not allowed: this coband"):
        loads(TEXT, overrides=["schema_version=2"])


def test_the_schema_holds_it() -> None:
    found = json_schema(Registry.installed())["properties"]["schema_version"]
    assert (found["const"], found["default"]) == (1, 1)


@pytest.mark.parametrize("template", list(ABOUT))
def test_templates_say_it(template: str, tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["init", str(tmp_path), "--template", template]).exit_code == 0
    assert "\nschema_version: 1\n" in "\n" + (tmp_path / "scenario.yaml").read_text()


def test_shipped_scenarios_are_of_this_version() -> None:
    assert load("quickstart").schema_version == 1
