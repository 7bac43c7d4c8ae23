"""Every algorithm goes on where rewards come late, agents join and leave, and batteries run out, all at once."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from coband.agents.messages.linear import LinearUpload
from coband.extensions.conformance import graphs, kit, runs
from coband.simulator.arms import ArmSet
from coband.simulator.core.hosts.host import Outstanding, kept_of, observe_late
from coband.simulator.core.nodes.node import Agent, Outbox
from coband.simulator.core.nodes.outbox import SERVER, Later
from coband.simulator.core.records import trace as tr
from coband.simulator.core.twins.payloads import difference, frozen
from tests.agents.test_conformance import CASES
from tests.core.hosts.test_energy import PHONE
from tests.core.hosts.test_members import ACTS, JOINS, LEAVES, MOVES
from tests.every import every
from tests.everyday import slow

LATE: dict[str, Any] = {"reward_delay": {"kind": "exponential", "rate": 0.2}}
UNEVEN: dict[str, Any] = {"kernel": {"kind": "linear"}, "threshold": 8.0}
"""Deviations that differ between arms from the first turn on."""
FIRST = list({name: (name, config) for name, config in reversed(CASES)}.values())
EVERY_DAY = [*FIRST, ("async_kernel_ucb", UNEVEN), ("approx_dis_kernel_ucb", UNEVEN)]
ON_BATTERIES = {"one_at_a_time": False, "rounds": True, "renewal": False, "instant": False, "phases": True}


def _agents(name: str, schedule: str) -> dict[str, Any]:
    """What agents have to bear on a schedule: late rewards, batteries, joins and leaves where they may."""
    agent: dict[str, Any] = {} if runs.algorithm(name).needs.ends_together else dict(MOVES)
    if ON_BATTERIES[schedule]:
        phone = PHONE | {"per_turn": 0.02, "capacity": 1.0} if runs.batches(name) else PHONE
        if name in ("fn_ucb", "approx_dis_kernel_ucb"):  # a matrix takes what a hundred days bring
            phone = phone | {"per_bit_up": 1e-4, "per_bit_down": 5e-5}
        return {**agent, "compute": 0.1, "energy": phone}
    late = {} if runs.algorithm(name).needs_rewards else LATE
    return {**(kit.EXTRA["churn"] if schedule == "renewal" else {}), **agent, **late}


FAR: dict[str, Any] = {"start": 1e8, "end": 1e9}
IDLE: dict[str, dict[str, Any]] = {
    "loss": {"network": {"loss": 1e-12}},
    "bursts": {"network": {"loss": {"kind": "gilbert_elliott", "p": 1e-12, "r": 1.0}}},
    "duplicates": {"network": {"duplicate": 1e-12}},
    "outage": {"network": {"outages": [{**FAR, "nodes": [0]}]}},
    "partition": {"network": {"partitions": [{**FAR, "groups": [[0]]}]}},
    "rule": {"network": {"links": [{"agents": [0]}]}},
    "rule that loses": {"network": {"links": [{"agents": [0], "loss": 1e-12}]}},
    "healed": {"network": {"heals": 0.0, "loss": 0.5, "duplicate": 0.5}},
    "patience": {"network": {"recovery": {"patience": 1e6, "timeout": 1e3}}},
    "leaves": {"agent": {"leaves": {"kind": "times", "times": [[0, 1e8]]}}},
    "availability": {"agent": {"availability": {"kind": "markov_on_off", "mean_up": 1e12, "mean_down": 1.0}}},
    "energy": {"agent": {"energy": {**PHONE, "capacity": 1e12}}},
    "stragglers": {"agent": {"stragglers": {"fraction": 0.0, "slowdown": 8.0}}},
}
"""Features that are on and never act; most of them come with acknowledgements."""
BASES: dict[str, dict[str, Any]] = {
    "ideal": {},
    "random": {"latency": {"kind": "lognormal", "median": 1.5, "sigma": 1.0}},
    "narrow": {"server": {"uplink": 40.0, "downlink": 80.0}, "latency": {"kind": "exponential", "rate": 2.0}},
    "fifo": {"bandwidth": 60.0, "latency": {"kind": "exponential", "rate": 2.0}, "reorder": "fifo"},
}
QUICK = ("dis_lin_ucb", "async_kernel_ucb", "coop_kernel_ucb", "ind_alba")


NEVER_ACTS = [(case, QUICK.index(case[0])) for case in FIRST if case[0] in QUICK]


@every("case, turn", [*NEVER_ACTS, *(slow((case, None)) for case in FIRST)], str)
def test_a_feature_that_never_acts_changes_no_event(case: tuple[str, dict[str, Any]], turn: int | None) -> None:
    """Every day quick algorithms, by turns with every other feature, on each base with the others."""
    name, config = case
    on_graph, needs = graphs.on_graph(name), runs.algorithm(name).needs
    config = {**config, "horizon": 15} if needs.horizon else config
    schedule = kit.PHASES["phases"] if runs.batches(name) else kit.SCHEDULES["rounds"]

    def events(network: dict[str, Any], agent: dict[str, Any]) -> Any:
        network = {"retransmission": {"timeout": 1e6}, **network}
        result = graphs.run_anywhere(name, config, agent=agent, network=network, schedule=schedule, seed=3).result
        walks = "latency" in network or not on_graph  # where links are ideal, rows stand for all copies of a hop
        return result.fingerprint if walks else (result.regret, *result.times, result.totals["scalars"])

    for place, (base, network) in enumerate(BASES.items()):
        network = {key: value for key, value in network.items() if key != "server" or not on_graph}
        expected = events(network, {})
        for number, (feature, parts) in enumerate(IDLE.items()):
            if turn is not None and (number + place + turn) % 2:
                continue
            flat = base == "ideal" and name == "async_kernel_ucb"  # whose server asks whether batteries can go flat
            if not (feature == "leaves" and needs.ends_together) and not (flat and feature == "energy"):
                found = events({**network, **parts.get("network", {})}, parts.get("agent", {}))
                assert found == expected, f"{feature} on {base}"


CUT_OFF: dict[str, Any] = {"partitions": [{"start": 3.0, "end": None, "groups": [[0]]}]}
PATIENCE = 5.0


@every("case", [case if case[0] in ("fed_pe", *QUICK) else slow((case,)) for case in FIRST], str)
def test_the_transport_ends_with_the_patience_of_nodes(case: tuple[str, dict[str, Any]]) -> None:
    """Agent 0 hears nobody and is not heard; without patience its messages would be repeated for 25,000 units."""
    name, config = case
    needs = runs.algorithm(name).needs
    config = {**config, "horizon": 15} if needs.horizon else config
    schedule = kit.PHASES["phases"] if runs.batches(name) else kit.SCHEDULES["rounds"]
    sound = {"latency": 0.1, "recovery": {"patience": PATIENCE, "attempts": 2, "timeout": 1.0}}
    cut_off = ({**sound, **CUT_OFF}, {**sound, **CUT_OFF, "transport": "datagram"})
    last = graphs.run_anywhere(name, config, network=sound, schedule=schedule, seed=3).result.times[-1]
    for network in cut_off[: 1 if needs.reliable else 2]:
        run = graphs.run_anywhere(name, config, network=network, schedule=schedule, seed=3)
        waits = sum(run.names[row.kind] == "patience" for row in run.events(tr.TIMER)) + len(run.events(tr.EXPIRE))
        assert run.result.times[-1] <= last + 2.0 * PATIENCE * waits + 1.0  # waits for acknowledgements double
        assert not run.result.stalled


@every("case", [case if case[0] in ("fed_pe", "bpe", *QUICK) else slow((case,)) for case in FIRST], str)
def test_nobody_waits_for_the_end_of_a_long_outage(case: tuple[str, dict[str, Any]]) -> None:
    """Agent 0 is down for 2,000 units and then goes on; until it is asked for something nothing of it is missing."""
    name, config = case
    config = {**config, "horizon": 15} if runs.algorithm(name).needs.horizon else config
    schedule = kit.PHASES["phases"] if runs.batches(name) else kit.SCHEDULES["rounds"]
    sound = {"latency": 0.1, "recovery": {"patience": PATIENCE, "attempts": 2, "timeout": 1.0}}
    outage = {"outages": [{"start": 3.0, "end": 2000.0, "nodes": [0]}]}
    last = graphs.run_anywhere(name, config, network=sound, schedule=schedule, seed=3).result.times[-1]
    run = graphs.run_anywhere(name, config, network={**sound, **outage}, schedule=schedule, seed=3)
    assert max(row.time for row in run.events(tr.TURN) if row.node != 0) <= last + 3.0 * PATIENCE


@every("case", [*EVERY_DAY, *(slow((case,)) for case in CASES if case not in FIRST)], str)
def test_every_algorithm_goes_on(case: tuple[str, dict[str, Any]]) -> None:
    name, config = case
    if runs.algorithm(name).needs.horizon:
        config = {**config, "horizon": 15}
    networks = kit.GRAPH_NETWORKS if graphs.on_graph(name) else kit.NETWORKS
    bad: dict[str, Any] = {"rounds": networks["lossy"], "renewal": networks["faulty"]}
    for schedule, how in (kit.PHASES if runs.batches(name) else kit.SCHEDULES).items():
        agent, network = _agents(name, schedule), bad.get(schedule, {})
        run = graphs.run_anywhere(name, config, agent=agent, network=network, schedule=how, seed=4)
        complaints = [*_of_members(run, runs.batches(name))] if "joins" in agent else []
        complaints += [*_of_rewards(run, bool(network))] if "reward_delay" in agent else []
        if "energy" in agent and not run.result.totals["ran_out"]:
            complaints.append("nobody ran out")
        assert not complaints, schedule


FLAT: dict[str, Any] = {
    "capacity": 3.0,
    "level": 0.02,
    "per_turn": 0.2,
    "idle": 0.05,
    "recharge": {"kind": "windows", "power": 1.0, "every": 4.0, "lasts": 1.0},
}


@every("case", [case if case[0] in ("push_gossip_kernel_ucb", *QUICK) else slow((case,)) for case in FIRST], str)
def test_nobody_acts_before_it_joins_or_below_its_reserve(case: tuple[str, dict[str, Any]]) -> None:
    """Batteries are flat at the start, are charged before agent 1 joins, and go flat again in the middle of things."""
    name, config = case
    needs = runs.algorithm(name).needs
    config = {**config, "horizon": 15} if needs.horizon else config
    moves = {} if needs.ends_together else MOVES
    for schedule in kit.schedules_of(name).values():
        agent = {**moves, "compute": 0.3, "energy": FLAT}
        run = graphs.run_anywhere(name, config, agent=agent, network={"latency": 0.2}, schedule=schedule, seed=3)
        assert not moves or not list(_of_members(run, runs.batches(name)))


def _of_members(run: runs.Run, batches: bool) -> Iterator[str]:
    """What is wrong with a run whose agent 1 joins late, and whose agent 0 leaves."""
    for row in (row for kind in ACTS for row in run.events(kind)):
        if (row.node == 1 and row.time < JOINS) or (row.node == 0 and row.time >= LEAVES):
            yield f"agent {row.node} does something at {row.time:g}: {tr.EVENTS[row.event]}"
    for row in run.events(tr.SEND):
        if (row.peer == 1 and row.time < JOINS) or (row.peer == 0 and row.time >= LEAVES):
            yield f"agent {row.peer} is sent something at {row.time:g}"
    turns = Counter(row.node for row in run.events(tr.CHOOSE))
    if run.result.stalled:
        yield run.result.never_taken
    counted = [one["turns"] for one in run.result.by_agent]
    if not batches and [turns[agent] for agent in range(3)] != counted:
        yield f"{turns} turns, counted {counted}"


def _of_rewards(run: runs.Run, faulty: bool) -> Iterator[str]:
    """What is wrong with a run whose rewards come late; those of agent 0 may come after it has left."""
    rewards, choices = run.events(tr.REWARD), {row.seq: row for row in run.events(tr.CHOOSE)}
    missing = Counter(row.node for row in choices.values()) - Counter(row.node for row in rewards)
    if missing.total() != run.result.totals["outstanding"]:
        yield f"{missing} rewards are missing, {run.result.totals['outstanding']} outstanding"
    if not faulty and set(missing) - {0}:
        yield "rewards are outstanding of agents that are there"
    if not any(choices[row.cause].seq + 1 < row.seq for row in rewards):
        yield "no reward was late"


def _drive(name: str, config: dict[str, Any], block: int) -> list[Outbox]:
    """What agent 0 sends, if it takes so many turns before it is told their rewards; arms and rewards are given."""
    node: Any = graphs.run_anywhere(name, config, schedule={"kind": "rounds", "turns": 1}, network={}).engine.agents[0]
    node = type(node)(node.context)
    assert isinstance(node, Agent)
    domain, rng, found = node.context.domain, np.random.default_rng(1), list[Outbox]()
    start, answered = 0, True  # nobody answers, so that it ends with the first question
    while start < 24 and answered:
        pulls = []
        for turn in range(start, start + block):
            arms = domain or ArmSet(np.random.default_rng(turn).standard_normal((5, node.context.dimension)) / 3)
            node.choose(arms)
            pulls.append(Outstanding(arms, turn % 5, float(rng.standard_normal()), turn, kept_of(node)))
        for pull in pulls:
            same = type(node.context.rng.bit_generator)(pull.choice)  # what it draws depends on the pull alone
            node.context.rng.bit_generator.state = same.state
            outbox = [(to, frozen(message)) for to, message in observe_late(node, pull) if type(to) is not Later]
            found.append(outbox)
            answered = answered and not (outbox and not graphs.on_graph(name))
            if not answered:
                break
        start += block
    if name == "fn_ucb":
        W, b = node._ridge.news(1)  # its alpha looks at arms that were offered since
        found.append([(SERVER, frozen(LinearUpload(W=W, b=b, pulls=0, version=0)))])
    return found


@every("case", [*EVERY_DAY, *(slow((case,)) for case in CASES if case not in FIRST)], str)
def test_every_algorithm_learns_the_same_from_late_rewards(case: tuple[str, dict[str, Any]]) -> None:
    name, config = case
    if runs.algorithm(name).needs_rewards:
        pytest.skip("it is refused")
    prompt, late = (_drive(name, config, block) for block in (1, 4))
    for turn, one, other in zip(count(), prompt, late, strict=False):
        unlike = [difference(a, b) for (_, a), (_, b) in zip(one, other, strict=False)]
        said = f"after pull {turn} it sends {one} in one order, {other} in another: {unlike}"
        assert len(one) == len(other), said
        assert not any(field is not None for field in unlike), said
