"""Push gossip against plain loops, its closed form, and what it is good for."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.communication import check_closed_forms
from coband.extensions.conformance.graphs import POOL, check_conservation, graph_of, run, world
from coband.extensions.conformance.runs import Run
from coband.simulator.core.randomness.streams import Streams
from tests.agents.test_cooperation import KERNELS, TOPOLOGIES
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, with_ties
from tests.oracles import push_gossip_kernel_ucb as oracle
from tests.oracles.kernels import plain

NAME = "push_gossip_kernel_ucb"
MODES = ["direct", "hop_by_hop"]


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scenario and parameters; a third of the cases with one fixed arm set."""
    rng = np.random.default_rng((11, case))
    kernel = KERNELS[int(rng.integers(3))]
    turns, agents = int(rng.integers(4, 12)), int(rng.integers(1, 9))
    plan = {
        "topology": TOPOLOGIES[case % len(TOPOLOGIES)],
        "agents": agents,
        "seed": case,
        "problem": {
            "kind": "network",
            "arms": POOL if case % 3 == 0 else {"kind": "ball", "dimension": 3, "count": int(rng.integers(2, 7))},
            "kernel": kernel,
            "noise": float(rng.uniform(0, 0.3)),
            "centres": 10,
        },
        "schedule": {"kind": "rounds", "turns": turns},
    }
    if rng.integers(2):
        plan["schedule"] = {"kind": "one_at_a_time", "turns": turns * agents}
    config = {
        "kernel": kernel,
        "alpha": float(rng.choice([0.1, 1.0, 3.0])),
        "lam": float(rng.uniform(0.2, 2.0)),
        "fanout": int(rng.integers(1, 5)),
    }
    return plan, config


def simulate(plan: dict[str, Any], config: dict[str, Any], **more: Any) -> Run:
    parts = dict(plan)
    return run(NAME, config, parts.pop("problem"), **parts, **more)


def oracle_of(plan: dict[str, Any], config: dict[str, Any], simulated: Run) -> OracleRun:
    """The oracle's run on the same graph, world, turns and coins."""
    graph = graph_of(plan["topology"], plan["agents"], plan["seed"])
    steps = [[agent] for agent, *_ in simulated.pulls]
    if plan["schedule"]["kind"] == "rounds":
        steps = [list(range(graph.nodes))] * plan["schedule"]["turns"]
    return oracle.run(
        steps,
        with_ties(world(plan["problem"], plan["seed"], graph), Streams(plan["seed"]).ties),
        plain(config["kernel"]),
        SimpleNamespace(alpha=config["alpha"], lam=config["lam"], fanout=config["fanout"]),
        Streams(plan["seed"]).coin,
        graph.nodes,
        graph.adjacency,
    )


@every("case", everyday(8, range(24)))
def test_a_run_without_delays_is_the_plain_loop(case: int) -> None:
    """Models at the end included, whether messages walk hop by hop or not."""
    plan, config = random_case(case)
    simulated = simulate(plan, config, network={"local": {"mode": MODES[case // 3 % 2]}}, checks="cheap")
    expected = oracle_of(plan, config, simulated)
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)
    assert simulated.messages == expected.messages
    assert simulated.result.totals["peer_scalars"] == sum(message[3] for message in expected.messages)
    check_conservation(simulated)
    fixed = case % 3 == 0
    X = simulated.engine.world.arms(0, 1) if fixed else np.random.default_rng(5).uniform(-0.5, 0.5, (7, 3))
    for index, agent in enumerate(simulated.engine.agents):
        node: Any = agent
        node.learn()
        mean, variance = node.posterior.predict(X)
        expected_mean, expected_deviation = expected.posterior_of(index, X)
        assert mean == pytest.approx(expected_mean, abs=1e-7)
        assert np.sqrt(variance) == pytest.approx(expected_deviation, abs=1e-7)


@every("agents", [1, 9])
def test_agents_without_neighbours_send_nothing(agents: int) -> None:
    topology = {"kind": "erdos_renyi", "p": 0.15, "connected": False}
    problem = {"kind": "network", "arms": POOL, "kernel": {"kind": "gaussian", "gamma": 1.0}}
    schedule = {"kind": "rounds", "turns": 5}
    simulated = run(NAME, {}, problem, topology=topology, agents=agents, schedule=schedule)
    assert simulated.engine.graph is not None
    alone = simulated.engine.graph.degrees.count(0)
    assert alone > 0
    assert simulated.result.totals["transmissions"] == 5 * (agents - alone)
    check_closed_forms(NAME, simulated, "rounds")


@every("transport", ["datagram", "reliable"])
@every("case", range(2, 5))
def test_faults_are_missing_or_late_points_and_no_crash(case: int, transport: str) -> None:
    plan, config = random_case(case)
    simulated = simulate(
        plan,
        config,
        network={
            "loss": 0.4,
            "duplicate": 0.3,
            "transport": transport,
            "latency": {"kind": "exponential", "rate": 1.0},
            "partitions": [{"start": 2.0, "end": 4.0, "groups": [[0]]}],
        },
        agent={"availability": {"kind": "markov_on_off", "mean_up": 4.0, "mean_down": 2.0}},
    )
    check_conservation(simulated)
    assert simulated.result.stalled == 0
    totals = simulated.result.totals
    if transport == "reliable":
        assert totals["deliveries"] == totals["transmissions"]
    heard = totals["deliveries"] + simulated.result.turns
    sizes = 0
    for agent in simulated.engine.agents:
        node: Any = agent
        node.learn()
        sizes += node.posterior.size
    assert sizes == heard
