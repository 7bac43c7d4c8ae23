"""Batched pure exploration: the run is the pseudo-code, counts are closed forms, all nodes find the same batches."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.agents.bpe import BpeConfig
from coband.server.bpe import BpeServer
from coband.simulator.arms import ArmSet
from coband.simulator.conformance.runs import Run, run, world
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.maths.exploration.bpe import Batch, batch_lengths
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.domain import Domain
from tests.agents.test_duets import LATENCY, ROUNDS, random_case
from tests.every import every
from tests.oracles import bpe as oracle
from tests.oracles.kernels import plain

SMALL: dict[str, Any] = {"kernel": {"kind": "gaussian", "length_scale": 0.6}, "beta": 0.3}


def case_of(case: int) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """A random case of DUETS with the parameters of this algorithm."""
    plan, config, T = random_case(case)
    config = {key: config[key] for key in ("kernel", "beta", "lam")}
    horizon = [1000, None, 5, None, None][case % 5]
    return plan, {**config, "share": "nothing" if case % 4 == 3 else "rewards", "horizon": horizon}, T


def oracle_of(plan: dict[str, Any], config: dict[str, Any], T: int | None, simulated: Run) -> oracle.BpeRun:
    acting, agents = [agent for agent, *_ in simulated.pulls], plan["agents"]
    steps = [[agent] for agent in acting] if T is None else [list(range(agents))] * T
    T = min(acting.count(agent) for agent in range(agents)) if T is None else T
    T = min(T, config["horizon"] or T)
    parameters = SimpleNamespace(T=T, **{key: value for key, value in config.items() if key != "kernel"})
    drawn = world(plan["problem"], plan["seed"], agents)
    return oracle.run(steps, drawn, plain(config["kernel"]), parameters, Streams(plan["seed"]).coin, agents)


@every("case", range(24))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    plan, config, T = case_of(case)
    simulated = run("bpe", config, **plan)
    expected = oracle_of(plan, config, T, simulated)
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)
    assert sorted(simulated.messages, key=repr) == sorted(expected.messages, key=repr)
    assert simulated.result.rounds == expected.rounds
    assert [agent.active.tolist() for agent in simulated.engine.agents] == expected.active  # type: ignore[attr-defined]


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    runs = [run("bpe", config, **plan) for plan, config, _ in map(case_of, range(24))]
    assert max(result.result.rounds for result in runs) >= 2
    left = [result.result.totals["points_left"] for result in runs]
    assert min(left) == 1
    assert any(1 < points < 20 for points in left)


def test_batch_lengths() -> None:
    assert batch_lengths(50) == (8, 20, 22)
    assert batch_lengths(1000) == (32, 179, 424, 365)
    assert batch_lengths(1) == (1,)
    assert batch_lengths(0) == (0,)
    for horizon in range(1, 400):
        assert list(batch_lengths(horizon)) == oracle.batches(horizon)


@pytest.mark.parametrize("network", [{}, LATENCY], ids=["ideal", "delays"])
@pytest.mark.parametrize("agents", [1, 4])
def test_only_rewards_travel(agents: int, network: dict[str, Any]) -> None:
    result = run("bpe", SMALL, agents=agents, schedule=ROUNDS, network=network)
    totals, lengths = result.result.totals, batch_lengths(40)
    assert result.result.rounds == len(lengths) - 1
    assert totals["uplink_scalars"] == agents * sum(lengths[:-1])
    assert totals["downlink_scalars"] == agents * totals["shared_points"]
    assert 0 < totals["shared_points"] <= agents * sum(lengths[:-1])
    assert totals["scalars_per_agent"] == sum(lengths[:-1]) + totals["shared_points"]
    assert {kind for kind, *_ in result.messages} == {"batch_rewards", "reward_sums"}


def test_agents_alone_say_nothing_and_a_single_agent_is_alike() -> None:
    alone = run("bpe", {**SMALL, "share": "nothing"}, agents=1, schedule=ROUNDS)
    shared = run("bpe", SMALL, agents=1, schedule=ROUNDS)
    assert alone.pulls == shared.pulls
    assert alone.messages == []
    assert alone.result.totals["batches"] == shared.result.totals["batches"] == len(batch_lengths(40))


@pytest.mark.parametrize("share", [True, False])
def test_every_node_trims_alike(share: bool) -> None:
    result = run("bpe", SMALL, agents=5, schedule=ROUNDS, network=LATENCY, share=share)
    server = result.engine.server
    assert isinstance(server, BpeServer)
    masks = [agent.active for agent in result.engine.agents]  # type: ignore[attr-defined]
    assert len({mask.tobytes() for mask in [*masks, server.active]}) == 1
    assert 0 < len(server.active) < 40


def test_equal_points_are_one_point() -> None:
    """Variances and sums are those of distinct points; the one of the lowest number is pulled, all copies are kept."""
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    domain = Domain(Gaussian(length_scale=0.5), ArmSet.fixed(X))
    batch = Batch(domain, np.arange(4), 0.2)
    assert [batch.arm(place) for place in range(4)] == [0, 1, 0, 1]
    assert batch.sums(np.array([1.0, 2.0, 3.0, 5.0])).tolist() == [4.0, 7.0]
    assert batch.kept(4, np.array([4.0, 7.0]), 0.0).tolist() == [1, 3]
    assert batch.kept(4, np.array([4.0, 7.0]), 100.0).tolist() == [0, 1, 2, 3]


def test_beta_of_theory_by_hand() -> None:
    """|U| = 200, 3 batches."""
    expected = 2.5 + 0.3 * math.sqrt(2 / 0.6 * math.log(2 * 200 * 3 / 0.05))
    assert BpeConfig(beta="theory", delta=0.05, B=2.5, R=0.3, lam=0.6).width(200, 3) == pytest.approx(expected)
    assert BpeConfig(beta=0.7).width(200, 3) == 0.7
