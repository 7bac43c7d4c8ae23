"""Ties between arms: which of several with exactly the same score an agent pulls."""

from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.runs import FIXED_PROBLEM, run, world
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.runs.address import Files, configuration_digest
from coband.simulator.experiments.scenario.loading import loads

TURNS = {"kind": "rounds", "turns": 4}
SCENARIO = """
name: ties
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}}
algorithms:
  - {algorithm: gp_ucb, label: given, ties: TIES}
  - {algorithm: gp_ucb}
"""


def first_pulls(ties: str, seeds: range) -> list[int]:
    """Before the first reward all arms of a Gaussian kernel are equal."""
    config = {"kernel": {"kind": "gaussian", "gamma": 1.0}}
    runs = (run("n_kernel_ucb", config, problem=FIXED_PROBLEM, schedule=TURNS, seed=seed, ties=ties) for seed in seeds)
    return [arm for one in runs for _, turn, arm, _ in one.pulls if turn == 1]


def test_the_first_arm_or_any_is_pulled_first() -> None:
    arms = len(world(FIXED_PROBLEM, 0, 3).arms(0, 1))
    assert set(first_pulls("first", range(3))) == {0}
    drawn = first_pulls("random", range(40))
    counts = np.bincount(drawn, minlength=arms)
    expected = len(drawn) / arms
    assert ((counts - expected) ** 2 / expected).sum() < 3 * arms  # a chi-squared number of arms - 1 degrees of freedom


def test_the_agents_own_stream_of_ties_decides() -> None:
    arms = len(world(FIXED_PROBLEM, 0, 3).arms(0, 1))
    expected = [int(Streams(5).ties(agent).integers(arms)) for agent in range(3)]
    assert first_pulls("random", range(5, 6)) == expected


def test_only_exact_equality_is_a_tie() -> None:
    agent = run("n_kernel_ucb", {"kernel": {"kind": "gaussian", "gamma": 1.0}}).engine.agents[0]
    state = agent.context.ties.bit_generator.state
    assert agent.best(np.array([0.0, 1.0, np.nextafter(1.0, 0.0)])) == 1
    assert agent.context.ties.bit_generator.state == state
    assert {agent.best(np.array([0.0, 1.0, 1.0, -1.0])) for _ in range(30)} == {1, 2}


def test_without_ties_nothing_changes() -> None:
    problem: dict[str, Any] = {
        "kind": "contextual",
        "arms": {"kind": "ball", "dimension": 3, "count": 6},
        "reward": {"kind": "cosine"},
    }
    first, drawn = (run("lin_ucb", {}, problem=problem, schedule=TURNS, ties=ties) for ties in ("first", "random"))
    assert first.result.fingerprint == drawn.result.fingerprint


@pytest.mark.parametrize("ties", ["first", "random"])
def test_a_scenario_says_which(ties: str) -> None:
    scenario = loads(SCENARIO.replace("TIES", ties))
    assert [entry.ties for entry in scenario.algorithms] == [ties, "random"]
    assert loads(scenario.to_yaml(), base=scenario.base) == scenario
    digests = configuration_digest(scenario, Files())
    assert (digests["given"] == digests["gp_ucb"]) == (ties == "random")
