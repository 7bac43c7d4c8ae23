"""DELB: the run is the pseudo-code, pulls are dealt out evenly, arms stay by thresholds, long phases are warned of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from coband.simulator.conformance.runs import Run, algorithm, run, world
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.maths.exploration.dealing import deal
from tests.every import every
from tests.everyday import everyday
from tests.oracles import delb as oracle


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """1 to 6 agents, 2 to 30 arms of a ball, sphere or box."""
    rng = np.random.default_rng((9, case))
    agents, turns = int(rng.integers(1, 7)), int(rng.integers(60, 200))
    domain = {
        "kind": ["ball", "sphere", "box"][case % 3],
        "dimension": int(rng.integers(2, 5)),
        "points": int(rng.integers(2, 31)),
    }
    plan: dict[str, Any] = {
        "agents": agents,
        "seed": case,
        "problem": {
            "kind": "fixed_domain",
            "domain": domain,
            "reward": {"kind": "linear", "theta": "sphere"},
            "noise": float(rng.uniform(0.05, 0.5)),
        },
        "schedule": {"kind": "one_at_a_time", "turns": turns * agents},
    }
    if rng.integers(2):
        plan["schedule"] = {"kind": "rounds", "turns": turns}
    return plan, {"C": float(rng.uniform(0.005, 0.05)), "gap": [None, 0.1][case % 2]}


@cache
def solved(case: int) -> tuple[Run, oracle.DelbRun]:
    plan, config = random_case(case)
    simulated = run("delb", config, **plan)
    agents = plan["agents"]
    steps = [[agent] for agent, *_ in simulated.pulls]
    if plan["schedule"]["kind"] == "rounds":
        steps = [list(range(agents))] * plan["schedule"]["turns"]
    T = simulated.engine.agents[0].context.horizon
    parameters = algorithm("delb").config.model_validate(config).model_copy(update={"T": T})
    drawn = world(plan["problem"], plan["seed"], agents)
    return simulated, oracle.run(steps, drawn, None, parameters, Streams(plan["seed"]).coin, agents)


@every("case", everyday(8, range(24)))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)
    assert sorted(simulated.messages, key=repr) == sorted(expected.messages, key=repr)
    assert simulated.result.rounds == expected.rounds
    server: Any = simulated.engine.server
    assert server.active.tolist() == expected.active
    assert all(agent.active.tolist() == expected.active for agent in simulated.engine.agents)  # type: ignore[attr-defined]


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    runs = [solved(case)[0].result for case in range(8)]
    assert max(result.rounds for result in runs) >= 3
    assert min(result.totals["arms_left"] for result in runs) < 3


@every("agents", [1, 2, 7, 10])
@every("pulls", [3.0, 100.0, 12345.6])
def test_pulls_are_dealt_out_evenly_and_in_order(agents: int, pulls: float) -> None:
    X = np.random.default_rng(agents).standard_normal((20, 3))
    dealt = deal(X, np.arange(5, 20), pulls, agents, 3.0)
    lengths = {int(counts.sum()) for _, counts in dealt}
    assert len(lengths) == 1
    assert pulls <= agents * lengths.pop() <= pulls + 15 + agents
    arms = np.concatenate([own for own, _ in dealt])
    assert (np.diff(arms) >= 0).all()
    assert arms.min() >= 5


def test_a_first_phase_that_never_ends_is_warned_of() -> None:
    simulated = run("delb", {})
    (warning,) = simulated.engine.agents[0].warnings()
    assert "the first phase has" in warning
    assert simulated.result.rounds == 0
