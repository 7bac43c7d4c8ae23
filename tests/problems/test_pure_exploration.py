"""Instances of Du et al. 2023, drawn instances, and rewards in batches."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from coband.simulator.arrays import TooLarge
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.problems.pure_exploration import (
    PureExplorationProblem,
    PureExplorationWorld,
    TableFeatures,
    smallest_gap,
)

PRODUCT = {
    "kind": "product",
    "factors": [
        {"kind": "gaussian", "gamma": 1.0, "columns": [0]},
        {"kind": "gaussian", "gamma": 2.0, "columns": [1, 2]},
    ],
}


def build(seed: int = 0, agents: int = 5, **problem: Any) -> PureExplorationWorld:
    return PureExplorationProblem.model_validate({"kind": "pure_exploration", **problem}).build(Streams(seed), agents)


@pytest.mark.parametrize(("tasks", "dimension"), [("same", 4), ("similar", 8), ("different", 20)])
def test_the_tables_of_the_paper(tasks: str, dimension: int) -> None:
    world = build(features={"kind": "table", "tasks": tasks}, gap=0.3)
    pairs = world.knowledge()
    assert pairs.shape == (5, 6, dimension)
    assert (pairs.sum(axis=2) == 2).all()
    assert len(np.unique(pairs[0], axis=0)) == 6
    blocks = [np.flatnonzero(agent.sum(axis=0))[0] // 4 for agent in pairs]
    assert blocks == {"same": [0] * 5, "similar": [0, 0, 1, 1, 1], "different": [0, 1, 2, 3, 4]}[tasks]
    theta = np.array([0.1 + 0.3 * i for i in range(dimension)])
    means = np.stack([world.means(agent, 1) for agent in range(5)])
    assert means == pytest.approx(pairs @ theta)
    assert smallest_gap(means) == pytest.approx(0.3)


@pytest.mark.parametrize(("tasks", "dimension"), [("same", 60), ("different", 300)])
def test_a_table_with_too_many_arms_is_refused_before_it_is_made(tasks: str, dimension: int) -> None:
    features = {"kind": "table", "tasks": tasks, "size": 60, "ones": 30}
    words = f"the arms of 5 agents, 118,264,581,564,861,424 each of dimension {dimension}: about "
    with pytest.raises(TooLarge, match=rf"{words}.* GiB of memory; change problem.features \(size, ones\)"):
        build(agents=5, features=features)


def test_two_fifths_of_the_agents_have_the_first_block() -> None:
    shares = [TableFeatures(kind="table", tasks="similar").blocks(agents).count(0) for agents in (2, 5, 10, 12, 20)]
    assert shares == [1, 2, 4, 4, 8]


def test_blocks_of_ones_own_choice() -> None:
    world = build(agents=3, features={"kind": "table", "tasks": [1, 0, 1], "size": 3, "ones": 1})
    assert world.knowledge().shape == (3, 3, 6)
    assert world.knowledge()[0, :, 3:].tolist() == np.eye(3)[::-1].tolist()[::-1]


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_drawn_instances_have_the_gap(spread: float) -> None:
    features = {"kind": "kernel", "kernel": PRODUCT, "count": 4, "spread": spread}
    world = build(3, 3, features=features, gap=0.25)
    means = np.stack([world.means(agent, 1) for agent in range(3)])
    assert smallest_gap(means) == pytest.approx(0.25)
    assert (len(np.unique(world.knowledge()[:, :, 0])) == 1) == (spread == 0)
    assert np.allclose(means, means[0]) == (spread == 0)
    assert np.array_equal(means[0], build(3, 3, features=features, gap=0.25).means(0, 1))
    assert not np.array_equal(means[0], build(4, 3, features=features, gap=0.25).means(0, 1))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"kind": "table", "ones": 4}, r"ones\(=4\) must be < size\(=4\)"),
        (
            {"kind": "table", "tasks": [0, 1]},
            r"features.tasks has 2 entries: must have one per agent \(agents.count is 5\)",
        ),
        ({"kind": "kernel", "kernel": PRODUCT, "count": 40, "separation": 0.9}, "no function with gaps"),
    ],
)
def test_instances_that_cannot_be(features: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(features=features)
    with pytest.raises(ValidationError, match="gap"):
        build(gap=0)


def test_batches_depend_on_agent_and_phase_alone() -> None:
    world, again = build(), build()
    counts = np.array([4, 0, 9, 1, 100, 25])
    first = world.pull_batch(2, 1, counts)[0]
    again.pull_batch(0, 1, counts)
    assert np.array_equal(again.pull_batch(2, 1, counts)[0], first)
    more = build().pull_batch(2, 1, 4 * counts)[0]  # the same noise, halved
    mean = world.means(2, 1)
    pulled = counts > 0
    assert (more - mean)[pulled] == pytest.approx((first - mean)[pulled] / 2)
    assert first[1] == 0.0
    assert not np.array_equal(world.pull_batch(2, 2, counts)[0], first)


def test_regret_of_a_batch() -> None:
    world = build(agents=1, features={"kind": "table", "size": 3, "ones": 1}, gap=0.5)
    assert world.pull_batch(0, 1, np.array([2, 3, 5]))[1] == pytest.approx(2 * 1.0 + 3 * 0.5)
    assert world.pull(0, 1, 2)[1] == 0.0
    with pytest.raises(IndexError, match="arm"):
        world.pull(0, 1, 3)


@pytest.mark.parametrize("count", [1, 7, 300])
def test_batches_and_single_pulls_agree_in_distribution(count: int) -> None:
    """Both give means of N(f, 1/count): Kolmogorov and Smirnov against each other and against the truth."""
    samples = {}
    for sampling in ("statistics", "pulls"):
        world = build(11, 1, sampling=sampling, features={"kind": "table", "size": 2, "ones": 1})
        counts = np.full(2, count)
        found = np.array([world.pull_batch(0, phase, counts)[0] for phase in range(1, 801)])
        samples[sampling] = ((found - world.means(0, 1)) * np.sqrt(count)).ravel()
        assert stats.kstest(samples[sampling], "norm").pvalue > 0.001
    assert stats.ks_2samp(*samples.values()).pvalue > 0.001


def test_other_noise_is_pulled_one_by_one() -> None:
    world = build(
        agents=1, noise={"kind": "uniform", "half_width": 0.5}, features={"kind": "table", "size": 2, "ones": 1}
    )
    found = np.array([world.pull_batch(0, phase, np.array([1, 50]))[0] for phase in range(1, 301)]) - world.means(0, 1)
    assert np.abs(found[:, 0]).max() <= 0.5
    assert found.std(axis=0) == pytest.approx([1 / np.sqrt(12), 1 / np.sqrt(600)], rel=0.2)


def test_verdicts() -> None:
    world = build(agents=2, features={"kind": "table", "size": 3, "ones": 1}, gap=0.5)
    assert world.score([2, 2]) == {"correct": 1, "error": 0, "correct_agents": 2, "gap": pytest.approx(0.5)}
    assert world.score([2, None])["correct"] == 0
    assert world.score([2, 0])["correct_agents"] == 1
    assert world.score([]) == {}
