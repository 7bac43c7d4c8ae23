"""What commands say about options that make a run misleading."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coband.simulator.cli.main import cli

SCENARIO = """
name: slow
agents: {count: 3, compute: 1.0}
schedule: {kind: rounds, turns: 3}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}}
replications: 3
algorithms:
  - {algorithm: async_kernel_ucb, label: Serial, server: {exchanges: serial}}
  - {algorithm: async_kernel_ucb, label: Async}
"""
WARNING = "warning: Serial: server.exchanges: serial finishes one exchange before it answers the next"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "slow.yaml"
    found.write_text(SCENARIO)
    return found


def coband(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_validate_says_once_what_misleads(file: Path) -> None:
    result = coband("validate", file)
    assert result.exit_code == 0
    assert result.stderr.count("warning: ") == result.stderr.count(WARNING) == 1
    assert result.stdout == f"{file}: ok (3 turns × 3 agents × 2 algorithms × 3 replications = 54 pulls)\n"


def test_a_run_says_it_once_and_results_have_it(file: Path, tmp_path: Path) -> None:
    result = coband("run", file, "--json", "--out", tmp_path / "run", "--workers", 1)
    assert result.exit_code == 0
    assert result.stderr.count("warning: ") == result.stderr.count(WARNING) == 1
    serial, auto = json.loads(result.stdout)["results"]
    assert all(len(record["warnings"]) == 1 for record in serial["replications"])
    assert not any("warnings" in record for record in auto["replications"])
    assert "warnings" not in serial["mean"]


def test_without_delays_there_is_nothing_to_say(file: Path) -> None:
    assert coband("validate", file, "--set", "agents.compute=0").stderr == ""


def test_a_sweep_says_what_a_run_says(file: Path) -> None:
    """Of labels that have a warning in common a few are named."""
    values = "grid={algorithms.Serial.threshold: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}"
    found = coband("sweep", file, "--set", values, "--workers", 1, "--out", file.parent / "out").stderr
    assert found.count("server.exchanges: serial finishes one exchange") == 1
    assert " and 1 more: server.exchanges" in found
