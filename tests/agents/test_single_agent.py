"""Agents that learn alone, on a star and on a graph: a run is the plain loop, arm by arm, and nothing is ever sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coband.simulator.arms import ArmSet
from coband.simulator.conformance import graphs
from coband.simulator.conformance.runs import PROBLEM, algorithm, run, world
from coband.simulator.core.nodes.node import NodeContext, Sharing
from coband.simulator.core.randomness.streams import Streams
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, single_agent, with_ties
from tests.oracles.kernels import plain

FORGETTING = ["sw_lin_ucb", "discounted_lin_ucb"]
NAMES = [*FORGETTING, "lin_ucb", "oful", "lin_ts", "kernel_ucb", "igp_ucb", "kernel_ts", "neural_ucb", "neural_ts"]
SYNCHRONOUS = ["approx_dis_kernel_ucb", "dis_kernel_ucb", "dis_lin_ucb", "discounted_dis_lin_ucb"]
KERNEL = {"kind": "gaussian", "gamma": 0.8}


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
            "nu_inside": bool(rng.integers(2)),
            "train_until": int(rng.choice([6, 50])),
            "train_every": int(rng.choice([1, 3])),
        }
    return config


def plain_loop(
    name: str, config: dict[str, Any], problem: dict[str, Any], seed: int, agents: int, turns: int
) -> OracleRun:
    """The oracle's run on the same world."""
    streams = Streams(seed)
    return single_agent.run(
        name,
        [list(range(agents))] * turns,
        with_ties(world(problem, seed, agents), streams.ties),
        plain(config.get("kernel", KERNEL)),
        algorithm(name).config.model_validate(config),
        streams.coin,
        agents,
    )


@every("case", everyday(8, range(20)))
@every("name", NAMES)
def test_a_run_is_the_plain_loop(name: str, case: int) -> None:
    rng = np.random.default_rng((3, case))
    agents, turns = int(rng.integers(1, 4)), int(rng.integers(8, 16) if name.startswith("neural") else 30)
    config = random_config(name, rng)
    problem = {**PROBLEM, "arms": {"kind": "ball", "dimension": int(rng.integers(2, 4)), "count": 5}}
    simulated = run(
        name, config, agents=agents, seed=case, problem=problem, schedule={"kind": "rounds", "turns": turns}
    )
    oracle = plain_loop(name, config, problem, case, agents, turns)
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    assert simulated.messages == []
    assert (simulated.result.totals["messages"], simulated.result.totals["scalars"]) == (0, 0)


@pytest.mark.parametrize("name", ["neural_ucb", "neural_ts"])
def test_a_network_whose_training_diverges_starts_again(name: str) -> None:
    config = {"width": 4, "init": "normal", "steps": 30, "lr": 1.3, "lam": 0.5}
    turns = 12
    simulated = run(name, config, agents=2, seed=3, schedule={"kind": "rounds", "turns": turns})
    oracle = plain_loop(name, config, PROBLEM, seed=3, agents=2, turns=turns)
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    nodes: list[Any] = simulated.engine.agents
    assert 0 < sum(node.report()["restarts"] for node in nodes) < 2 * turns


@pytest.mark.parametrize("name", [*NAMES, "n_kernel_ucb"])
def test_on_a_graph_they_are_silent(name: str) -> None:
    problem = {
        "kind": "network",
        "arms": {"kind": "ball", "dimension": 3, "count": 5},
        "kernel": {"kind": "gaussian", "gamma": 1.0},
    }
    totals = graphs.run(name, {"steps": 2, "width": 4} if name.startswith("neural") else {}, problem).result.totals
    assert (totals["deliveries"], totals["transmissions"], totals["scalars"]) == (0, 0, 0)


@pytest.mark.parametrize("turns", [1, 2, 20])
def test_the_radius_of_oful_is_that_of_theorem_2(turns: int) -> None:
    """R sqrt(2 log(det(V)^(1/2) det(lam I)^(-1/2) / delta)) + sqrt(lam) S, from the first pull on."""
    lam, delta, R, S = 8.0, 0.4, 0.7, 1.5
    config = {"lam": lam, "delta": delta, "sub_gaussian": R, "norm": S}
    simulated = run("oful", config, agents=1, schedule={"kind": "rounds", "turns": turns})
    truth = world(PROBLEM, 0, 1)
    X = np.array([truth.arms(0, turn)[arm] for _, turn, arm, _ in simulated.pulls])
    ratio = np.linalg.det(lam * np.eye(3) + X.T @ X) / lam**3
    (agent,) = simulated.engine.agents
    assert agent.radius() == pytest.approx(R * np.sqrt(2 * np.log(np.sqrt(ratio) / delta)) + np.sqrt(lam) * S)  # type: ignore[attr-defined]


def test_kernel_ucb_is_n_kernel_ucb() -> None:
    runs = [run(name, {"kernel": KERNEL, "alpha": 0.5}) for name in ("kernel_ucb", "n_kernel_ucb")]
    assert runs[0].pulls == runs[1].pulls


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_agents_that_are_never_synchronised_know_of_all_their_own_pulls(name: str) -> None:
    alone = run(name, {"threshold": 1e9}, agents=1, schedule={"kind": "rounds", "turns": 5})
    assert alone.result.ages.pulls.tolist() == [0] * 5


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_single_agent_knows_of_all_its_pulls_after_synchronisations_too(name: str) -> None:
    alone = run(name, {"threshold": 0.3}, agents=1, schedule={"kind": "rounds", "turns": 12})
    assert alone.result.rounds > 1
    assert not alone.result.ages.pulls.any()


@pytest.mark.parametrize(("name", "config"), [("sw_lin_ucb", {"window": 10}), ("discounted_lin_ucb", {"gamma": 0.8})])
def test_what_has_changed_is_forgotten(name: str, config: dict[str, Any]) -> None:
    """The best arm becomes the worst: linear UCB keeps to it, those that forget leave it within some turns."""
    arms, found = ArmSet(np.array([[1.0, 0.0], [0.0, 1.0]])), {}
    for one, parameters in ((name, config), ("lin_ucb", {"alpha": 0.2})):
        entry = algorithm(one)
        chosen = entry.config.model_validate(parameters)
        agent: Any = entry.agent(NodeContext(0, 1, 2, chosen, Sharing(True), np.random.default_rng))
        for turn in range(120):
            arm = agent.choose(arms)
            agent.observe(arms, arm, float(arm == (turn >= 60)))
        found[one] = agent.choose(arms)
    assert found == {name: 1, "lin_ucb": 0}


@pytest.mark.parametrize(
    ("name", "config"), [("sw_lin_ucb", {"window": 40}), ("discounted_lin_ucb", {"gamma": 1 - 1e-13})]
)
def test_who_forgets_nothing_is_lin_ucb(name: str, config: dict[str, Any]) -> None:
    """A window of all turns, and a discount that is none."""
    schedule = {"kind": "rounds", "turns": 40}
    pulls = [
        run(one, {"alpha": 0.5, **more}, schedule=schedule).pulls for one, more in ((name, config), ("lin_ucb", {}))
    ]
    assert pulls[0] == pulls[1]
