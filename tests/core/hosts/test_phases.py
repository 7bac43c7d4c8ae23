"""Phases of batched pulls, and messages between agents, on a protocol without mathematics."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from coband.extensions.conformance.runs import plan_of
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import Address, BatchAgent, Multicast, Outbox
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.trace import Row, keep
from tests.core.toys import ToyWorld


class BatchToyWorld(ToyWorld):
    """Two arms with means 0 and 1."""

    def knowledge(self) -> str:
        return "two arms"

    def pull_batch(self, agent: int, phase: int, counts: IntArray) -> tuple[FloatArray, float]:
        return np.array([0.0, 1.0]), float(counts[0])

    def score(self, answers: Sequence[int | None]) -> dict[str, float]:
        return {"correct": sum(answer == 1 for answer in answers)}

    def score_of(self, agent: int, answer: int | None) -> dict[str, float]:
        return {"correct": answer == 1}


class Greeting(Message):
    kind: ClassVar[str] = "greeting"
    values: FloatArray = payload()


class GreetingConfig(Config):
    """The protocol's parameters."""

    phases: int = 3
    pulls: int = 10


class Greeter(BatchAgent):
    """Pulls, greets everybody else, and goes on when everybody has greeted."""

    heard = 0
    phase = 0

    def request(self) -> IntArray:
        assert self.context.knowledge == "two arms"
        return np.array([1, self.context.config.pulls - 1])

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        self.unshared += int(counts.sum())
        self.phase += 1
        self._look()
        return [(Multicast(excluding=self.context.index), Greeting(values=means, round=self.phase))]

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Greeting)
        assert source != self.context.index
        self.heard += 1
        self._look()
        return []

    def _look(self) -> None:
        self.waiting = self.heard < self.phase * (self.context.agents - 1)
        self.rounds = self.phase - self.waiting
        if self.phase == self.context.config.phases and not self.waiting:
            self.done, self.answer = True, 1


GREETING = Algorithm(
    name="greeting",
    agent=Greeter,
    server=None,
    config=GreetingConfig,
    summary="A toy.",
    reference="none",
    needs=Needs(schedules=("phases",)),
)


def greet(agents: int = 3, world: Any = None, **plan: Any) -> tuple[RunResult, list[Row]]:
    rows: list[Row] = []
    full = {"agents": {"count": agents, **plan.pop("agent", {})}, "schedule": {"kind": "phases"}, "network": {}, **plan}
    engine = Engine(plan_of(full), GREETING, GreetingConfig(), world or BatchToyWorld(), Streams(0), sink=keep(rows))
    return engine.run(), rows


def test_phases_are_counted_in_pulls() -> None:
    result, rows = greet()
    assert (result.turns, result.rounds, result.regret, result.reward) == (90, 3, 9.0, 81.0)
    assert result.turns_series.tolist() == list(range(10, 91, 10))
    assert result.times.tolist() == [10.0] * 3 + [20.0] * 3 + [30.0] * 3
    assert result.totals["correct"] == 3
    assert result.by_agent == [
        {
            "agent": agent,
            "turns": 30,
            "regret": 3.0,
            "rounds": 3,
            "uplink_scalars": 0,
            "downlink_scalars": 0,
            "peer_scalars": 2 * 2 * 3,
            "correct": True,
        }
        for agent in range(3)
    ]
    assert result.stalled == 0
    turns = [row for row in rows if row.event == tr.TURN]
    assert [row.value for row in turns if row.node == 0] == [1, 2, 3]
    assert [row.detail for row in rows if row.event == tr.CHOOSE][:2] == [
        '{"arm": 0, "pulls": 1}',
        '{"arm": 1, "pulls": 9}',
    ]


def test_messages_between_agents_are_counted_per_receiver() -> None:
    result, rows = greet(agents=4)
    assert result.totals["peer_scalars"] == 2 * 4 * 3 * 3
    assert result.totals["scalars_broadcast_once"] == 2 * 4 * 3
    assert result.totals["uplink_scalars"] == result.totals["downlink_scalars"] == 0
    assert {way for _, way in result.ledger.by_kind} == {"peer"}
    assert len([row for row in rows if row.event == tr.DELIVER]) == 4 * 3 * 3


def test_each_pair_has_a_link_of_its_own() -> None:
    """Rules about an agent's up links hold where it sends to others, those about down links where it receives."""
    up = {"links": [{"agents": [0], "direction": "up", "latency": 5.0}]}
    down = {"links": [{"agents": [0], "direction": "down", "latency": 5.0}]}
    for network, late in ((up, {(0, 1), (0, 2)}), (down, {(1, 0), (2, 0)})):
        _, rows = greet(network=network)
        sent = {row.seq: row.time for row in rows if row.event == tr.SEND}
        delays = {(row.peer, row.node): row.time - sent[row.cause] for row in rows if row.event == tr.DELIVER}
        assert {pair for pair, delay in delays.items() if delay == 5.0} == late
        assert {delay for pair, delay in delays.items() if pair not in late} == {0.0}


def test_a_link_between_agents_has_its_own_bandwidth() -> None:
    result, _ = greet(network={"bandwidth": 0.5})
    assert result.simulated_time == 3 * (10 + 4)


@pytest.mark.parametrize("loss", [0.1, 0.6])
def test_agents_hear_each_other_over_lossy_links(loss: float) -> None:
    result, _ = greet(network={"loss": loss, "latency": {"kind": "exponential", "rate": 1.0}})
    assert (result.turns, result.totals["peer_scalars"]) == (90, 2 * 3 * 2 * 3)
    assert result.ledger.repeated_messages > 0


def test_slow_agents_and_pull_time() -> None:
    slow = {"stragglers": {"fraction": 0.34, "slowdown": 4}, "compute": 1.0}
    result, rows = greet(schedule={"kind": "phases", "pull_time": 0.5}, agent=slow)
    assert result.simulated_time == 3 * 4 * (10 * 0.5 + 1)
    assert {row.node for row in rows if row.event == tr.WAIT} | {
        row.node for row in rows if row.event == tr.RESUME
    } != set()


def test_what_starts_a_phase_is_the_end_of_the_wait_or_of_the_outage_before_it() -> None:
    """Agent 1 is down at first, so that the others wait for its greeting; agent 0 when the greeting comes."""
    outages = [{"start": 0, "end": 7, "nodes": [1]}, {"start": 16, "end": 40, "nodes": [0]}]
    _, rows = greet(network={"outages": outages, "retransmission": {"timeout": 1.0}})
    causes = {
        (row.node, row.value): (row.time, tr.EVENTS[rows[row.cause].event], rows[row.cause].node)
        for row in rows
        if row.event == tr.TURN and row.cause != tr.NONE
    }
    assert {turn: causes.get(turn) for turn in ((1, 1), (2, 2), (0, 2))} == {
        (1, 1): (7.0, "up", 1),
        (2, 2): (17.0, "resume", 2),
        (0, 2): (42.0, "resume", 0),  # what agent 2 sends at 27 is sent again after 1, 2, 4 and 8
    }
    assert not {(0, 1), (2, 1)} & causes.keys()  # nothing came before these


@pytest.mark.parametrize(("outage", "downs"), [((0, 40), [0.0, 30.0]), ((15, 40), [15.0])])
def test_nodes_go_down_as_long_as_one_that_is_down_has_a_phase_to_begin(
    outage: tuple[float, float], downs: list[float]
) -> None:
    """One phase for each agent, which ends at 10 unless it is down; what they send then arrives at 18."""
    outages = [{"start": outage[0], "end": outage[1], "nodes": [0]}, {"start": 30, "end": 31, "nodes": [1]}]
    _, rows = greet(
        agents=2,
        schedule={"kind": "phases", "limit": 1},
        network={"transport": "datagram", "latency": 8.0, "outages": outages},
    )
    assert [row.time for row in rows if row.event == tr.DOWN] == downs


def test_limits() -> None:
    assert greet(schedule={"kind": "phases", "limit": 2})[0].turns == 60
    assert greet(schedule={"kind": "phases", "duration": 15.0})[0].turns == 60


def test_batch_agents_need_phases() -> None:
    with pytest.raises(TypeError, match=r"a batch agent needs schedule\.kind phases"):
        greet(schedule={"kind": "rounds", "turns": 3})
    with pytest.raises(TypeError, match="a problem that can be pulled in batches"):
        greet(world=ToyWorld())
