import itertools
import json
from typing import Any

import numpy as np
import pytest

from coband.simulator.problems import world as world_module
from coband.simulator.problems.contextual import PROBLEM
from coband.simulator.problems.world import Streams
from tests.every import every
from tests.problems.helpers import ARMS, BALL, REWARDS, WHOLE_POOL, named_streams, problem, record, world

EVERY = list(itertools.product(ARMS, REWARDS))
TURNS = [(agent, turn) for turn in range(1, 41) for agent in range(3)]


@every(("arms", "reward"), EVERY)
def test_regret_is_the_distance_to_the_best_mean(arms: dict[str, Any], reward: dict[str, Any]) -> None:
    one = world(arms=arms, reward=reward)
    for turn in range(1, 30):
        means = one.means(0, turn)
        regrets = [one.pull(0, turn, arm)[1] for arm in range(len(means))]
        assert min(regrets) == 0.0
        assert regrets[int(means.argmax())] == 0.0
        assert regrets == [float(means.max() - mean) for mean in means]


@every(("arms", "reward"), EVERY)
def test_same_seed_same_world(arms: dict[str, Any], reward: dict[str, Any]) -> None:
    first, again, other = (world(seed, arms=arms, reward=reward) for seed in (0, 0, 1))
    assert record(first, TURNS) == record(again, TURNS)
    assert first.describe() == again.describe()
    assert first.describe() != other.describe()
    assert record(first, [(0, 40)]) != record(other, [(0, 40)])


@pytest.mark.parametrize(("arms", "reward"), EVERY)
def test_block_lengths_leave_the_values_alone(
    arms: dict[str, Any], reward: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = record(world(arms=arms, reward=reward), TURNS)
    monkeypatch.setattr(world_module, "BLOCK_MEMORY", 1)
    assert record(world(arms=arms, reward=reward), TURNS) == usual


@pytest.mark.parametrize("arms", ARMS)
def test_an_agent_meets_the_same_turns_whatever_the_others_do(arms: dict[str, Any]) -> None:
    together, alone = world(arms=arms, agents=3), world(arms=arms, agents=1000)
    in_company = [row for row, (agent, _) in zip(record(together, TURNS), TURNS, strict=True) if agent == 2]
    assert in_company == record(alone, [(2, turn) for turn in range(1, 41)])


def test_agents_differ() -> None:
    one = world()
    assert not np.array_equal(one.arms(0, 1), one.arms(1, 1))


@pytest.mark.parametrize("noise", [0.3, {"kind": "uniform", "half_width": 0.3}])
@pytest.mark.parametrize("arms", [BALL, WHOLE_POOL])
def test_the_noise_of_a_turn_is_the_same_for_every_arm(arms: dict[str, Any], noise: Any) -> None:
    one = world(arms=arms, noise=noise)
    for turn in (1, 2, 17):
        means = one.means(1, turn)
        offsets = [one.pull(1, turn, arm)[0] - means[arm] for arm in range(len(means))]
        assert np.allclose(offsets, offsets[0], rtol=0.0, atol=1e-12)
        assert offsets[0] != 0.0


def test_noise_changes_from_turn_to_turn_and_agent_to_agent() -> None:
    one = world(arms=WHOLE_POOL)
    rewards = {one.pull(agent, turn, 0)[0] for agent in range(3) for turn in range(1, 50)}
    assert len(rewards) == 3 * 49


@pytest.mark.parametrize("arms", ARMS)
def test_without_noise_the_reward_is_the_mean(arms: dict[str, Any]) -> None:
    one = world(arms=arms, noise=0)
    assert [one.pull(0, 3, arm)[0] for arm in range(4)] == one.means(0, 3)[:4].tolist()


@pytest.mark.parametrize("arms", ARMS)
def test_arms_are_contiguous_and_read_only(arms: dict[str, Any]) -> None:
    one = world(arms=arms)
    features = one.arms(0, 1)
    assert features.flags.c_contiguous
    assert features.shape[1] == one.dimension
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        one.means(0, 1)[0] = 1.0


def test_fixed_arms_are_the_same_everywhere() -> None:
    fixed, fresh = world(arms=WHOLE_POOL), world(arms=BALL)
    assert fixed.fixed_arms
    assert not fresh.fixed_arms
    assert fixed.arms(0, 1) is fixed.arms(2, 9)


@pytest.mark.parametrize("arms", [BALL, WHOLE_POOL])
@pytest.mark.parametrize("arm", [-1, 12])
def test_an_arm_that_is_not_there(arms: dict[str, Any], arm: int) -> None:
    with pytest.raises(IndexError, match=rf"^arm\(={arm}\) must be one of 0 \.\. \d+: the turn offers \d+ arms"):
        world(arms=arms).pull(0, 1, arm)


def test_streams_are_opened_at_the_first_turn() -> None:
    opened: list[tuple[str, int, str]] = []
    streams = named_streams()

    def counting(role: str, entity: int, purpose: str) -> np.random.Generator:
        opened.append((role, entity, purpose))
        return streams(role, entity, purpose)

    counted: Streams = counting
    one = problem().build(counted, agents=1000)
    assert opened == [("world", 0, "reward")]
    one.arms(7, 1)
    one.pull(7, 1, 0)
    assert sorted(opened) == [("world", 0, "reward"), ("world", 7, "arms"), ("world", 7, "noise")]


@pytest.mark.parametrize("reward", REWARDS)
def test_the_truth_is_json(reward: dict[str, Any]) -> None:
    truth = world(reward=reward).describe()
    assert json.loads(json.dumps(truth)) == truth


def test_the_scenario_of_the_specification() -> None:
    arms = {"kind": "ball", "dimension": 20, "count": 20}
    document = {"kind": "contextual", "arms": arms, "reward": {"kind": "cosine"}, "noise": 0.1}
    one = PROBLEM.config.model_validate(document).build(named_streams(), agents=100)
    theta = np.array(one.describe()["theta"])
    assert one.arms(99, 1).shape == (20, 20)
    assert np.allclose(one.means(99, 1), np.cos(3 * one.arms(99, 1) @ theta))


def test_the_schema_explains_every_field() -> None:
    schema = PROBLEM.config.model_json_schema()
    ours = {name: part for name, part in schema["$defs"].items() if name.endswith(("Arms", "Reward", "Noise"))}
    assert len(ours) == 17
    for name, part in {**ours, "problem": schema}.items():
        for field, content in part["properties"].items():
            assert content.get("description"), f"{name}.{field} has no description"


@pytest.mark.parametrize("arms", [BALL, WHOLE_POOL])
def test_realised_regret_is_against_the_noisy_reward(arms: Any) -> None:
    expected, realised = (world(arms=arms, regret=regret) for regret in ("expected", "realised"))
    assert (expected.realised, realised.realised) == (False, True)
    gaps = []
    for turn in range(1, 40):
        (reward, regret), (same, gap) = expected.pull(0, turn, 0), realised.pull(0, turn, 0)
        best = expected.means(0, turn).max()
        assert reward == same
        assert regret == best - expected.means(0, turn)[0]
        assert gap == best - reward
        gaps.append(gap)
    assert len(set(gaps)) == len(gaps)
