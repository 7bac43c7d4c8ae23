"""Bandits with K arms against plain loops; sums that averaging keeps; what delay and loss do to them."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.agents.k_armed.alone import ThompsonBernoulli
from coband.agents.k_armed.averaging import AveragedMeans
from coband.agents.k_armed.coop_ucb2 import CoopUcb2
from coband.agents.k_armed.dd_ucb import DdUcb
from coband.agents.k_armed.dec_ts import DecTs
from coband.agents.k_armed.flooding_ucb import FloodingUcb
from coband.agents.k_armed.gosine import Gosine
from coband.extensions.conformance.graphs import check_conservation, graph_of, run, world
from coband.extensions.conformance.runs import Run, algorithm
from coband.extensions.conformance.runs import problem_of as kit_problem
from coband.extensions.conformance.runs import run as run_in_a_star
from coband.simulator.core.network.network import NetworkConfig, Presence
from coband.simulator.core.nodes.node import UnsupportedScenario
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
    ("epsilon_greedy", {"epsilon": "decay"}, alone.epsilon_greedy),
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
    full |= {"horizon": full.get("horizon") or rounds, "L": None, "p": full.get("p") or graph.p}
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
        (lambda step, v, u: True) if links is None else (lambda step, v, u: links.has(v, u, step + 1.0)),
    )


def passes_on(simulated: Run) -> bool:
    """Whether the network passes messages on, also after the last turn, and not the agents at their turns."""
    return any(one.kind == "flooded" for one in simulated.sent) and not simulated.engine.config.absorption  # type: ignore[attr-defined]


def check_equal(simulated: Run, oracle: OracleRun) -> None:
    assert simulated.pulls == [pull[:4] for pull in oracle.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in oracle.pulls), abs=1e-9)
    sent = Counter((one.kind, one.source, one.destination, one.scalars) for one in simulated.leaving)
    late = sum(one.time > simulated.engine.clock.now - 2.5 for one in simulated.leaving) if passes_on(simulated) else 0
    assert not Counter(oracle.messages) - sent
    assert sum((sent - Counter(oracle.messages)).values()) <= late
    assert simulated.result.totals["peer_scalars"] == sum(one.scalars for one in simulated.leaving)
    for agent, state in () if passes_on(simulated) else zip(simulated.engine.agents, oracle.state, strict=True):
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
            agent.mix([agent])
            return dict(zip("ns" if isinstance(agent, CoopUcb2) else "ab", agent.mass, strict=True))
        case AveragedMeans():
            agent.mix([agent])
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
    check_equal(simulated, expected(case, number, topology, simulated, rounds=40))


@every("number", everyday(1, range(10, 20)))
@pytest.mark.parametrize(
    "case", [n for n, (name, config, _) in enumerate(CASES) if name != "dd_ucb" and "hops" not in config]
)
def test_one_at_a_time_without_delays_is_the_plain_loop(case: int, number: int) -> None:
    topology = TOPOLOGIES[(case + number) % len(TOPOLOGIES)]
    schedule = {"kind": "one_at_a_time", "turns": 40 * AGENTS}
    simulated = simulate(case, number, topology, schedule=schedule)
    if CASES[case][0] == "gossip_se" and "horizon" not in CASES[case][1]:
        pytest.skip("nobody knows how many turns each agent will take")
    check_equal(simulated, expected(case, number, topology, simulated))


REDRAWN = {"kind": "redrawn", "graph": {"kind": "erdos_renyi", "p": 0.7}, "p": 0.6}


@every("number", everyday(1, range(20, 26)))
@pytest.mark.parametrize("case", [n for n, (name, *_) in enumerate(CASES) if name not in ("dd_ucb", "gosine")])
def test_rounds_on_a_graph_that_is_redrawn_are_the_plain_loop(case: int, number: int) -> None:
    simulated = simulate(case, number, REDRAWN, schedule={"kind": "rounds", "turns": 40})
    check_equal(simulated, expected(case, number, REDRAWN, simulated, rounds=40))


@pytest.mark.parametrize("topology", ["ring", REDRAWN], ids=["ring", "redrawn"])
@pytest.mark.parametrize("weights", ["max_degree", "metropolis", "n"])
def test_averaging_keeps_mass_where_nothing_is_late_or_lost(weights: str, topology: Any) -> None:
    for name in ("coop_ucb2", "dec_ts", "gossip_se"):
        config = {"weights": weights, **({"tau": 0.1} if name == "gossip_se" else {})}
        simulated = run(name, config, problem(name, 0), topology=topology, schedule={"kind": "rounds", "turns": 60})
        agents: list[Any] = simulated.engine.agents
        agents[0].mix(agents)
        mass = sum(agent.mass for agent in agents)
        counts, sums = (sum(getattr(agent, each) for agent in agents) for each in ("counts", "sums"))
        if name == "coop_ucb2":
            assert mass == pytest.approx(np.array([counts, sums]), abs=1e-9)
        elif name == "dec_ts":
            assert mass == pytest.approx(5 * np.array([1 + sums, 1 + counts - sums]), abs=1e-9)
        else:
            assert mass[0] == pytest.approx(sum(agent.sums / agent.counts for agent in agents), abs=1e-9)


@pytest.mark.parametrize(("late", "kept"), [(0, 3600), (2, 1543), (4, 982)])
def test_averages_that_are_late_lose_mass(late: int, kept: float) -> None:
    """r / (1 + (1 - a) D) a round, a the weight that agents on a ring of 6 give themselves, 1 / 3."""
    given: dict[str, Any] = {"agents": 6, "schedule": {"kind": "rounds", "turns": 600}, "network": {"latency": late}}
    simulated = run("coop_ucb2", {}, problem("coop_ucb2", 1), **given)
    assert sum(agent.mass[0].sum() for agent in simulated.engine.agents) == pytest.approx(kept, rel=0.02)  # type: ignore[attr-defined]


def on_demand(**parts: Any) -> tuple[Run, Counter[tuple[int, int]]]:
    """A run of 4 agents that all know each other, and how many messages went from one to another."""
    config = parts.pop("config", {})
    schedule = {"kind": "one_at_a_time", "turns": 2000}
    given: dict[str, Any] = {"topology": "complete", "agents": 4, "schedule": schedule, **parts}
    simulated = run("ucb_odc", config, problem("ucb_odc", 0), **given)
    return simulated, Counter((one.source, one.destination) for one in simulated.leaving)


def test_messages_on_demand_alternate_within_a_pair() -> None:
    simulated, sent = on_demand(config={"threshold": 3.0}, network={"local": {"mode": "hop_by_hop"}})
    pulls = Counter(agent for agent, *_ in simulated.pulls)
    for source, destination in sent:
        assert abs(sent[source, destination] - sent[destination, source]) <= 1
        assert sent[source, destination] <= min(pulls[source], pulls[destination]) / 3 + 1


def test_a_lost_message_silences_a_pair_and_redemand_mends_it() -> None:
    lossy = {"loss": 0.1, "transport": "datagram", "latency": 0.01}
    silent, mended = on_demand(network=lossy)[0], on_demand(network=lossy, config={"redemand": 20.0})[0]
    spoken = on_demand()[0].result.totals["transmissions"]
    assert silent.result.totals["transmissions"] < 0.1 * spoken < mended.result.totals["transmissions"]
    learnt = [sum(agent.known for agent in each.engine.agents) for each in (silent, mended)]  # type: ignore[attr-defined]
    assert learnt[0] < 3000 < 7000 < learnt[1] <= 8000


@pytest.mark.parametrize(("missing", "kept"), [("own", 0), ("last", 1)])
def test_dec_ucb_averages_nothing_in_its_first_turns(missing: str, kept: int) -> None:
    agent: Any = run("dec_ucb", {"missing": missing}, problem("dec_ucb", 0), topology="ring").engine.agents[0]
    agent.turns = 0
    agent.heard.clear()
    agent.receive(agent.message(), agent.neighbours[0])
    assert (agent.values_heard(), len(agent.heard)) == ([], kept)


def test_the_timer_of_a_message_that_was_given_up_opens_no_flag_of_a_later_one() -> None:
    agent: Any = on_demand(config={"redemand": 20.0})[0].engine.agents[0]
    u = agent.neighbours[0]
    (_, given_up), (_, timer) = agent._tell(u)
    agent.undelivered(given_up, u)
    agent.turns += 1
    _, (_, later) = agent._tell(u)
    assert agent.on_timer(timer) is None
    assert not agent.open[u]
    assert agent.on_timer(later) == []
    assert agent.open[u]


@pytest.mark.parametrize("network", [{"latency": 2.5}, {"loss": 0.3, "latency": 0.1}], ids=["late", "lossy"])
def test_mixing_waits_for_all_neighbours_and_pulls_go_on(network: dict[str, Any]) -> None:
    """All agents end a stage with the same mixing; nothing that was mixed is missing."""
    given: dict[str, Any] = {"agents": 6, "schedule": {"kind": "rounds", "turns": 200}, "network": network}
    agents: list[Any] = run("dd_ucb", {"accelerated": False}, problem("dd_ucb", 1), **given).engine.agents
    assert all(agent.turns == 200 and agent.stage > 0 for agent in agents)
    for stage in {agent.stage for agent in agents}:
        ended = [agent for agent in agents if agent.stage == stage and not agent.step]
        assert all(agent.alpha[1].sum() > 6 for agent in ended)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("gosine", {"slack": 1.0}, r"slack\(=1\) goes with mode: asynchronous"),
        ("epsilon_greedy", {"epsilon": 0.1, "c": 1.0}, r"c\(=1\) and d\(=0.1\) go with epsilon: decay"),
    ],
)
def test_parameters_without_effect_are_refused(name: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        algorithm(name).config.model_validate(config)


def test_sharing_needs_a_graph() -> None:
    with pytest.raises(UnsupportedScenario, match="ucb1 with sharing: all needs a graph"):
        run_in_a_star("ucb1", {"sharing": "all"})


def test_the_kit_offers_all_arms_to_an_agent_that_is_alone() -> None:
    name, schedule = "flooding_ucb", {"kind": "rounds", "turns": 8}
    assert run(name, {}, kit_problem(name), topology="line", agents=1, schedule=schedule).engine.world.fixed_arms
    assert not run(name, {}, kit_problem(name), topology="line", agents=2, schedule=schedule).engine.world.fixed_arms
