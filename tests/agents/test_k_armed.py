"""Bandits with K arms against plain loops; sums that averaging keeps; what delay and loss do to them."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coband.agents.k_armed.alone import ThompsonBernoulli
from coband.agents.k_armed.averaging import AveragedMeans
from coband.agents.k_armed.coop_ucb2 import CoopUcb2
from coband.agents.k_armed.dd_ucb import DdUcb
from coband.agents.k_armed.dec_ts import DecTs
from coband.agents.k_armed.flooding_ucb import FloodingUcb
from coband.agents.k_armed.gosine import Gosine
from coband.extensions.conformance.graphs import check_conservation, graph_of, run, world
from coband.extensions.conformance.runs import Run, algorithm
from coband.simulator.core.network.network import NetworkConfig, Presence
from coband.simulator.core.randomness.streams import Streams
from tests.every import every
from tests.everyday import everyday
from tests.oracles import OracleRun, with_ties
from tests.oracles.k_armed import alone, coop_ucb2, dd_ucb, dec, flooding_ucb, gosine, gossip_se, ucb1, ucb_odc

Case = tuple[str, dict[str, Any], Callable[..., OracleRun]]
CASES: list[Case] = [
    ("ucb1", {}, ucb1.run),
    ("ucb1", {"sharing": "all", "alpha": 0.5}, ucb1.run),
    ("thompson_bernoulli", {}, alone.thompson_bernoulli),
    ("epsilon_greedy", {}, alone.epsilon_greedy),
    ("epsilon_greedy", {"epsilon": 0.3}, alone.epsilon_greedy),
    ("coop_ucb2", {}, coop_ucb2.run),
    ("coop_ucb2", {"weights": "metropolis", "missing": "last", "gamma": 0.3}, coop_ucb2.run),
    ("coop_ucb2", {"weights": "neighbours", "missing": "reweigh", "gamma": 0.3}, coop_ucb2.run),
    ("dec_ts", {}, dec.dec_ts),
    ("dec_ucb", {}, dec.dec_ucb),
    ("dec_ucb", {"weights": "metropolis"}, dec.dec_ucb),
    ("gossip_se", {"horizon": 3, "tau": 0.1}, gossip_se.run),
    ("gossip_se", {"p": 0.9}, gossip_se.run),
    ("gosine", {"growth": 1.5, "alpha": 0.5}, gosine.run),
    ("gosine", {"growth": 1.5, "mode": "asynchronous"}, gosine.run),
    ("flooding_ucb", {"hops": 3}, flooding_ucb.run),
    ("flooding_ucb", {"absorption": True}, flooding_ucb.run),
    ("ucb_odc", {}, ucb_odc.run),
    ("ucb_odc", {"threshold": 2.0, "growth": 1.5}, ucb_odc.run),
    ("dd_ucb", {}, dd_ucb.run),
    ("dd_ucb", {"accelerated": False, "fresh": True, "weights": "metropolis"}, dd_ucb.run),
]
IDS = [f"{name} {config}" for name, config, _ in CASES]
TOPOLOGIES = ["ring", "line", "complete", {"kind": "erdos_renyi", "p": 0.5}, {"kind": "star"}]
AGENTS = 5


def problem(name: str, number: int) -> dict[str, Any]:
    """Six arms, of which flooding agents are offered four; where rewards are averaged rounding would decide ties."""
    bernoulli = algorithm(name).needs.unit_rewards or (number % 2 == 0 and not name.startswith(("coop", "de", "dd")))
    found: dict[str, Any] = {"kind": "k_armed", "means": [0.9, 0.7, 0.6, 0.5, 0.4, 0.3]}
    if name == "flooding_ucb":
        found["offered"] = 4
    return found if bernoulli else {**found, "reward": "gaussian", "sd": 0.3}


def simulate(case: int, number: int, topology: Any, **parts: Any) -> Run:
    name, config, _ = CASES[case]
    network = {"local": {"mode": "hop_by_hop"}}
    given: dict[str, Any] = {"agents": AGENTS, "seed": number, "checks": "cheap", "network": network, **parts}
    return run(name, config, problem(name, number), topology=topology, **given)


def expected(case: int, number: int, topology: Any, simulated: Run, rounds: int = 0) -> OracleRun:
    """The oracle's run on the same graph, world, turns, coins and links."""
    name, config, oracle = CASES[case]
    graph, streams = graph_of(topology, AGENTS, number), Streams(number)
    full = algorithm(name).config.model_validate(config).model_dump()
    full |= {"horizon": full.get("horizon") or rounds, "L": None}
    full["fresh"] = "stage" if full.get("fresh") else "none"
    steps = [list(range(AGENTS))] * rounds if rounds else [[agent] for agent, *_ in simulated.pulls]
    network = NetworkConfig.model_validate({"topology": topology})
    links = None if network.redrawn is None else Presence(network.redrawn, streams)
    return oracle(
        steps,
        with_ties(world(problem(name, number), number, graph), streams.ties),
        SimpleNamespace(**full),
        streams.coin,
        AGENTS,
        graph.adjacency,
        (lambda step, v, u: True) if links is None else (lambda step, v, u: links.has(v, u, step)),
    )


def compare(simulated: Run, oracle: OracleRun) -> None:
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in oracle.pulls), abs=1e-9)
    sent = Counter((one.kind, one.source, one.destination, one.scalars) for one in simulated.leaving)
    assert sent == Counter(oracle.messages)
    assert simulated.result.totals["peer_scalars"] == sum(message[3] for message in oracle.messages)
    for agent, state in zip(simulated.engine.agents, oracle.state, strict=True):
        for key, value in known(agent).items():
            assert value == pytest.approx(np.array(state[key], dtype=float), abs=1e-9)


def known(agent: Any) -> dict[str, Any]:
    """What an agent would know at its next turn, as the oracles call it."""
    found = {"n": agent.counts, "s": agent.sums}
    match agent:
        case DdUcb():
            agent.mix()
            return {"alpha": agent.alpha.ravel(), "beta": agent.beta.ravel(), "gamma": agent.gamma.ravel()}
        case CoopUcb2() | DecTs():
            agent.mix()
            return dict(zip("ns" if isinstance(agent, CoopUcb2) else "ab", agent.mass, strict=True))
        case AveragedMeans():
            agent.mix()
            return {**found, "z": agent.mass[0]}
        case ThompsonBernoulli():
            return {"a": 1.0 + agent.sums, "b": 1.0 + agent.counts - agent.sums}
        case FloodingUcb():
            own = np.isin(np.arange(len(agent.counts)), agent.numbers)  # of others it knows more than it needs
            return {name: own * values for name, values in found.items()}
        case Gosine():
            return {**found, "held": np.array(agent.held), "phase": agent.phase}
    return found


@every("number", everyday(2, range(10)))
@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_rounds_without_delays_are_the_plain_loop(case: int, number: int) -> None:
    topology = TOPOLOGIES[(case + number) % len(TOPOLOGIES)]
    simulated = simulate(case, number, topology, schedule={"kind": "rounds", "turns": 40})
    check_conservation(simulated)
    compare(simulated, expected(case, number, topology, simulated, rounds=40))


@every("number", everyday(1, range(10, 20)))
@pytest.mark.parametrize("case", [n for n, (name, *_) in enumerate(CASES) if name != "dd_ucb"])
def test_one_at_a_time_without_delays_is_the_plain_loop(case: int, number: int) -> None:
    topology = TOPOLOGIES[(case + number) % len(TOPOLOGIES)]
    schedule = {"kind": "one_at_a_time", "turns": 40 * AGENTS}
    simulated = simulate(case, number, topology, schedule=schedule)
    if CASES[case][0] == "gossip_se" and "horizon" not in CASES[case][1]:
        pytest.skip("nobody knows how many turns each agent will take")
    compare(simulated, expected(case, number, topology, simulated))
