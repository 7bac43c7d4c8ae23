"""Messages to one neighbour of a graph, and to a drawn few."""

from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.engine import RunResult
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import ALL_AGENTS, NEIGHBOURS, SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.trace import Row
from tests.core.toys import run_on_graph
from tests.every import every

MODES = ["direct", "hop_by_hop"]


class Whisper(Message):
    kind: ClassVar[str] = "whisper"
    turn: int = payload()
    agent: int = payload()


class GossipConfig(Config):
    fanout: int = 1
    aloud: bool = False
    to: int | None = None


class Gossip(Agent):
    """Tells every pull to neighbours that its own coin draws; with ``aloud`` to all, beside; with ``to`` to one."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.graph is not None
        self.near = context.graph.adjacency[context.index]
        self.turns = 0
        self.told: list[tuple[int, int]] = []  # (turn, neighbour)
        self.heard: list[tuple[int, int]] = []  # (turn, origin)
        self.given_up: list[tuple[int, int]] = []

    def choose(self, arms: ArmSet) -> int:
        return 1

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.turns += 1
        self.unshared += 1
        config, message = self.context.config, Whisper(turn=self.turns, agent=self.context.index)
        if config.to is not None:
            return [(config.to, message)]
        drawn = self.context.rng.permutation(self.near)[: config.fanout].tolist()
        self.told += [(self.turns, neighbour) for neighbour in drawn]
        aloud = [(NEIGHBOURS, Whisper(turn=-self.turns, agent=self.context.index))] if config.aloud else []
        return [*((neighbour, message) for neighbour in drawn), *aloud]

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Whisper)
        assert message.agent == source
        self.heard.append((message.turn, source))
        return []

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        assert isinstance(message, Whisper)
        self.given_up.append((message.turn, recipient))
        return []


GOSSIP = Algorithm(
    name="gossip",
    agent=Gossip,
    server=None,
    config=GossipConfig,
    summary="Whispers.",
    reference="none",
    needs=Needs(topologies=("graph",), reliable=False),
)


def gossip(
    topology: Any = "ring",
    agents: int = 6,
    turns: int = 5,
    seed: int = 0,
    schedule: dict[str, Any] | None = None,
    agent: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    **network: Any,
) -> tuple[RunResult, list[Row], Any]:
    parameters = GossipConfig(**(config or {}))
    return run_on_graph(
        GOSSIP, parameters, topology, agents, schedule or {"kind": "rounds", "turns": turns}, seed, agent, network
    )


def heard(engine: Any) -> list[list[tuple[int, int]]]:
    return [sorted(agent.heard) for agent in engine.agents]


def told(engine: Any) -> list[list[tuple[int, int]]]:
    """What each agent should hear."""
    found: list[list[tuple[int, int]]] = [[] for _ in engine.agents]
    for origin, agent in enumerate(engine.agents):
        for turn, neighbour in agent.told:
            found[neighbour].append((turn, origin))
    return [sorted(items) for items in found]


@every("mode", MODES)
@every("fanout", [1, 2, 5])
@every("topology", ["ring", "line", "complete", {"kind": "star"}, {"kind": "erdos_renyi", "p": 0.5}])
def test_each_message_makes_one_hop_to_one_agent(topology: Any, fanout: int, mode: str) -> None:
    turns = 4
    result, rows, engine = gossip(topology, 7, turns, config={"fanout": fanout}, local={"mode": mode})
    copies = turns * sum(min(fanout, degree) for degree in engine.graph.degrees)
    totals = result.totals
    assert totals["transmissions"] == totals["deliveries"] == totals["messages"] == copies
    assert totals["peer_scalars"] == totals["scalars"] == totals["scalars_broadcast_once"] == 2 * copies
    assert heard(engine) == told(engine)
    assert sum(map(len, told(engine))) == copies
    sends = {row.seq: row for row in rows if row.event == tr.SEND}
    assert len(sends) == copies
    for row in rows:
        if row.event == tr.DELIVER:
            send = sends[row.cause]
            assert (row.node, row.peer, row.hop, row.time) == (send.peer, send.node, 1, send.time)
            assert (send.value, send.hop, send.scalars) == (1, 1, 2)


@pytest.mark.parametrize("aloud", [False, True])
@pytest.mark.parametrize("kind", ["rounds", "one_at_a_time"])
def test_both_modes_are_one_run(kind: str, aloud: bool) -> None:
    for seed in range(5):
        found = [
            gossip(
                {"kind": "erdos_renyi", "p": 0.5, "connected": False},
                8,
                seed=seed,
                schedule={"kind": kind, "turns": 6},
                config={"fanout": 2, "aloud": aloud},
                local={"mode": mode},
            )
            for mode in MODES
        ]
        (direct, direct_rows, one), (walked, walked_rows, other) = found
        assert direct.totals == walked.totals
        assert heard(one) == heard(other)
        assert direct.audit.copies == walked.audit.copies
        if not aloud:
            assert direct_rows == walked_rows
            assert direct.fingerprint == walked.fingerprint


@settings(max_examples=50, deadline=None)
@given(
    agents=st.integers(2, 8),
    fanout=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    aloud=st.booleans(),
    loss=st.sampled_from([0.0, 0.3, 0.6]),
    duplicate=st.sampled_from([0.0, 0.4]),
    transport=st.sampled_from(["datagram", "reliable"]),
    latency=st.sampled_from([0.3, {"kind": "exponential", "rate": 0.5}]),
    churn=st.booleans(),
)
def test_faults_double_nothing_and_lose_only_datagrams(
    agents: int,
    fanout: int,
    seed: int,
    aloud: bool,
    loss: float,
    duplicate: float,
    transport: str,
    latency: Any,
    churn: bool,
) -> None:
    agent = {"availability": {"kind": "markov_on_off", "mean_up": 3.0, "mean_down": 2.0}} if churn else {}
    result, rows, engine = gossip(
        {"kind": "erdos_renyi", "p": 0.6, "connected": False},
        agents,
        4,
        seed,
        agent=agent,
        config={"fanout": fanout, "aloud": aloud},
        loss=loss,
        duplicate=duplicate,
        transport=transport,
        latency=latency,
        partitions=[{"start": 1.5, "end": 2.5, "groups": [[0]]}],
        retransmission={"timeout": 1.0},
    )
    whispers = [[item for item in items if item[0] > 0] for items in heard(engine)]
    for items, expected in zip(whispers, told(engine), strict=True):
        assert not Counter(items) - Counter(expected)
    if transport == "reliable":
        assert whispers == told(engine)
        assert result.totals["expired"] == 0
    assert result.totals["deliveries"] == sum(map(len, heard(engine))) == sum(row.event == tr.DELIVER for row in rows)
    copies = result.audit.copies.get("whisper")
    if copies is not None:
        assert copies.sent + copies.duplicated == copies.delivered + copies.dropped + copies.duplicates
        assert result.totals["transmissions"] <= copies.sent


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("topology", "agents", "to", "sentence"),
    [
        ("ring", 6, 3, "agent 0 cannot write to agent 3: its neighbours are 1, 5"),
        ("ring", 6, 0, "agent 0 cannot write to agent 0: its neighbours are 1, 5"),
        ("ring", 6, 17, "agent 0 cannot write to agent 17: its neighbours are 1, 5"),
        ("ring", 6, SERVER, "agent 0 cannot write to the server: its neighbours are 1, 5"),
        ("ring", 1, 1, "agent 0 cannot write to agent 1: it has no neighbours"),
    ],
)
def test_who_is_no_neighbour_cannot_be_written_to(
    topology: str, agents: int, to: int, sentence: str, mode: str
) -> None:
    with pytest.raises(ValueError, match=f"{sentence}. In a graph agents write to NEIGHBOURS or to one of them"):
        gossip(topology, agents, config={"to": to}, local={"mode": mode})


def test_nobody_writes_to_all_agents_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gossip, "observe", lambda self, arms, arm, reward: [(ALL_AGENTS, Whisper(turn=1, agent=0))])
    with pytest.raises(ValueError, match="agent 0 cannot write to all agents at once: its neighbours"):
        gossip()


@pytest.mark.parametrize("transport", ["reliable", "datagram"])
def test_a_neighbour_that_is_down_hears_later_or_never(transport: str) -> None:
    outage = [{"start": 0.5, "end": 3.5, "nodes": [1]}]
    result, rows, engine = gossip("line", 2, 5, outages=outage, transport=transport, retransmission={"timeout": 0.5})
    expected = told(engine)[1]
    assert [turn for turn, _ in expected] == [1, 2, 3, 4, 5]
    assert heard(engine)[1] == (expected if transport == "reliable" else [(4, 0), (5, 0)])
    late = [row.time for row in rows if row.event == tr.DELIVER and row.node == 1]
    assert min(late) >= 3.5
    assert (result.totals["dropped"] > 0, result.totals["expired"]) == (True, 0)


def test_who_sent_what_was_given_up_is_told() -> None:
    cut = [{"start": 0.0, "end": 99.0, "groups": [[0]]}]
    more: dict[str, Any] = {"partitions": cut, "retransmission": {"timeout": 0.5, "max_attempts": 3}}
    result, _, engine = gossip("line", 3, 4, config={"fanout": 2, "aloud": True}, **more)
    assert [agent.given_up for agent in engine.agents] == [
        [(turn, 1) for turn in range(1, 5)],
        [(turn, 0) for turn in range(1, 5)],
        [],
    ]
    assert result.totals["expired"] == 4 * 2 * 2  # the copies of floods are nobody's own
    assert result.audit.copies["whisper"].delivered == 4 * 2 * 2


def test_a_link_that_doubles_datagrams_is_not_heard_twice() -> None:
    result, rows, engine = gossip("line", 2, 6, duplicate=0.99, transport="datagram", latency=0.1)
    assert heard(engine) == told(engine)
    seen = [row for row in rows if row.event == tr.DUPLICATE and engine.trace.names["seen"] == row.reason]
    assert len(seen) == result.audit.copies["whisper"].duplicates > 0


def test_agents_draw_from_their_own_coins() -> None:
    """Another agent more, elsewhere in the graph, moves nobody else's draws."""
    few, many = (gossip("line", agents, 8)[2] for agents in (5, 6))
    assert [agent.told for agent in few.agents[:4]] == [agent.told for agent in many.agents[:4]]
