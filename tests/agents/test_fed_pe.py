"""Fed-PE: the run is the pseudo-code, counts are closed forms, designs are optimal, arms stay as they should."""

import math
from functools import cache
from typing import Any

import numpy as np

from coband.agents.messages.phases import PhaseEstimates, PhaseModel
from coband.extensions.conformance.runs import Run, run
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.everyday import everyday
from tests.oracles import fed_pe as oracle


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """1 to 8 agents with arms of their own, all variants, rounds or one at a time."""
    rng = np.random.default_rng((8, case))
    agents, turns = int(rng.integers(1, 9)), int(rng.integers(60, 400))
    arms = {
        "kind": ["ball", "sphere", "box"][case % 3],
        "dimension": int(rng.integers(1, 5)),
        "count": int(rng.integers(2, 7)),
    }
    parameters = ["per_arm", "shared"][case % 2]
    plan: dict[str, Any] = {
        "agents": agents,
        "seed": case,
        "problem": {"kind": "own_arms", "arms": arms, "parameters": parameters, "noise": float(rng.uniform(0.05, 0.5))},
        "schedule": schedule_of(int(rng.integers(2)), agents, turns),
    }
    config: dict[str, Any] = {
        "variant": ["fed_pe", "enhanced", "collaborative"][(case // 2) % 3],
        "parameters": parameters,
        "alpha": float(rng.uniform(0.3, 2.0)) if rng.integers(2) else "theory",
        "delta": float(rng.uniform(0.01, 0.3)),
        "sub_gaussian": float(rng.uniform(0.02, 0.3)),
        "shortest": [None, 0.5][int(rng.integers(2))],
        "growth": int(rng.integers(2, 4)),
        "gap": float(rng.choice([0.3, 0.01, 1e-4])),
        "horizon": [None, turns // 3, 2 * turns][case // 3 % 3],
    }
    return plan, config


@cache
def solved(case: int) -> tuple[dict[str, Any], Run, oracle.FedPERun]:
    plan, config = random_case(case)
    return config, *beside("fed_pe", oracle, config, plan)


@every("case", everyday(10, range(24)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    _, simulated, expected = solved(case)
    assert_equal(simulated, expected)
    assert [agent.active.tolist() for agent in simulated.engine.agents] == expected.active  # type: ignore[attr-defined]


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    runs = [solved(case)[1:] for case in range(10)]
    assert min(simulated.result.rounds for simulated, _ in runs) >= 2
    left = [len(own) for _, expected in runs for own in expected.active]
    assert min(left) == 1
    assert any(len(own) > 1 for _, expected in runs for own in expected.active)
    assert any(0 in phase.values() for _, expected in runs for phase in expected.dealt)


def test_only_directions_are_disclosed() -> None:
    """Lengths of arms and rewards cannot be told apart, except where agents collaborate."""
    for case in range(6):
        config, simulated, _ = solved(case)
        sent = [message for message in simulated.sent if message.kind == "phase_estimates"]
        assert sent
        assert all((message.norms is None) == (config["variant"] != "collaborative") for message in sent)  # type: ignore[attr-defined]


def test_published_counts_follow_from_the_sizes_of_messages() -> None:
    """Salgia and Zhao 2022: 72,960 bits up of an agent and 249,900 down, T = 10^6, d = 20, 10 agents with 120 arms.

    Theirs deals 6 arms to each agent in each of 19 phases, by their numbers, and has numbers of 32 bits.
    """
    upload = PhaseEstimates(estimates=np.zeros((6, 20)), norms=None, pulls=1, round=1)
    model = PhaseModel(theta=np.zeros((1, 20)), inverse=np.zeros((1, 20, 20)), arms=None, version=1, round=1)
    assert 19 * 32 * upload.scalars == 72_960
    assert 18 * 32 * model.scalars + 19 * 60 * math.ceil(math.log2(120)) == 249_900


@every("counting", ["paper", "packed"])
@every("parameters", ["per_arm", "shared"])
@every("variant", ["fed_pe", "collaborative"])
@every("kind", ["fixed_domain", "own_arms"])
def test_bits_are_those_of_the_closed_form(counting: str, parameters: str, variant: str, kind: str) -> None:
    """4 agents, 5 arms, d = 3, 80 turns: packed, the number of an arm has 3 bits, and how often to pull it 9."""
    N, d, box = 4, 3, {"kind": "box", "dimension": 3}
    theirs = {"arms": {**box, "count": 5}, "parameters": parameters}
    everyones = {"domain": {**box, "points": 5}, "reward": {"kind": "linear", "theta": "sphere"}}
    problem = {"kind": kind, **(theirs if kind == "own_arms" else everyones)}
    schedule = {"kind": "rounds", "turns": 80}
    config, messages = {"variant": variant, "parameters": parameters}, {"counting": counting}
    totals = run("fed_pe", config, agents=N, problem=problem, schedule=schedule, messages=messages).result.totals
    arm, pulls = (64, 64) if counting == "paper" else (3, 9)
    up = totals["estimates_sent"] * 64 * (d + (variant == "collaborative")) + totals["active_sent"] * arm
    model = 64 * (d * d + d) + arm * (parameters == "per_arm")
    assert totals["bits"] == up + N * totals["models_sent"] * model + totals["active_sent"] * pulls > 0


@every("parameters", ["per_arm", "shared"])
@every("variant", ["fed_pe", "enhanced", "collaborative"])
def test_rewards_of_0_hide_no_arm(parameters: str, variant: str) -> None:
    """Arms of which nothing but 0 is heard in phase 0 are explored as the others; one without features harms nobody."""
    arms, rewards = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [0.0, 0.5, 0.0]
    config = {"parameters": parameters, "variant": variant}
    plan: dict[str, Any] = {"agents": 2, "seed": 1, "schedule": {"kind": "rounds", "turns": 60}}
    zeros = {"kind": "arrays", "arms": arms, "rewards": rewards}
    simulated, expected = beside("fed_pe", oracle, config, {**plan, "problem": zeros})
    assert_equal(simulated, expected)
    without = {**zeros, "arms": [*arms, [0.0, 0.0]], "rewards": [*rewards, 0.0], "noise": 0.1}
    assert run("fed_pe", config, problem=without, **plan).result.rounds > 2
