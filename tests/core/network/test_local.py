"""The LOCAL service: closed forms, hop by hop against direct, losses and partitions."""

from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.extensions.conformance.graphs import run as on_graph
from coband.extensions.conformance.runs import run
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.network.direct import FEW
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import Address, Agent, Neighbours, NodeContext, Outbox, UnsupportedScenario
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.trace import Row
from tests.core.toys import run_on_graph, run_on_toys
from tests.every import every
from tests.oracles.local import Flooding, ball, distances


class Said(Message):
    kind: ClassVar[str] = "said"
    trial: int = payload()
    agent: int = payload()
    reward: float = payload()


class TalkerConfig(Config):
    hops: int = 1


class Talker(Agent):
    """Tells every pull to all within its hops and remembers what it heard, and after which own turn."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.heard: list[tuple[int, int, int]] = []  # (own turns taken, trial, agent)
        self.turns = 0

    def choose(self, arms: ArmSet) -> int:
        return 1

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.turns += 1
        self.unshared += 1
        said = Said(trial=self.turns, agent=self.context.index, reward=reward, round=self.turns)
        return [(Neighbours(self.context.config.hops), said)]

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Said)
        assert message.agent == source
        self.heard.append((self.turns, message.trial, message.agent))
        return []


TALK = Algorithm(
    name="talk",
    agent=Talker,
    server=None,
    config=TalkerConfig,
    summary="Talks.",
    reference="none",
    needs=Needs(topologies=("graph",), reliable=False),
)

GRAPHS: list[tuple[dict[str, Any] | str, int]] = [
    ("ring", 9),
    ("line", 7),
    ({"kind": "star"}, 8),
    ("grid", 12),
    ("complete", 6),
    ("ring", 2),
    ("ring", 1),
    ({"kind": "erdos_renyi", "p": 0.3}, 14),
    ({"kind": "barabasi_albert", "m": 2}, 13),
    ({"kind": "watts_strogatz", "k": 4, "p": 0.3}, 12),
    ({"kind": "erdos_renyi", "p": 0.1, "connected": False}, 12),
]


BALL = {"kind": "ball", "dimension": 3, "count": 5}


def talk(
    topology: Any,
    agents: int,
    hops: int,
    turns: int = 5,
    seed: int = 0,
    schedule: dict[str, Any] | None = None,
    agent: dict[str, Any] | None = None,
    **network: Any,
) -> tuple[RunResult, list[Row], Engine]:
    return run_on_graph(
        TALK,
        TalkerConfig(hops=hops),
        topology,
        agents,
        schedule or {"kind": "rounds", "turns": turns},
        seed,
        agent,
        network,
    )


def heard(engine: Engine) -> list[list[tuple[int, int, int]]]:
    return [sorted(agent.heard) for agent in engine.agents]  # type: ignore[attr-defined]


def adjacency(engine: Engine) -> tuple[tuple[int, ...], ...]:
    assert engine.graph is not None
    return engine.graph.adjacency


@every("mode", ["direct", "hop_by_hop"])
@every("hops", [1, 2, 3, 5, 10**7])
@every(("topology", "agents"), GRAPHS)
def test_counts_have_their_closed_form(topology: Any, agents: int, hops: int, mode: str) -> None:
    turns = 4
    result, _, engine = talk(topology, agents, hops, turns, local={"mode": mode})
    rows = adjacency(engine)
    deliveries, put = 0, list(map(len, rows))
    for v in range(agents):
        inside = distances(rows, v)
        deliveries += len(ball(rows, v, hops)) - 1
        for u in inside:
            put[u] += len(rows[u]) - 1 if 1 <= inside[u] <= hops - 1 else 0
    transmissions = sum(put)
    assert [agent["peer_scalars"] for agent in result.by_agent] == [3 * turns * copies for copies in put]
    assert result.totals["deliveries"] == turns * deliveries
    assert result.totals["transmissions"] == turns * transmissions == result.totals["messages"]
    assert result.totals["peer_scalars"] == result.totals["scalars"] == 3 * turns * transmissions
    assert result.totals["uplink_scalars"] == result.totals["downlink_scalars"] == 0


@every("mode", ["direct", "hop_by_hop"])
@every(("topology", "agents"), GRAPHS)
def test_a_message_from_distance_h_is_there_before_trial_t_plus_h_and_not_before(
    topology: Any, agents: int, mode: str
) -> None:
    turns, hops = 6, 4
    _, _, engine = talk(topology, agents, hops, turns, local={"mode": mode})
    rows = adjacency(engine)
    for v, list_of_heard in enumerate(heard(engine)):
        far = distances(rows, v)
        expected = [
            (min(turns, trial + far[u] - 1), trial, u)
            for u in ball(rows, v, hops) - {v}
            for trial in range(1, turns + 1)
        ]
        assert list_of_heard == sorted(expected)


AWAY: dict[str, dict[str, Any]] = {
    "availability": {"agent": {"availability": {"kind": "markov_on_off", "mean_up": 5.0, "mean_down": 1.0}}},
    "energy": {"agent": {"energy": {"capacity": 10.0}}},
    "population": {"agent": {"population": {"kind": "preset", "name": "phones"}}},
    "silent": {"adversaries": [{"agents": {"fraction": 0.5}, "behaviour": {"kind": "silent"}}]},
}


@every("parts", list(AWAY.values()), list(AWAY))
def test_messages_are_not_handed_over_at_once_where_they_may_not_arrive(parts: dict[str, Any]) -> None:
    network = {"topology": {"kind": "ring"}}
    with pytest.raises(UnsupportedScenario, match="local.mode: direct needs links without latency"):
        run("eager_kernel_ucb", {}, network={**network, "local": {"mode": "direct"}}, **parts)
    assert run("eager_kernel_ucb", {}, network=network, **parts).result.turns > 0


@settings(max_examples=60, deadline=None)
@given(
    agents=st.integers(1, 12),
    p=st.floats(0.05, 1.0),
    hops=st.integers(1, 5),
    seed=st.integers(0, 10_000),
    schedule=st.sampled_from(
        [
            {"kind": "rounds", "turns": 4},
            {"kind": "one_at_a_time", "turns": 15},
            {"kind": "rounds", "turns": 3, "interval": 0.5},
            {"kind": "renewal", "turns": 3, "think": {"kind": "exponential", "rate": 1.0}},
        ]
    ),
)
def test_hop_by_hop_and_direct_are_one_run(
    agents: int, p: float, hops: int, seed: int, schedule: dict[str, Any]
) -> None:
    topology = {"kind": "erdos_renyi", "p": p, "connected": False}
    direct, direct_rows, one = talk(topology, agents, hops, seed=seed, schedule=schedule, local={"mode": "direct"})
    walked, walked_rows, other = talk(
        topology, agents, hops, seed=seed, schedule=schedule, local={"mode": "hop_by_hop"}
    )
    assert heard(one) == heard(other)
    assert direct.totals == walked.totals
    assert direct.scalars_series.tolist() == walked.scalars_series.tolist()
    assert direct.audit.copies == walked.audit.copies
    for event in (tr.SEND, tr.DELIVER, tr.DUPLICATE):
        assert copies_by_time(direct_rows, event) == copies_by_time(walked_rows, event)
    if schedule["kind"] == "rounds":
        flooding = Flooding(adjacency(one), hops)
        for trial in range(1, schedule["turns"] + hops + 1):
            flooding.trial([(trial, v) for v in range(agents)] if trial <= schedule["turns"] else [])
        assert (flooding.deliveries, flooding.transmissions) == (
            direct.totals["deliveries"],
            direct.totals["transmissions"],
        )


def copies_by_time(rows: list[Row], event: int) -> dict[tuple[float, int], float]:
    """(time, hop) -> copies; a row about several nodes counts by its value."""
    counts: dict[tuple[float, int], float] = Counter()
    for row in rows:
        if row.event == event:
            counts[row.time, row.hop] += row.value if event == tr.SEND or row.node == tr.EVERYONE else 1
    return counts


class Repeating(Talker):
    """Says everything twice."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        return 2 * super().observe(arms, arm, reward)


@pytest.mark.parametrize("mode", ["direct", "hop_by_hop"])
def test_all_that_agents_say_at_one_moment_is_heard(mode: str) -> None:
    made = {"agents": {"count": 4}, "network": {"topology": "ring", "local": {"mode": mode}}}
    schedule = {"kind": "rounds", "turns": 2}
    talk_twice = replace(TALK, agent=Repeating)
    _, _, engine = run_on_toys(talk_twice, TalkerConfig(hops=1), {**made, "schedule": schedule}, 0)
    for agent, found in enumerate(heard(engine)):
        said = Counter((trial, origin) for _, trial, origin in found)
        near = ((agent - 1) % 4, (agent + 1) % 4)
        assert said == {(trial, origin): 2 for trial in (1, 2) for origin in near}


@pytest.mark.parametrize("agents", [FEW - 1, FEW])
@pytest.mark.parametrize("event", [tr.SEND, tr.DELIVER])
def test_events_of_copies_say_of_which_round_they_are(agents: int, event: int) -> None:
    """One by one and recorded together: a message of round t makes its first hop in trial t."""
    found = []
    for mode in ("direct", "hop_by_hop"):
        _, rows, _ = talk("ring", agents, 2, 3, local={"mode": mode})
        copies = [row for row in rows if row.event == event]
        assert all(row.round == row.time - (row.hop - 1) for row in copies)
        found.append({(row.time, row.hop, row.round) for row in copies})
    assert found[0] == found[1]


class Counting(Talker):
    """Knows how many pulls it has heard of."""

    @property
    def pulls_in_model(self) -> int:
        return self.turns + len(self.heard)


@pytest.mark.parametrize("trial", [0.5, 1.0, 4.0])
def test_the_age_of_what_agents_know_counts_all_hops_of_its_way(trial: float) -> None:
    """Messages that are handed over at once are as old as those that were passed on from agent to agent."""
    plan = {"agents": {"count": 4}, "schedule": {"kind": "one_at_a_time", "turns": 30}}
    found = []
    for mode in ("direct", "hop_by_hop"):
        network = {"topology": "line", "local": {"mode": mode, "trial": trial}}
        counting = replace(TALK, agent=Counting)
        result, _, _ = run_on_toys(counting, TalkerConfig(hops=3), {**plan, "network": network}, 0)
        found.append(result.ages)
    assert found[0].pulls.tolist() == found[1].pulls.tolist()
    np.testing.assert_array_equal(found[0].times, found[1].times)


@settings(max_examples=40, deadline=None)
@given(
    agents=st.integers(2, 10),
    hops=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    loss=st.sampled_from([0.1, 0.5, 0.7]),
    transport=st.sampled_from(["datagram", "reliable"]),
    latency=st.sampled_from([0.0, 0.7, {"kind": "exponential", "rate": 0.5}]),
)
def test_under_loss_nothing_is_doubled_and_nothing_outlives_its_hops(
    agents: int, hops: int, seed: int, loss: float, transport: str, latency: Any
) -> None:
    topology = {"kind": "erdos_renyi", "p": 0.5, "connected": False}
    more = {"retransmission": {"timeout": 1.0}} if latency else {}
    result, rows, engine = talk(
        topology, agents, hops, 4, seed, loss=loss, transport=transport, latency=latency, **more
    )
    ideal, _, _ = talk(topology, agents, hops, 4, seed)
    near = adjacency(engine)
    for v, list_of_heard in enumerate(heard(engine)):
        said = [(trial, agent) for _, trial, agent in list_of_heard]
        assert len(set(said)) == len(said)
        assert {agent for _, agent in said} <= ball(near, v, hops) - {v}
    assert result.totals["deliveries"] <= ideal.totals["deliveries"]
    if transport == "reliable" and hops == 1:  # over several hops a detour that is quicker can use up the hops
        assert result.totals["deliveries"] == ideal.totals["deliveries"]
    assert max((row.hop for row in rows if row.event == tr.DELIVER), default=0) <= hops
    delivered = sum(row.event == tr.DELIVER for row in rows)
    assert delivered == result.totals["deliveries"]
    copies = result.audit.copies.get("said")
    if copies is not None:
        assert copies.sent == copies.delivered + copies.dropped + copies.duplicates


def test_latency_and_bandwidth_delay_each_hop() -> None:
    """A line, 3 scalars at 6 per unit: half a unit on each link, 0.25 of latency; hop 2 starts a trial later."""
    _, rows, _ = talk("line", 3, 2, 1, latency=0.25, bandwidth=6.0)
    times = sorted((row.time, row.node, row.hop) for row in rows if row.event == tr.DELIVER)
    first, second = 1.0 + 0.75, 1.0 + 0.75 + 1.0 + 0.75
    assert times == [(first, 0, 1), (first, 1, 1), (first, 1, 1), (first, 2, 1), (second, 0, 2), (second, 2, 2)]


@pytest.mark.parametrize("latency", [0.0, 0.25])
def test_a_run_ends_when_the_last_message_has_reached_its_agent(latency: float) -> None:
    """The copies of the last turn walk two links, the second a trial later."""
    result, rows, _ = talk("line", 3, 2, 2, latency=latency, local={"mode": "hop_by_hop"})
    assert result.simulated_time == 2.0 + latency + 1.0 + latency
    assert result.simulated_time == max(row.time for row in rows if row.event == tr.DELIVER)


def test_a_link_rule_slows_the_links_of_one_agent() -> None:
    _, rows, _ = talk("line", 3, 1, 1, links=[{"agents": [0], "direction": "up", "latency": 5.0}])
    times = {(row.peer, row.node): row.time for row in rows if row.event == tr.DELIVER}
    assert times == {(0, 1): 6.0, (1, 0): 1.0, (1, 2): 1.0, (2, 1): 1.0}


def test_a_partition_holds_messages_back_or_loses_them() -> None:
    partition = [{"start": 0.0, "end": 2.5, "groups": [[0, 1]]}]
    lost, rows, engine = talk("line", 4, 1, 4, partitions=partition, transport="datagram")
    assert {(row.peer, row.node) for row in rows if row.event == tr.DELIVER and row.time < 2.5} == {
        (0, 1),
        (1, 0),
        (2, 3),
        (3, 2),
    }
    assert lost.totals["deliveries"] == 4 * 6 - 2 * 2
    assert {trial for _, trial, agent in heard(engine)[1] if agent == 2} == {3, 4}
    late, _, engine = talk("line", 4, 1, 4, partitions=partition)
    assert late.totals["deliveries"] == 4 * 6
    assert {trial for _, trial, agent in heard(engine)[1] if agent == 2} == {1, 2, 3, 4}


def test_a_one_way_partition_cuts_one_direction() -> None:
    partition = [{"start": 0.0, "end": 99.0, "groups": [[0]], "one_way": True}]
    _, rows, _ = talk("line", 3, 1, 2, partitions=partition, transport="datagram")
    pairs = Counter((row.peer, row.node) for row in rows if row.event == tr.DELIVER)
    assert pairs == {(1, 0): 2, (1, 2): 2, (2, 1): 2}


def test_busy_agents_hear_later_and_everything() -> None:
    agent = {"handling": 0.3, "compute": 0.2}
    for mode in ("direct", "hop_by_hop"):
        result, _, engine = talk("complete", 4, 2, 5, agent=agent, local={"mode": mode})
        assert [len(items) for items in heard(engine)] == [15] * 4
        assert result.stalled == 0
        assert result.turns == 20


def test_a_replication_draws_its_own_graph_and_a_seed_fixes_it() -> None:
    spec = {"kind": "erdos_renyi", "p": 0.5}
    graphs = [adjacency(talk(spec, 12, 1, 1, seed)[2]) for seed in (0, 0, 1)]
    assert graphs[0] == graphs[1] != graphs[2]
    fixed = [adjacency(talk({**spec, "seed": 3}, 12, 1, 1, seed)[2]) for seed in (0, 1)]
    assert fixed[0] == fixed[1]


@every("mode", ["auto", "hop_by_hop"])
def test_the_unit_of_time_changes_nothing(mode: str) -> None:
    """Floods pass a message on after the turns of a trial, also where sums of the interval are rounded."""
    problem = {"kind": "network", "kernel": {"kind": "gaussian", "gamma": 1.0}, "arms": BALL}
    found = set()
    for interval in (1.0, 0.1, 0.3, 0.7, 10.0):
        schedule = {"kind": "rounds", "turns": 15, "interval": interval}
        parts: dict[str, Any] = {"network": {"local": {"mode": mode}}, "schedule": schedule, "checks": "cheap"}
        made = on_graph("coop_kernel_ucb", {"hops": 3}, problem, topology="line", agents=5, seed=3, **parts)
        found.add(tuple(pull[:3] for pull in made.pulls))
    assert len(found) == 1
