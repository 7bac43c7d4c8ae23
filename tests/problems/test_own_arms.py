"""Agents with arms of their own: they stay, lie in their regions, means are linear; own data; bad input."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.simulator.problems.array_problem import ArraysProblem
from coband.simulator.problems.own_arms import OwnArmsProblem
from coband.simulator.problems.world import OwnArmsWorld
from tests.problems.helpers import named_streams

BOX = {"kind": "box", "dimension": 3, "count": 5, "low": [0.5, 0, 0], "high": [0.6, 0.4, 0.4]}
SPECIAL = {"low": [0.7, 0, 0], "high": [0.8, 0.3, 0.3]}


def world(agents: int = 4, **parts: Any) -> Any:
    problem = OwnArmsProblem.model_validate({"kind": "own_arms", "arms": BOX, **parts})
    return problem.build(named_streams(0), agents)


def test_arms_stay_and_are_each_agents_own() -> None:
    drawn = world()
    assert drawn.arms(1, 1) is drawn.arms(1, 7)
    assert not np.array_equal(drawn.arms(1, 1), drawn.arms(2, 1))
    assert (drawn.fixed_arms, drawn.steady_arms) == (False, True)
    assert np.array_equal(drawn.arms(2, 1), world(9).arms(2, 1))
    reward, regret = drawn.pull(3, 1, 2)
    assert regret == drawn.means(3, 1).max() - drawn.means(3, 1)[2]
    assert reward != drawn.means(3, 1)[2]


def test_one_arm_of_each_agent_is_special() -> None:
    drawn = world(20, special=SPECIAL, theta=[1, 0, 0])
    first = np.array([drawn.arms(agent, 1)[:, 0] for agent in range(20)])
    assert ((first >= 0.7).sum(axis=1) == 1).all()
    assert len(set(first.argmax(axis=1).tolist())) > 2
    assert np.array_equal(np.array([drawn.means(agent, 1) for agent in range(20)]), first)


@pytest.mark.parametrize("parameters", ["shared", "per_arm"])
def test_means_are_linear(parameters: str) -> None:
    drawn = world(parameters=parameters)
    theta = np.array(drawn.describe()["theta"])
    assert (len(np.unique(theta, axis=0)) > 1) == (parameters == "per_arm")
    assert np.linalg.norm(theta, axis=1) == pytest.approx(1.0)
    for agent in range(4):
        assert drawn.means(agent, 1) == pytest.approx((drawn.arms(agent, 1) * theta).sum(axis=1))


def test_ones_own_arrays_with_one_turn_for_each_agent_are_such_a_world() -> None:
    rng = np.random.default_rng(1)
    arms, rewards = rng.random((3, 1, 4, 2)), rng.random((3, 1, 4))
    drawn = ArraysProblem.of(arms, rewards).build(named_streams(0), 3)
    assert isinstance(drawn, OwnArmsWorld)
    assert np.array_equal(drawn.arms(2, 5), arms[2, 0])
    assert np.array_equal(drawn.means(2, 5), rewards[2, 0])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"arms": {"kind": "pool", "dimension": 2, "size": 3}}, "arms of a pool are the same for all agents"),
        ({"special": {"low": [0, 1], "high": 2}}, r"low has 2 numbers but dimension is 3"),
        ({"special": {"low": 1, "high": 0}}, r"low\(=1.0\) must be below high\(=0.0\)"),
        ({"theta": [1, 2]}, "theta has 2 numbers but arms.dimension is 3"),
    ],
)
def test_bad_input(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        world(**parts)
