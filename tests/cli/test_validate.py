"""``coband validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coband.simulator.cli.validate import validate
from coband.simulator.experiments.registry.registry import Registry
from tests.experiments.registry.plugins import REGISTRY, SCENARIO


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "installed", lambda: REGISTRY)


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    file = tmp_path / "quick.yaml"
    file.write_text(SCENARIO)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(validate, [str(argument) for argument in arguments])


def test_good(quick: Path) -> None:
    result = run(quick)
    assert (result.exit_code, result.output) == (0, f"{quick}: ok (2 algorithms x 3 replications)\n")


def test_overrides(quick: Path) -> None:
    result = run(quick, "--set", "replications=1", "--set", "algorithms.Bold.alpha=2")
    assert result.output == f"{quick}: ok (2 algorithms x 1 replication)\n"


def test_every_file_is_read(quick: Path) -> None:
    broken = quick.with_name("broken.yaml")
    broken.write_text(SCENARIO.replace("count: 5", "count: 0").replace("seed: 7", "seed: x"))
    result = run(broken, quick, quick.with_name("absent"))
    assert result.exit_code == 2
    assert result.stdout == f"{quick}: ok (2 algorithms x 3 replications)\n"
    assert result.stderr.splitlines() == [
        f"{broken}:2:7: seed: 'x' is not allowed: must be a whole number >= 0 and < 9223372036854775808",
        f"{broken}:5:10: agents.count: 0 is not allowed: must be >= 1",
        f"{quick.with_name('absent')}: there is no such file",
    ]


def test_a_file_is_needed() -> None:
    assert run().exit_code == 2


def test_plugins_that_do_not_load_are_named(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Registry(REGISTRY.algorithms, REGISTRY.problems, {}, ("coband.algorithms: 'duets' is left out",))
    monkeypatch.setattr(Registry, "installed", lambda: broken)
    result = run(quick)
    assert (result.exit_code, result.stderr) == (0, "warning: coband.algorithms: 'duets' is left out\n")
