"""PLS: the run is the pseudo-code, bits are those of the code, rounding is unbiased and within its error."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from coband.agents.linear.pls import Grid
from coband.extensions.conformance.runs import Run
from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.message import unary_bits
from tests.agents.beside import agent_of, assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import pls as oracle


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """1 to 6 agents, with the same arms or their own."""
    rng = np.random.default_rng((47, case))
    agents, turns, d = int(rng.integers(1, 7)), int(rng.integers(100, 500)), int(rng.integers(2, 5))
    shape, noise = ["ball", "sphere", "box"][case % 3], float(rng.uniform(0.05, 0.5))
    problem: dict[str, Any] = {
        "kind": "fixed_domain",
        "domain": {"kind": shape, "dimension": d, "points": int(rng.integers(2, 20))},
        "reward": {"kind": "linear", "theta": "sphere"},
        "noise": noise,
    }
    if rng.integers(2):
        arms = {"kind": shape, "dimension": d, "count": int(rng.integers(2, 7))}
        problem = {"kind": "own_arms", "arms": arms, "parameters": "shared", "noise": noise}
        if rng.integers(2):
            problem["theta"] = [0.2] + [0.0] * (d - 1)
    schedule = schedule_of(int(rng.integers(2)), agents, turns)
    config = {
        "C": float(rng.uniform(0.005, 0.2)),
        "alpha_0": float(rng.uniform(0.3, 2.0)),
        "beta_0": float(rng.uniform(0.3, 2.0)),
        "sub_gaussian": noise,
        "gamma": float(rng.uniform(0.0, 3.0)),
        "gap": float(rng.choice([1.0, 0.1])),
        "horizon": [None, turns // 3, 2 * turns][case // 2 % 3],
    }
    return {"agents": agents, "seed": case, "problem": problem, "schedule": schedule}, config


@cache
def solved(case: int, counting: str = "paper") -> tuple[Run, oracle.PlsRun]:
    plan, config = random_case(case)
    return beside("pls", oracle, config, {**plan, "messages": {"counting": counting}})


@every("case", everyday(10, range(30)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    assert all(agent.theta == pytest.approx(expected.theta) for agent in simulated.engine.agents)  # type: ignore[attr-defined]


@every("counting", ["paper", "packed"])
@every("case", range(4))
def test_bits_are_those_of_the_code_however_others_are_counted(case: int, counting: str) -> None:
    simulated, expected = solved(case, counting)
    sent = [message for message in simulated.sent if message.kind == "estimate_levels"]
    assert sum(sum(message.field_bits or ()) for message in sent) == expected.up
    assert simulated.result.totals["bits"] == expected.up + expected.down > 0


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    runs = [solved(case)[1] for case in range(10)]
    assert max(found.rounds for found in runs) >= 3
    assert {found.refined > 0 for found in runs} == {True, False}
    assert any(found.rounds > found.refined > 0 for found in runs)  # the norm is estimated for an epoch or more


def test_the_code_can_be_read() -> None:
    """|m| ones, a zero, a sign: a receiver has every number back, and all bits are used."""
    levels = np.array([0, 3, -1, 0, -2])
    text = "".join("1" * abs(m) + "0" + ("" if m == 0 else "01"[int(m < 0)]) for m in levels)
    read, place = [], 0
    while place < len(text):
        size = text.index("0", place) - place
        place += size + 1 + (size > 0)
        read.append(-size if size and text[place - 1] == "1" else size)
    assert read == levels.tolist()
    assert unary_bits(levels) == len(text)


def test_rounding_is_unbiased_and_within_its_error() -> None:
    grid, rng = Grid(5, 0.7, 0.3), np.random.default_rng(0)
    values = np.array([-0.69, -0.2, 0.0, 0.123, 0.7])
    drawn = np.array([grid.levels(values, rng) * grid.step for _ in range(20_000)])
    assert np.linalg.norm(drawn - values, axis=1).max() <= 0.3
    assert drawn.mean(axis=0) == pytest.approx(values, abs=4 * grid.step / 2 / np.sqrt(20_000))
    assert (grid.levels(np.full(5, 9.0), rng) * grid.step).tolist() == pytest.approx([0.7] * 5)


def test_who_goes_on_alone_keeps_what_it_has_learnt_while_it_exploited() -> None:
    agent = agent_of("pls", {})
    arms = ArmSet(np.random.default_rng(0).normal(size=(5, agent.context.dimension)))
    agent.choose(arms)
    agent._exploit(9)
    for reward in (0.3, 0.9):
        agent.observe(arms, agent.choose(arms), reward)
    means, variances = agent._means.copy(), agent._variances.copy()
    agent.leave()
    assert agent._left == math.inf
    assert (agent._means.tolist(), agent._variances.tolist()) == (means.tolist(), variances.tolist())
