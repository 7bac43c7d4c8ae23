"""K arms: means as they are written, agents' own means, offered arms, both regrets, coupled rewards, bad input."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import coband
from coband.simulator.problems.k_armed import KArmedProblem
from tests.problems.helpers import named_streams

MEANS = [0.9, 0.5, 0.3, 0.2]


def world(agents: int = 6, seed: int = 0, **parts: Any) -> Any:
    problem = KArmedProblem.model_validate({"kind": "k_armed", "means": MEANS, **parts})
    assert not list(problem.validate_for(agents))
    return problem.build(named_streams(seed), agents)


def test_arms_are_in_a_random_order_and_carry_the_identity() -> None:
    orders = {tuple(world(seed=seed).means(0, 1)) for seed in range(20)}
    assert len(orders) > 5
    assert {tuple(sorted(order, reverse=True)) for order in orders} == {tuple(MEANS)}
    assert list(world(shuffle=False).means(3, 1)) == MEANS
    assert np.array_equal(world().arms(2, 1), np.eye(4))
    assert world().fixed_arms


@pytest.mark.parametrize(
    ("means", "arms", "expected"),
    [({"first": 0.9, "second": 0.8, "rest": 0.1}, 4, [0.9, 0.8, 0.1, 0.1]), ([[0.1, 0.9]] * 6, None, [0.1, 0.9])],
)
def test_means_are_as_they_are_written(means: Any, arms: int | None, expected: list[float]) -> None:
    assert list(world(means=means, arms=arms, shuffle=False).means(5, 1)) == expected


def test_means_are_drawn_between_their_ends() -> None:
    drawn = world(means={"low": 0.2, "high": 0.4}, arms=500).means(0, 1)
    assert 0.2 <= drawn.min() < 0.21
    assert 0.39 < drawn.max() <= 0.4


def test_own_means_keep_their_averages_and_both_regrets_are_summed() -> None:
    drawn = world(means=[0.5, 0.4], spread=0.1, regret="global", shuffle=False)
    means = np.array([drawn.means(agent, 1) for agent in range(6)])
    assert means.mean(axis=0) == pytest.approx([0.5, 0.4])
    assert np.ptp(means, axis=0).min() > 0.05
    assert drawn.pull(0, 1, 1)[1] == pytest.approx(0.1)
    assert drawn.pull(0, 2, 0)[1] == 0.0
    own = means[0].max() - means[0]
    assert drawn.measures == pytest.approx({"regret_own": own.sum(), "regret_global": 0.1})


def test_every_arm_is_offered_to_somebody_and_regret_is_among_the_offered() -> None:
    for seed in range(10):
        drawn = world(agents=3, seed=seed, offered=2, shuffle=False)
        numbers = [drawn.arms(agent, 1).argmax(axis=1).tolist() for agent in range(3)]
        assert set().union(*numbers) == {0, 1, 2, 3}
        for agent, offered in enumerate(numbers):
            assert list(drawn.means(agent, 1)) == [MEANS[arm] for arm in offered]
            assert offered == sorted(set(offered))
            assert drawn.pull(agent, 1, 1)[1] == MEANS[offered[0]] - MEANS[offered[1]]


def test_bernoulli_rewards_have_one_draw_for_all_arms_and_are_monotone_in_the_mean() -> None:
    worlds = [world(shuffle=False) for _ in MEANS]
    rewards = np.array([[one.pull(0, turn, arm)[0] for turn in range(1, 2001)] for arm, one in enumerate(worlds)])
    assert (np.diff(rewards, axis=0) <= 0).all()
    assert rewards.mean(axis=1) == pytest.approx(MEANS, abs=0.04)
    gaussian = world(reward="gaussian", sd=0.1, shuffle=False)
    assert gaussian.pull(0, 1, 0)[0] - world(reward="gaussian", sd=0.1, shuffle=False).pull(0, 1, 3)[0] == (
        pytest.approx(0.7)
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"means": [0.5]}, "means must list the means of at least 2 arms"),
        ({"means": {"first": 0.5, "second": 0.8, "rest": 0.1}, "arms": 3}, r"first\(=0.5\) is the largest mean"),
        ({"means": {"first": 0.5, "second": 0.2, "rest": 0.3}, "arms": 3}, "must not grow in this order"),
        ({"sd": 2.0}, r"sd\(=2\) goes with reward: gaussian"),
        ({"means": [[0.1, 0.2], [0.3]]}, "all lists must be equally long"),
        ({"means": {"low": 0.1}}, "arms, the number of arms, is needed"),
        ({"means": {"low": 0.5, "high": 0.1}, "arms": 3}, r"low\(=0.5\) must be below high"),
        ({"arms": 3}, "means lists 4 arms, and arms is 3; leave arms out"),
        ({"offered": 5}, r"offered\(=5\) must be <= the 4 arms"),
        ({"means": [1.2, 0.1]}, "means must be from 0 to 1"),
        ({"spread": 0.1}, "what spread may add"),
        ({"means": [[0.1, 0.2]] * 2, "spread": 0.01}, "spread goes with means that all agents have"),
        ({"means": 3}, "Write a list of numbers"),
    ],
)
def test_bad_input(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        world(**parts)


def test_the_number_of_agents_must_fit() -> None:
    problem = KArmedProblem.model_validate({"kind": "k_armed", "means": [[0.1] * 9] * 3, "offered": 4})
    assert [place for place, _ in problem.validate_for(2)] == [("means",), ("offered",)]


def test_python_gives_the_same_problem() -> None:
    made = coband.Problem.k_armed(MEANS, spread=0.01, regret="global")
    assert made == KArmedProblem(kind="k_armed", means=tuple(MEANS), spread=0.01, regret="global")
    with pytest.raises(coband.ScenarioError, match=r"Problem.k_armed: offered\(=9\) must be <= the 4 arms"):
        coband.Problem.k_armed(MEANS, offered=9)
