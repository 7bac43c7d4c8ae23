"""Agents that learn alone, on a star and on a graph: a run is the plain loop, arm by arm, and nothing is ever sent."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance import graphs
from coband.extensions.conformance.runs import PROBLEM, run
from tests.agents.beside import assert_equal, beside
from tests.every import every
from tests.everyday import everyday
from tests.oracles import single_agent

FORGETTING = ["sw_lin_ucb", "discounted_lin_ucb"]
NAMES = [*FORGETTING, "lin_ucb", "oful", "lin_ts", "kernel_ucb", "igp_ucb", "kernel_ts", "neural_ucb", "neural_ts"]
SYNCHRONOUS = ["approx_dis_kernel_ucb", "dis_kernel_ucb", "dis_lin_ucb", "discounted_dis_lin_ucb"]


def random_config(name: str, rng: np.random.Generator) -> dict[str, Any]:
    config: dict[str, Any] = {"lam": float(rng.uniform(0.1, 2.0))}
    exploration = float(rng.choice([0.1, 0.5, 2.0]))
    if name in ("lin_ucb", "kernel_ucb"):
        config["alpha"] = exploration
    elif name in ("oful", "igp_ucb"):
        delta = float(rng.uniform(0.05, 0.9))
        config |= {"delta": delta, "sub_gaussian": exploration, "norm": float(rng.uniform(0, 2))}
    elif name in FORGETTING:
        config["alpha"] = exploration if rng.integers(2) else "theory"
        config |= {
            "delta": float(rng.uniform(0.05, 0.9)),
            "norm": float(rng.uniform(0, 2)),
            "sub_gaussian": exploration,
        }
        config |= (
            {"window": int(rng.integers(1, 40))} if name == "sw_lin_ucb" else {"gamma": float(rng.uniform(0.3, 1))}
        )
    else:
        config["nu"] = exploration
    if name in ("kernel_ucb", "kernel_ts", "igp_ucb"):
        config["kernel"] = {"kind": "gaussian", "gamma": float(rng.uniform(0.3, 2.0))}
    if name.startswith("neural"):
        config |= {
            "width": int(rng.choice([2, 4])),
            "layers": int(rng.choice([2, 3])),
            "init": str(rng.choice(["paper", "normal"])),
            "diagonal": bool(rng.integers(2)),
            "steps": int(rng.choice([0, 2, 5])),
            "lr": [None, 0.02][int(rng.integers(2))],
            "duplicate_input": [None, True][int(rng.integers(2))],
            "train": str(rng.choice(["public", "paper"])),
            "train_until": int(rng.choice([6, 50])),
        }
    return config


ORACLES: dict[str, Any] = {name: SimpleNamespace(run=partial(single_agent.run, name)) for name in NAMES}


@every("case", everyday(6, range(20)))
@every("name", NAMES)
def test_a_run_is_the_plain_loop(name: str, case: int) -> None:
    rng = np.random.default_rng((3, case))
    agents, turns = int(rng.integers(1, 4)), int(rng.integers(8, 16) if name.startswith("neural") else 30)
    config = random_config(name, rng)
    problem = {**PROBLEM, "arms": {"kind": "ball", "dimension": int(rng.integers(2, 4)), "count": 5}}
    plan = {"agents": agents, "seed": case, "problem": problem, "schedule": {"kind": "rounds", "turns": turns}}
    simulated, expected = beside(name, ORACLES[name], config, plan)
    assert_equal(simulated, expected)
    assert simulated.messages == []


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_a_network_whose_training_diverges_starts_again(name: str) -> None:
    config = {"width": 4, "init": "normal", "steps": 30, "lr": 1.3, "lam": 0.5}
    turns = 12
    plan: dict[str, Any] = {"agents": 2, "seed": 3, "problem": PROBLEM, "schedule": {"kind": "rounds", "turns": turns}}
    simulated, expected = beside(name, ORACLES[name], config, plan)
    assert_equal(simulated, expected)
    nodes: list[Any] = simulated.engine.agents
    assert 0 < sum(node.report()["restarts"] for node in nodes) < 2 * turns


@every("name", [*NAMES, "n_kernel_ucb"])
def test_on_a_graph_they_are_silent(name: str) -> None:
    problem = {
        "kind": "network",
        "arms": {"kind": "ball", "dimension": 3, "count": 5},
        "kernel": {"kind": "gaussian", "gamma": 1.0},
    }
    totals = graphs.run(name, {"steps": 2, "width": 4} if name.startswith("neural") else {}, problem).result.totals
    assert (totals["deliveries"], totals["transmissions"], totals["scalars"]) == (0, 0, 0)


@every("name", SYNCHRONOUS)
def test_a_single_agent_knows_of_all_its_pulls_whether_it_is_synchronised_or_not(name: str) -> None:
    for threshold, synchronised in ((1e9, False), (0.3, True)):
        alone = run(name, {"threshold": threshold}, agents=1, schedule={"kind": "rounds", "turns": 12})
        assert (alone.result.rounds > 1) == synchronised
        assert not alone.result.ages.pulls.any()
