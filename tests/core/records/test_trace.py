"""The trace: numbers, causes, levels, fingerprint; and what stops a run."""

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.making.parts import _plain
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.packet import Packet
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation, check_pulls
from tests.core.hosts.test_faults import CHURN, EVERYTHING
from tests.core.network.test_network_runs import plan
from tests.core.toys import run

PLAN: dict[str, Any] = {
    "agents": {"count": 3},
    "schedule": {"kind": "one_at_a_time", "turns": 40},
    "network": {"latency": {"kind": "exponential", "rate": 1.0}, "loss": 0.2},
}


def test_events_are_numbered_and_caused_by_earlier_ones() -> None:
    _, rows, engine = run(PLAN)
    assert [row.seq for row in rows] == list(range(engine.trace.events))
    assert all(row.cause < row.seq for row in rows)
    assert all(earlier[1] <= later[1] for earlier, later in itertools.pairwise(rows))
    for row in rows:
        if row.event == tr.DELIVER:
            assert rows[row.cause].event == tr.SEND
            assert rows[row.cause].message == row.message


@pytest.mark.parametrize("batch", [5, 4096])
def test_blocks_are_the_same_events_as_one_by_one(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tr, "BATCH", batch)
    kept: list[list[tr.Row]] = [[], []]
    by_row, by_block = (tr.Trace(tr.keep(rows)) for rows in kept)
    for time in (1.0, 2.5):
        for trace in (by_row, by_block):
            trace.record(time, tr.UP, -1)
        for agent in range(3):
            seq = by_row.record(time, tr.TURN, agent, value=7)
            by_row.record(time, tr.REWARD, agent, cause=seq, value=0.25)
        block = by_block.block(time, (3, 2))
        block["event"] = tr.TURN, tr.REWARD
        block["node"] = [[0], [1], [2]]
        block["value"] = 7, 0.25
        block["cause"][:, 1] = block["seq"][:, 0]
        by_block.record_block(block)
    assert by_block.chain(13) == by_row.chain(13)
    assert len(by_block.chain(13)) == 2
    for trace in (by_row, by_block):
        trace.record(3.0, tr.DOWN, 2)
    assert by_block.fingerprint() == by_row.fingerprint()
    assert kept[0] == kept[1]
    assert tr.fingerprint_of(kept[1], []) == by_block.fingerprint()
    assert by_block.events == len(kept[1]) == 15


def test_blocks_are_passed_on_once_they_fill_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tr, "BATCH", 5)
    batches: list[int] = []
    trace = tr.Trace(lambda rows, names: batches.append(len(rows)))
    passed_on = []
    for size in (3, 2, 4, 2, 7):
        trace.record_block(trace.block(1.0, (size,)))
        passed_on.append(list(batches))
    assert passed_on == [[], [5], [5], [5, 6], [5, 6, 7]]


def test_single_events_are_passed_on_once_they_fill_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tr, "BATCH", 3)
    batches: list[int] = []
    trace = tr.Trace(lambda rows, names: batches.append(len(rows)))
    for time in range(7):
        trace.record(float(time), tr.UP, 0)
    assert batches == [3, 3]


def test_every_message_goes_back_to_a_pull() -> None:
    _, rows, engine = run(PLAN)
    last = max(row.seq for row in rows if row.event == tr.DELIVER and row.node >= 0)
    chain = [tr.EVENTS[row.event] for row in engine.trace.chain(last)]
    assert chain == ["deliver", "send", "deliver", "send", "reward", "choose", "turn"]


@pytest.mark.parametrize("level", ["off", "protocol", "full"])
def test_the_fingerprint_is_the_same_at_every_level(level: str) -> None:
    result, rows, _ = run({**PLAN, "trace": level})
    reference, _, _ = run(PLAN)
    assert result.fingerprint == reference.fingerprint
    assert (not rows) == (level == "off")
    assert any(row.detail for row in rows if row.event == tr.CHOOSE) == (level == "full")


def test_full_traces_hold_payloads_and_arms() -> None:
    _, rows, _ = run({**PLAN, "trace": "full"})
    sends = [json.loads(row.detail) for row in rows if row.event == tr.SEND and row.detail]
    assert {"values": [1.0, 1.0, 1.0]} in sends
    choices = [json.loads(row.detail) for row in rows if row.event == tr.CHOOSE and row.detail]
    assert choices[0] == {"arm": 1, "arms": [[1.0, 0.0], [0.0, 1.0]]}


def test_complex_payloads_are_kept_as_two_parts() -> None:
    found = json.dumps(_plain((np.array([1 + 2j, 3]), np.complex64(1j), 2.0)))
    assert json.loads(found) == [{"real": [1, 3], "imag": [2, 0]}, {"real": 0, "imag": 1}, 2]


def test_the_fingerprint_can_be_recomputed_from_the_rows() -> None:
    result, rows, engine = run(PLAN)
    assert tr.fingerprint_of(rows, list(engine.trace.names)) == result.fingerprint


def test_the_fingerprint_depends_on_the_seed_and_on_parameters() -> None:
    fingerprints = {run(PLAN)[0].fingerprint, run(PLAN, seed=1)[0].fingerprint, run(PLAN, size=4)[0].fingerprint}
    assert len(fingerprints) == 3


def test_the_fingerprint_is_the_same_in_other_processes() -> None:
    """With all faults of a network, and agents that come and go."""
    made = plan(agents=3, turns=20, network=EVERYTHING, agent=CHURN)
    code = f"from tests.core.toys import run; print(run({made!r}, seed=5)[0].fingerprint)"
    reference = run(made, seed=5)[0].fingerprint
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == reference


def test_a_datagram_delivered_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Transport._schedule

    def twice(self: Transport, packet: Packet, arrival: float) -> None:
        honest(self, packet, arrival)
        honest(self, packet, arrival)

    monkeypatch.setattr(Transport, "_schedule", twice)
    with pytest.raises(InvariantViolation, match="more copies|delivered twice"):
        run({**PLAN, "network": {"transport": "datagram"}})


def test_a_message_that_vanishes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transport, "_schedule", lambda self, packet, arrival: None)
    with pytest.raises(InvariantViolation, match="neither arrived nor were lost"):
        run({**PLAN, "network": {}})


def test_a_server_that_applies_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.core import toys

    honest = toys.ToyServer.receive

    def twice(self: Any, message: Any, source: int) -> Any:
        self.applied += message.pulls
        return honest(self, message, source)

    monkeypatch.setattr(toys.ToyServer, "receive", twice)
    with pytest.raises(InvariantViolation, match="which must make 40 in all"):
        run(PLAN)


def test_a_nodes_own_invariant_is_checked_after_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.core import toys

    broken = lambda self: iter(["broken on purpose"] * (self.rounds > 3))  # noqa: E731
    monkeypatch.setattr(toys.ToyServer, "broken_invariants", broken)
    with pytest.raises(InvariantViolation, match="broken on purpose") as caught:
        run({**PLAN, "checks": "full"})
    assert "deliver at server" in str(caught.value)


def test_what_the_last_event_does_to_other_nodes_is_found_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.core import toys

    receive = toys.ToyAgent.receive

    def acting(self: toys.ToyAgent, message: Any, source: int) -> Any:
        self.context.sharing.get("who", list)[:] = [self.context.index]
        return receive(self, message, source)

    def broken(self: toys.ToyAgent) -> Any:
        damaged = self.context.index == 0 and self.context.sharing.get("who", list) == [2]
        return iter(["agent 0 is broken by agent 2"] * damaged)

    monkeypatch.setattr(toys.ToyAgent, "receive", acting)
    monkeypatch.setattr(toys.ToyAgent, "broken_invariants", broken)
    plan = {"agents": {"count": 3}, "schedule": {"kind": "rounds", "turns": 1}, "network": {}}
    run(plan)
    with pytest.raises(InvariantViolation) as caught:
        run({**plan, "checks": "full"})
    assert str(caught.value) == "agent 0 is broken by agent 2"


def test_a_negative_regret_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.core import toys

    monkeypatch.setattr(toys.ToyWorld, "pull", lambda self, agent, turn, arm: (0.0, -0.5))
    with pytest.raises(InvariantViolation, match="pseudo-regret"):
        run(PLAN)


def test_pulls_may_be_missing_only_when_messages_were_lost() -> None:
    check_pulls(10, 4, 6, False)
    check_pulls(10, 4, 5, True)
    for unshared, applied, lost in ((4, 5, False), (4, 7, True)):
        with pytest.raises(InvariantViolation):
            check_pulls(10, unshared, applied, lost)


def test_hosts_count_what_is_due() -> None:
    _, _, engine = run({**PLAN, "network": {}})
    assert all(isinstance(host, AgentHost) and host.due == 0 for host in engine._hosts[:-1])


def test_a_turn_recorded_by_one_call_is_three_events() -> None:
    together, apart = list[tr.Row](), list[tr.Row]()
    one, three = tr.Trace(tr.keep(together)), tr.Trace(tr.keep(apart))
    for number in range(1, 2000):
        time, node, arm, reward = 0.5 * number, number % 7, number % 3, 1.0 / number
        cause, detail = (number - 2 if number % 4 else tr.NONE), (None if number % 40 else "text")
        last = one.record_turn(time, node, cause, number, arm, reward, detail)
        seq = three.record(time, tr.TURN, node, cause=cause, value=number)
        seq = three.record(time, tr.CHOOSE, node, cause=seq, value=arm, detail=detail)
        assert last == three.record(time, tr.REWARD, node, cause=seq, value=reward)
    assert one.fingerprint() == three.fingerprint()
    assert together == apart
