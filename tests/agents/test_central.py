"""CLUB and GoB.Lin on a graph against their originals, in which one program chooses for all users, as plain loops."""

import math
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.extensions.conformance.graphs import check_conservation, graph_of, world
from coband.extensions.conformance.runs import Run
from coband.simulator.arms import ArmSet
from coband.simulator.core.randomness.streams import Streams
from tests.agents.test_cooperation import CONTEXTS, TOPOLOGIES, simulate
from tests.every import every
from tests.everyday import everyday
from tests.oracles import central as oracle
from tests.oracles import with_ties

NAMES = ("club", "gob_lin")
CASES = range(16)


def random_case(name: str, case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scenario and parameters."""
    rng = np.random.default_rng((11, case))
    problem = {
        "kind": "network",
        "arms": {"kind": "ball", "dimension": 3, "count": int(rng.integers(2, 7))},
        "kernel": {"kind": "linear"},
        "contexts": CONTEXTS[int(rng.integers(len(CONTEXTS)))],
        "network_kernel": {"kind": "gaussian", "length_scale": 0.5},
        "noise": float(rng.uniform(0, 0.3)),
        "centres": 10,
        "norm": 3.0,
    }
    plan = {
        "topology": TOPOLOGIES[case % len(TOPOLOGIES)],
        "agents": int(rng.integers(2, 9)),
        "seed": case,
        "problem": problem,
        "schedule": {"kind": "rounds", "turns": int(rng.integers(6, 16))},
    }
    config: dict[str, Any] = {"alpha": float(rng.choice([0.1, 0.5, 2.0]))}
    if case % 3:
        config["hops"] = int(rng.integers(1, 4)) if case % 3 == 1 else "half_diameter"
    if name == "club":
        config |= {"alpha_2": float(rng.choice([0.1, 0.3, 0.6, 5.0])), "lam": float(rng.uniform(0.2, 2.0))}
        config["start"] = str(rng.choice(["complete", "links"]))
    elif case % 2:
        bounds = {"norm": rng.uniform(0.1, 2.0), "sub_gaussian": rng.uniform(0.1, 1.0), "delta": rng.uniform(0.01, 1.0)}
        config |= {"width": "theory", **{key: float(value) for key, value in bounds.items()}}
    return plan, config


def program(name: str, rows: Any, config: dict[str, Any]) -> oracle.Recommender:
    if name == "gob_lin":
        return oracle.Gang(rows, 3, config, config.get("width") == "theory")
    pairs = [
        pair for pair in combinations(range(len(rows)), 2) if config["start"] == "complete" or pair[1] in rows[pair[0]]
    ]
    return oracle.Club(len(rows), 3, {frozenset(pair) for pair in pairs}, config)


def truth_of(plan: dict[str, Any], graph: Any) -> Any:
    return with_ties(world(plan["problem"], plan["seed"], graph), Streams(plan["seed"]).ties)


def on_graph(name: str, plan: dict[str, Any], config: dict[str, Any]) -> oracle.CentralRun:
    graph = graph_of(plan["topology"], plan["agents"], plan["seed"])
    hops = config.get("hops", "diameter")
    if not isinstance(hops, int):
        hops = max(1, graph.diameter if hops == "diameter" else graph.diameter // 2)
    truth = truth_of(plan, graph)
    rows = graph.adjacency
    return oracle.on_graph(plan["schedule"]["turns"], rows, hops, truth, lambda: program(name, rows, config))


def check_equal(simulated: Run, expected: oracle.CentralRun) -> None:
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)


@every("case", everyday(4, CASES))
@every("name", NAMES)
def test_a_run_without_delays_is_the_plain_loop(name: str, case: int) -> None:
    """Models and clusters at the end included, hop by hop and without shared work as well."""
    plan, config = random_case(name, case)
    simulated, expected = simulate(name, plan, config, checks="cheap"), on_graph(name, plan, config)
    check_equal(simulated, expected)
    totals = simulated.result.totals
    assert (totals["deliveries"], totals["transmissions"]) == (expected.deliveries, expected.transmissions)
    assert totals["peer_scalars"] == totals["transmissions"] * 6
    check_conservation(simulated)
    walked = simulate(name, plan, config, network={"local": {"mode": "hop_by_hop"}}, checks="cheap")
    assert walked.pulls == simulated.pulls
    assert simulate(name, plan, config, share=False, checks="cheap").result.fingerprint == simulated.result.fingerprint
    X = np.random.default_rng(3).uniform(-0.6, 0.6, (5, 3))
    agents: Any = simulated.engine.agents
    for v, (agent, plain) in enumerate(zip(agents, expected.programs, strict=True)):
        agent._learn()
        mean, variance = agent.knowledge.predict(ArmSet(X))
        bounds = mean + agent._factor() * np.sqrt(variance)
        assert bounds == pytest.approx([plain.bound(v, x) for x in X], abs=1e-8)
        if isinstance(plain, oracle.Club):
            links = agent.knowledge.ridge.links
            assert {frozenset(pair) for pair in combinations(range(len(links)), 2) if links[pair]} == plain.links
    if name == "club":
        assert isinstance(expected.programs[0], oracle.Club)
        clusters = {frozenset(expected.programs[0].cluster(v)) for v in range(plan["agents"])}
        assert totals["clusters"] == len(clusters)


@every("case", everyday(4, CASES))
@every("name", NAMES)
def test_where_everybody_hears_everything_at_once_it_is_the_original(name: str, case: int) -> None:
    plan, config = random_case(name, case)
    plan, config = {**plan, "topology": "complete"}, {**config, "hops": "diameter"}
    simulated = simulate(name, plan, config, checks="cheap")
    graph = graph_of("complete", plan["agents"], plan["seed"])
    rounds = [list(range(plan["agents"]))] * plan["schedule"]["turns"]
    original = program(name, graph.adjacency, config)
    check_equal(simulated, oracle.centrally(rounds, truth_of(plan, graph), original))


@every("case", range(3))
def test_a_gang_that_acts_one_at_a_time_is_the_original(case: int) -> None:
    plan, config = random_case("gob_lin", case)
    plan |= {"topology": "complete", "schedule": {"kind": "one_at_a_time", "turns": 40}}
    simulated = simulate("gob_lin", plan, {**config, "hops": "diameter"}, checks="cheap")
    graph = graph_of("complete", plan["agents"], plan["seed"])
    steps = [[agent] for agent, *_ in simulated.pulls]
    original = program("gob_lin", graph.adjacency, config)
    check_equal(simulated, oracle.centrally(steps, truth_of(plan, graph), original))


def test_the_random_cases_delete_links() -> None:
    """Some clusters fall apart, some stay whole."""
    found = [simulate("club", *random_case("club", case), checks="cheap") for case in CASES]
    counts = [(run.result.totals["clusters"], len(run.engine.agents)) for run in found]
    assert any(1 < clusters < agents for clusters, agents in counts)
    assert any(clusters == 1 for clusters, _ in counts)


@pytest.mark.parametrize(("log_det", "counted"), [(0.25, 0.25), (-1e-17, 0.0)])
def test_the_width_of_the_theory_follows_the_log_determinant(log_det: float, counted: float) -> None:
    """sigma sqrt(log(det(M) / delta)) + L(u); below 0 a log determinant is so by rounding."""
    config = {"width": "theory", "norm": 0.5, "sub_gaussian": 0.3, "delta": 0.2, "hops": 1}
    plan, _ = random_case("gob_lin", 0)
    agent: Any = simulate("gob_lin", plan, config).engine.agents[0]
    agent.knowledge = SimpleNamespace(posterior=SimpleNamespace(log_det=log_det))
    assert agent._factor() == pytest.approx(0.3 * math.sqrt(counted - math.log(0.2)) + 0.5, rel=1e-12)
