"""Waits, attempts and patience, and timers that a node asks of its host."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.message import Message
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.node import SERVER, Address, Later, Outbox, OutOfPatience, Timer
from coband.simulator.core.recovery import RetryPolicy
from tests.core import toys
from tests.core.toys import TOY, Report, ToyAgent, ToyConfig

DEAD: dict[str, Any] = {
    "latency": 0.5,
    "retransmission": {"timeout": 1.0, "max_attempts": 1},
    "partitions": [{"start": 0.5, "end": 1e9, "groups": [[0]]}],
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Bell(Timer):
    kind: ClassVar[str] = "bell"


class Stubborn(ToyAgent):
    """Sends again what was given up, and waits for what is missed."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.log: list[str] = []

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        self.log.append("undelivered")
        return self.again(message, recipient)

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        self.log.append("unreachable")
        return [(Later(2.0), Bell(round=7))]

    def on_timer(self, timer: Message) -> Outbox | None:
        if isinstance(timer, Bell):
            self.log.append("bell")
            return None if len(self.log) % 2 else []
        return super().on_timer(timer)

    def missed(self, source: Address) -> Outbox | None:
        self.log.append(f"missed {source}")
        return self.be_patient(source, round=3)

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        self.log.append(f"goes on {source} {timer.round}")
        return []


STUBBORN = TOY.__class__(**{**vars(TOY), "agent": Stubborn})


class Reminded(ToyAgent):
    """Asks for a bell one time unit after each turn."""

    def observe(self, *turn: Any) -> Outbox:
        return [*super().observe(*turn), (Later(1.0), Bell(round=1))]

    def on_timer(self, timer: Message) -> Outbox | None:
        return []


def test_a_timer_that_expires_while_its_node_is_down_rings_when_it_is_up() -> None:
    plan = {
        "agents": {"count": 1},
        "schedule": {"kind": "rounds", "turns": 1},
        "network": {"outages": [{"start": 1.5, "end": 4.0, "nodes": [0]}]},
    }
    _, rows, _ = toys.run_on_toys(TOY.__class__(**{**vars(TOY), "agent": Reminded}), ToyConfig(), plan, 0)
    assert [row.time for row in rows if row.event == tr.TIMER] == [4.0]


def run(network: dict[str, Any], agents: int = 2, every: int = 3) -> tuple[Any, list[tr.Row], Any]:
    plan = {"agents": {"count": agents}, "schedule": {"kind": "rounds", "turns": 3}, "network": network}
    return toys.run_on_toys(STUBBORN, ToyConfig(every=every), {**plan, "checks": "full"}, 0)


def test_waits_double_six_times() -> None:
    policy = RetryPolicy(timeout=0.5)
    assert [policy.delay(tries) for tries in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]


def test_the_policy_follows_from_the_network() -> None:
    given = NetworkConfig.model_validate(
        {"retransmission": {"timeout": 2.0, "max_attempts": 3}, "recovery": {"timeout": 1.0, "attempts": 5}}
    ).retry_policy
    assert given == RetryPolicy(timeout=1.0, backoff=2.0, attempts=5, patience=1.0 + 64.0 + 2.0 + 4.0 + 8.0)
    assert NetworkConfig.model_validate({"latency": 0.25, "recovery": {"patience": 9.0}}).retry_policy == RetryPolicy(
        timeout=1.0, patience=9.0
    )
    config = NetworkConfig.model_validate({"retransmission": {"timeout": 1.0, "max_timeout": 5.0}}).retransmission
    assert config.until_given_up(1.0) == 1 + 2 + 4 + 997 * 5.0


@pytest.mark.parametrize(
    ("network", "first"),
    [
        ({}, 1.0),
        ({"latency": 3.0}, 12.0),
        ({"latency": 3.0, "links": [{"agents": [0], "latency": 5.0}]}, 20.0),
        ({"latency": {"kind": "matrix", "values": [[9.0, 3.0], [5.0, 9.0]]}}, 20.0),
        ({"latency": {"kind": "matrix", "values": [[0.0]]}}, 1.0),
        ({"latency": {"kind": "matrix", "values": [[0, 3], [5, 0]]}, "retransmission": {"timeout": 2.0}}, 2.0),
        ({"latency": {"kind": "pareto", "minimum": 1.0, "shape": 0.5}}, 1.0),
    ],
)
def test_the_first_wait_is_four_times_the_delay_of_the_slowest_link(network: dict[str, Any], first: float) -> None:
    config = NetworkConfig.model_validate(network)
    policy = config.retry_policy
    assert policy.timeout == first
    assert policy.patience == first * (1.0 + 64.0) + config.retransmission.until_given_up(first)


def test_only_the_latest_silence_of_a_node_makes_it_go_on() -> None:
    _, _, engine = run({})
    agent = engine.agents[0]

    def rings(number: int) -> bool:
        return agent.on_timer(OutOfPatience(about=SERVER, number=number)) is not None

    assert not rings(1)  # nothing was missed so far
    for silence in (1, 2):
        agent.missed(SERVER)
        assert [rings(number) for number in (1, 2, 3)] == [silence == number for number in (1, 2, 3)]
    agent.heard_from(SERVER)
    assert not rings(2)


def test_attempts_come_later_and_later_until_they_are_used_up() -> None:
    _, rows, engine = run({**DEAD, "recovery": {"attempts": 3}})
    agent = engine.agents[0]
    assert agent.log.count("undelivered") == 4
    assert agent.log.count("unreachable") == 1
    lost = [row.time for row in rows if row.event == tr.EXPIRE and row.node == 0]
    waits = [later - earlier for earlier, later in pairwise(lost)]
    assert waits == [1.0 + 1.0, 2.0 + 1.0, 4.0 + 1.0]
    assert engine.agents[0].unshared == 3
    assert engine.server.applied == 3


def test_timers_are_events_with_causes_unless_they_do_not_matter() -> None:
    result, rows, engine = run({**DEAD, "recovery": {"attempts": 1, "patience": 3.0}})
    names = list(engine.trace._names)
    timers = [row for row in rows if row.event == tr.TIMER and row.node == 0]
    kinds = [names[row.kind] for row in timers]
    assert kinds.count("resend") == 1
    by_kind = dict(zip(kinds, timers, strict=True))
    assert rows[by_kind["resend"].cause].event == tr.EXPIRE
    assert (by_kind["resend"].peer, by_kind["patience"].peer) == (SERVER, SERVER)
    assert names[rows[by_kind["patience"].cause].kind] == "silence"
    assert rows[rows[by_kind["patience"].cause].cause].event == tr.EXPIRE
    assert by_kind["patience"].time == by_kind["silence"].time + 3.0
    assert engine.agents[0].log[-1] in ("bell", f"goes on {SERVER} 3")
    assert kinds.count("bell") == 1 - len(engine.agents[0].log[: engine.agents[0].log.index("bell") + 1]) % 2
    assert result.stalled == 0


def test_a_later_silence_begins_the_wait_anew() -> None:
    _, rows, engine = run({**DEAD, "recovery": {"attempts": 0, "patience": 1.5}}, agents=3, every=1)
    agent = engine.agents[0]
    missed = agent.log.count(f"missed {SERVER}")
    assert missed > 1
    assert 1 <= agent.log.count(f"goes on {SERVER} 3") < missed
    names = list(engine.trace._names)
    went_on = [row.time for row in rows if row.event == tr.TIMER and row.node == 0 and names[row.kind] == "patience"]
    silences = [row.time for row in rows if row.event == tr.TIMER and row.node == 0 and names[row.kind] == "silence"]
    for time in went_on:
        assert time - max(silence for silence in silences if silence < time) == pytest.approx(1.5)


def test_a_report_is_what_is_sent_again() -> None:
    _, rows, engine = run({**DEAD, "partitions": [{"start": 0.5, "end": 6.0, "groups": [[0]]}]})
    assert engine.server.applied == 6
    assert engine.agents[0].unshared == 0
    assert Report.kind in {list(engine.trace._names)[row.kind] for row in rows if row.event == tr.SEND}


def test_everybody_notices_a_node_that_is_gone_for_good(tmp_path: Any) -> None:
    file = tmp_path / "up.csv"
    file.write_text("agent,up,down\n0,0,1.5\n")
    plan = {
        "agents": {"count": 3, "availability": {"kind": "trace", "file": str(file)}},
        "schedule": {"kind": "rounds", "turns": 3},
        "network": {"latency": 0.1, "recovery": {"timeout": 0.25, "patience": 1.0}},
    }
    _, rows, engine = toys.run_on_toys(STUBBORN, ToyConfig(), plan, 0)
    gone = next(row for row in rows if row.event == tr.DOWN)
    silences = [row for row in rows if row.event == tr.TIMER and row.cause == gone.seq]
    assert {(row.node, row.peer, row.time) for row in silences} == {(1, 0, 1.75), (2, 0, 1.75)}
    assert [agent.log.count("goes on 0 3") for agent in engine.agents] == [0, 1, 1]
