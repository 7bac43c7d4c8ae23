"""Rewards that are Python functions of the user's."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.problems.contextual import ContextualProblem
from coband.simulator.scenario_errors import BrokenOff, ScenarioError

SCENARIO = """
name: own_reward
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
problem:
  kind: contextual
  arms: {kind: box, dimension: 2, count: 4}
  reward: {kind: python, function: FUNCTION}
  noise: 0
algorithms: [{algorithm: gp_ucb}]
"""
CODE = """
import numpy as np
from helper_of_a_reward import factor
def f(arms):
    return factor * arms[:, 0] - arms[:, 1] ** 2
def wrong(arms):
    return arms
def imaginary(arms):
    return arms[:, 0] + 1j
def masked(arms):
    return np.ma.masked_greater(arms[:, 0], -1.0)
def noisy(arms):
    return arms[:, 0] + np.random.default_rng().standard_normal(len(arms))
CONSTANT = 3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "own_rewards.py").write_text(CODE)
    (tmp_path / "helper_of_a_reward.py").write_text("factor = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("own_rewards", "helper_of_a_reward"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("function", ["own_rewards:f", "own_rewards.py:f"])
def test_the_function_gives_the_means(place: Path, function: str) -> None:
    scenario = loads(SCENARIO.replace("FUNCTION", function))
    world: Any = scenario.problem.build(Streams(1), 2, scenario.base)
    for agent, turn in [(0, 1), (0, 2), (1, 1)]:
        arms = world.arms(agent, turn)
        assert world.means(agent, turn) == pytest.approx(2 * arms[:, 0] - arms[:, 1] ** 2)
    assert loads(scenario.to_yaml(), base=Path("/")).problem == scenario.problem


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("f", "must be module:function or path/to/file.py:function"),
        ('":f"', "must be module:function or path/to/file.py:function"),
        ("own_reward:f", "there is no module 'own_reward', neither installed nor in "),
        ("own_rewards:g", "own_rewards has no function 'g'; it has f, imaginary, masked, noisy, wrong"),
        ("own_rewards:CONSTANT", "own_rewards has no function 'CONSTANT'"),
        ("missing.py:f", "there is no file "),
        ("broken.py:f", "cannot be executed: ZeroDivisionError: division by zero"),
        ("broken.py:f", f"{os.sep}broken.py:1)"),
        ("leaves.py:f", "cannot be executed: sys.exit(3) was called; return, or raise an exception that says what is"),
        ("leaves:f", f"{os.sep}leaves.py:2)"),
        ("asks.py:f", "cannot be executed: sys.exit(2) was called"),
        ("needs_more:f", "needs_more cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ],
)
def test_a_function_that_is_not_there(place: Path, function: str, message: str) -> None:
    (place / "broken.py").write_text("1 / 0\n")
    (place / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    (place / "asks.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('x')\np.parse_args()\n"
    )
    (place / "needs_more.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ScenarioError, match=re.escape(message)):
        loads(SCENARIO.replace("FUNCTION", function))


@pytest.mark.parametrize("function", ["wrong", "imaginary", "masked", "noisy"])
def test_a_function_that_returns_something_else(place: Path, function: str) -> None:
    problem = ContextualProblem.model_validate(
        {
            "kind": "contextual",
            "arms": {"kind": "box", "dimension": 2, "count": 4},
            "reward": {"kind": "python", "function": f"own_rewards:{function}"},
        }
    )
    says = rf"own_rewards\.py:\d+: own_rewards:{function} returned .*; return their mean rewards, 4 finite numbers$"
    if function == "noisy":
        says = (
            "own_rewards:noisy gave other values when it was called again; it must give mean rewards, and problem.noise"
        )
    with pytest.raises(BrokenOff, match=says):
        problem.build(Streams(1), 2).arms(0, 1)
    assert np.isfinite(problem.noise)


@pytest.mark.parametrize("function", ["own_rewards:f", "own_rewards.py:f"])
@pytest.mark.parametrize("file", ["own_rewards.py", "helper_of_a_reward.py"])
def test_code_of_the_function_is_part_of_a_jobs_address(place: Path, function: str, file: str) -> None:
    def digest() -> str:
        return configuration_digest(scenario, Files(scenario.base))["gp_ucb"]

    scenario = loads(SCENARIO.replace("FUNCTION", function))
    before = digest()
    assert before == digest()
    (place / file).write_text((place / file).read_text() + "\n# changed\n")
    assert digest() != before
