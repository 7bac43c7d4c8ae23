"""Runs of a toy protocol over networks whose times can be worked out by hand."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coband.extensions.conformance import runs as conformance
from coband.simulator.arms import ArmSet
from coband.simulator.core.clock.schedule import Recorded
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Later, Outbox
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from tests.core.toys import TOY, News, ToyAgent, ToyConfig, run, run_on_toys


def plan(agents: int = 1, turns: int = 1, **parts: Any) -> dict[str, Any]:
    return {
        "agents": {"count": agents, **parts.pop("agent", {})},
        "schedule": {"kind": "rounds", "turns": turns, **parts.pop("schedule", {})},
        "network": parts.pop("network", {}),
        **parts,
    }


def times(rows: list[tr.Row], event: int) -> list[float]:
    return [row.time for row in rows if row.event == event]


def test_without_delay_everything_happens_at_the_time_of_the_turn() -> None:
    result, rows, _ = run(plan(agents=2, turns=3))
    assert times(rows, tr.TURN) == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert set(times(rows, tr.DELIVER)) == {1.0, 2.0, 3.0}
    assert (result.turns, result.rounds, result.simulated_time) == (6, 6, 3.0)


def test_turns_go_before_deliveries_and_the_server_before_agents() -> None:
    _, rows, engine = run(plan(agents=2, turns=1))
    order = [(row.event, row.node) for row in rows if row.event in (tr.TURN, tr.DELIVER)]
    assert order == [
        (tr.TURN, 0),
        (tr.TURN, 1),
        (tr.DELIVER, -1),
        (tr.DELIVER, -1),
        *[(tr.DELIVER, 0)] * 2,
        *[(tr.DELIVER, 1)] * 2,
    ]
    assert engine.server is not None


def test_latency_and_link_bandwidth_add_up() -> None:
    # 3 scalars up at 2 per unit: 1.5 + 0.25 on the way; 1 scalar down: 0.5 + 0.25
    _, rows, _ = run(plan(network={"latency": 0.25, "bandwidth": 2.0}))
    assert times(rows, tr.DELIVER) == [1.0 + 1.75, 1.0 + 1.75 + 0.75]


def test_bandwidth_in_bits_counts_headers() -> None:
    network = {"bandwidth": {"bits": 100.0}, "scalar_bits": 32, "header_bits": 4}
    _, rows, _ = run(plan(network=network))
    assert times(rows, tr.DELIVER) == [1.0 + 1.0, 1.0 + 1.0 + 0.36]


def test_a_link_serialises_copies_in_order() -> None:
    _, rows, _ = run(plan(turns=3, network={"links": [{"direction": "up", "bandwidth": 1.0}]}))
    # three reports of 3 scalars, sent at 1, 2, 3, leave the link at 4, 7, 10
    assert [row.time for row in rows if row.event == tr.DELIVER and row.node == -1] == [4.0, 7.0, 10.0]


def test_the_shared_uplink_makes_agents_queue() -> None:
    _, rows, _ = run(plan(agents=4, network={"server": {"uplink": 3.0}}))
    assert [row.time for row in rows if row.event == tr.DELIVER and row.node == -1] == [2.0, 3.0, 4.0, 5.0]


def test_the_shared_uplink_in_bits_counts_headers() -> None:
    network = {"server": {"uplink": {"bits": 100.0}}, "scalar_bits": 32, "header_bits": 4}
    _, rows, _ = run(plan(agents=2, network=network))
    assert [row.time for row in rows if row.event == tr.DELIVER and row.node == -1] == [2.0, 3.0]


def test_the_shared_downlink_makes_a_broadcast_queue() -> None:
    _, rows, _ = run(plan(agents=4, network={"server": {"downlink": 2.0}}), every=1)
    first = [row.time for row in rows if row.event == tr.DELIVER and row.node >= 0 and row.round == 1]
    assert first == [1.5, 2.0, 2.5, 3.0]


def test_uplink_queue_is_in_order_of_arrival_not_of_sending() -> None:
    network = {"server": {"uplink": 3.0}, "links": [{"agents": [0], "direction": "up", "latency": 10.0}]}
    _, _, engine = run(plan(agents=2, network=network))
    assert [source for source, _ in engine.server.order] == [1, 0]  # type: ignore[union-attr]


def test_reliable_transport_keeps_the_order_of_a_pair_under_random_latency() -> None:
    network = {"latency": {"kind": "pareto", "minimum": 0.1, "shape": 1.1}}
    _, _, engine = run(plan(agents=3, turns=40, network=network), seed=3)
    order = engine.server.order  # type: ignore[union-attr]
    for agent in range(3):
        assert [value for source, value in order if source == agent] == [float(turn) for turn in range(1, 41)]


def test_datagrams_may_overtake_each_other() -> None:
    network = {"latency": {"kind": "uniform", "low": 0.0, "high": 9.0}, "transport": "datagram"}
    _, _, engine = run(plan(turns=40, network=network), seed=3)
    values = [value for _, value in engine.server.order]  # type: ignore[union-attr]
    assert sorted(values) == [float(turn) for turn in range(1, 41)]
    assert values != sorted(values)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), loss=st.floats(0.05, 0.7), agents=st.integers(1, 4), latency=st.floats(0.0, 3.0))
def test_reliable_transport_delivers_everything_once_and_in_order(
    seed: int, loss: float, agents: int, latency: float
) -> None:
    network = {"loss": loss, "latency": {"kind": "uniform", "high": latency}, "retransmission": {"max_attempts": 1000}}
    result, _, engine = run(plan(agents=agents, turns=8, network=network), seed=seed)
    order = engine.server.order  # type: ignore[union-attr]
    for agent in range(agents):
        assert [value for source, value in order if source == agent] == [float(turn) for turn in range(1, 9)]
    for agent in engine.agents:
        assert agent.heard == [float(total) for total in range(1, 8 * agents + 1)]  # type: ignore[attr-defined]
    for copies in result.audit.copies.values():
        assert copies.sent == copies.delivered + copies.dropped + copies.duplicates


def test_payload_does_not_depend_on_loss_but_the_wire_does() -> None:
    clean, _, _ = run(plan(agents=2, turns=20))
    lossy, rows, _ = run(plan(agents=2, turns=20, network={"loss": 0.3}))
    assert lossy.totals["scalars"] == clean.totals["scalars"] == 40 * (3 + 2)
    repeated = sum(row.scalars for row in rows if row.event == tr.RETRANSMIT)
    assert repeated > 0
    assert lossy.totals["wire_scalars"] == clean.totals["scalars"] + repeated
    drops = Counter(row.event for row in rows)[tr.DROP]
    assert drops > 0


def test_a_lossy_datagram_network_loses_for_good() -> None:
    result, rows, engine = run(plan(turns=200, network={"loss": 0.5, "transport": "datagram"}), seed=1)
    lost = sum(1 for row in rows if row.event == tr.DROP and row.node == 0)
    assert 60 < lost < 140
    assert len(engine.server.order) == 200 - lost  # type: ignore[union-attr]
    assert result.audit.lost_for_good


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"retransmission": {"max_attempts": 2, "timeout": 1.0}}, "max_attempts"),
        ({"retransmission": {"timeout": 1.0}, "recovery": {"patience": 1.5}}, "patience"),
    ],
)
def test_transport_gives_up_says_why_and_goes_on(limit: dict[str, Any], reason: str) -> None:
    network = {"loss": 0.8} | limit
    result, rows, engine = run(plan(turns=50, network=network), seed=5)
    expired = sum(1 for row in rows if row.event == tr.EXPIRE)
    assert expired == result.audit.given_up > 0
    assert {row.reason for row in rows if row.event == tr.EXPIRE} == {engine.trace.names[reason]}
    values = [value for _, value in engine.server.order]  # type: ignore[union-attr]
    assert values == sorted(values)


def test_compute_time_and_stragglers_delay_turns() -> None:
    agent = {"compute": 2.0, "stragglers": {"fraction": 0.5, "slowdown": 10.0}}
    _, rows, _ = run(plan(agents=2, turns=2, agent=agent))
    ends = {node: [row.time for row in rows if row.event == tr.CHOOSE and row.node == node] for node in (0, 1)}
    slow, fast = sorted(ends, key=lambda node: -ends[node][0])
    assert ends[fast] == [3.0, 5.0]  # turn 2 starts when turn 1 has ended, not at time 2
    assert ends[slow] == [21.0, 41.0]


def test_speed_divides_compute_times() -> None:
    _, rows, _ = run(plan(agent={"compute": 3.0, "speed": 2.0}))
    assert times(rows, tr.CHOOSE) == [1.0 + 1.5]


def test_a_turn_that_takes_time_ends_before_what_has_arrived_meanwhile_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reports leave at 5 and news are there at 7, in the second turn, which ends at 10 without them."""
    known: list[int] = []

    def choose(agent: ToyAgent, arms: Any) -> int:
        known.append(len(agent.heard))
        return 1

    monkeypatch.setattr(ToyAgent, "choose", choose)
    schedule = {"kind": "rounds", "turns": 3}
    run(plan(agents=1, schedule=schedule, agent={"compute": 5.0}, network={"latency": 1.0}))
    assert known == [0, 0, 1]


def test_a_message_waits_while_its_receiver_is_busy() -> None:
    _, rows, engine = run(plan(agents=2, agent={"compute": 5.0}, network={"latency": 1.0}, server={"handling": 2.0}))
    # reports reach the server at 7; it handles one until 9, the other until 11
    news = [row.time for row in rows if row.event == tr.SEND and row.node == -1]
    assert news == [9.0, 11.0]
    assert engine.agents[0].heard == [1.0, 2.0]  # type: ignore[attr-defined]


class Reminded(ToyAgent):
    """Has itself reminded of its pull."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return [(Later(0.75), News(total=reward))]

    def on_timer(self, timer: Message) -> Outbox | None:
        return []


def test_a_timer_rings_when_its_delay_is_over() -> None:
    _, rows, _ = run_on_toys(replace(TOY, agent=Reminded), ToyConfig(), plan(agents=2, turns=2), 0)
    assert times(rows, tr.TIMER) == [1.75, 1.75, 2.75, 2.75]


def test_a_waiting_agent_takes_its_turn_once_it_may() -> None:
    _, rows, _ = run(plan(turns=3, network={"latency": 2.0}), blocking=True)
    assert times(rows, tr.TURN) == [1.0, 5.0, 9.0]
    assert times(rows, tr.WAIT) == [1.0, 5.0, 9.0]
    assert times(rows, tr.RESUME) == [5.0, 9.0, 13.0]


def test_agents_that_wait_in_vain_are_reported() -> None:
    network = {"transport": "datagram", "links": [{"direction": "down", "loss": 1.0}]}
    result, _, _ = run(plan(turns=3, network=network), blocking=True)
    assert (result.turns, result.stalled) == (1, 2)
    assert result.never_taken == "2 turns were never taken: agents waited for messages that did not come"


def test_duration_ends_the_turns() -> None:
    result, _, _ = run(plan(turns=100, schedule={"duration": 10.5}))
    assert result.turns == 10


def test_renewal_turns_come_at_think_times() -> None:
    schedule = {"kind": "renewal", "turns": 3, "think": 2.5}
    _, rows, _ = run({"agents": {"count": 2}, "schedule": schedule, "network": {}})
    assert times(rows, tr.TURN) == [2.5, 2.5, 5.0, 5.0, 7.5, 7.5]


def test_think_times_are_multiplied_by_a_pace_of_each_agent() -> None:
    schedule = {"kind": "renewal", "turns": 2, "think": 2.0, "pace": {"kind": "uniform", "low": 1.0, "high": 4.0}}
    _, rows, _ = run({"agents": {"count": 3}, "schedule": schedule, "network": {}})
    turns = [[row.time for row in rows if row.event == tr.TURN and row.node == agent] for agent in range(3)]
    assert all(2.0 < first < 8.0 and second == 2 * first for first, second in turns)
    assert len({first for first, _ in turns}) == 3


def test_renewal_with_a_duration() -> None:
    schedule = {"kind": "renewal", "duration": 1000.0, "think": {"kind": "exponential", "rate": 0.5}}
    result, _, _ = run({"agents": {"count": 4}, "schedule": schedule, "network": {}})
    assert result.turns == pytest.approx(4 * 500, rel=0.1)


def test_links_do_not_disturb_each_other() -> None:
    network = {"latency": {"kind": "exponential", "rate": 1.0}, "transport": "datagram"}
    _, alone, _ = run(plan(agents=1, turns=10, network=network))
    _, together, _ = run(plan(agents=3, turns=10, network=network))
    first = [
        sorted(row.time for row in rows if row.event == tr.DELIVER and row.message >= 0 and row.peer == 0)
        for rows in (alone, together)
    ]
    assert first[0] == first[1]


def test_payload_sizes_in_both_conventions() -> None:
    result, _, _ = run(plan(agents=5, turns=1), size=7)
    assert result.totals["uplink_scalars"] == 35
    assert result.totals["downlink_scalars"] == 5 * 5
    assert result.totals["scalars_broadcast_once"] == 35 + 5
    assert result.totals["messages"] == 5 + 25
    assert result.ledger.uplink_by_agent == [7] * 5
    assert result.ledger.downlink_by_agent == [5] * 5
    assert result.ledger.by_round == dict.fromkeys(range(1, 6), 5)


def recorded(tmp_path: Path, text: str, **parts: Any) -> dict[str, Any]:
    file = tmp_path / "turns.csv"
    file.write_text(text)
    return {"kind": "trace", "file": str(file), **parts}


def test_turns_from_a_file_come_at_their_times(tmp_path: Path) -> None:
    schedule = recorded(tmp_path, "agent,time\n1,4.5\n0,2\n\n2,2\n0,0.25\n1,2\n")
    found, rows, _ = run({"agents": {"count": 3}, "schedule": schedule, "network": {}})
    turns = [(row.time, row.node) for row in rows if row.event == tr.TURN]
    assert turns == [(0.25, 0), (2.0, 0), (2.0, 1), (2.0, 2), (4.5, 1)]
    assert (found.turns, found.stalled) == (5, 0)


def test_a_duration_and_busy_agents_hold_for_turns_from_a_file_too(tmp_path: Path) -> None:
    schedule = recorded(tmp_path, "agent,time\n0,1\n0,1.5\n0,9\n", duration=9.0)
    agents = {"count": 1, "compute": 3.0}
    _, rows, _ = run({"agents": agents, "schedule": schedule, "network": {}})
    assert times(rows, tr.TURN) == [1.0, 4.0]


def test_turns_of_a_file_are_counted(tmp_path: Path) -> None:
    schedule = Recorded.model_validate(recorded(tmp_path, "agent,time\n0,1\n1,2\n0,3\n"))
    assert (schedule.agents, schedule.total_turns(2)) == (2, 3)
    assert (schedule.turns_per_agent(2, Streams(0)), schedule.turns_per_agent(3, Streams(0))) == (1, 0)


def test_turns_of_a_file_may_begin_at_time_0(tmp_path: Path) -> None:
    _, rows, _ = run({"agents": {"count": 2}, "schedule": recorded(tmp_path, "agent,time\n1,0\n0,1\n"), "network": {}})
    assert times(rows, tr.TURN) == [0.0, 1.0]


def test_an_agent_that_waits_after_one_of_its_turns_in_a_file_takes_the_next_of_that_time_later(tmp_path: Path) -> None:
    schedule = recorded(tmp_path, "agent,time\n0,1\n0,1\n")
    parts = {"agents": {"count": 1}, "schedule": schedule, "network": {"latency": 1.0}}
    _, rows, _ = run(parts, blocking=True)
    assert times(rows, tr.TURN) == [1.0, 3.0]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("time,agent\n1,0\n", "must begin with the line agent,time"),
        ("", "must begin with the line agent,time"),
        ("agent,time\n", "has no turns; give a line agent,time for each"),
        ("agent,time\n0,1\n0;2\n", ":3: the header names 2 columns, but the row has 1"),
        ("agent,time\n0,1,2\n", ":2: the header names 2 columns, but the row has 3"),
        ("agent,time\n0,soon\n", ":2: '0,soon' must have a whole agent >= 0 and 0 <= time < infinity"),
        ("agent,time\n0.5,1\n", ":2: '0.5,1' must have a whole agent >= 0 and 0 <= time < infinity"),
        ("agent,time\n0,1\n\n-1,3\n", ":4: '-1,3' must have a whole agent >= 0 and 0 <= time < infinity"),
        ("agent,time\n0,-1\n", ":2: '0,-1' must have a whole agent >= 0 and 0 <= time < infinity"),
        ("agent,time\n0,inf\n", ":2: '0,inf' must have a whole agent >= 0 and 0 <= time < infinity"),
        ("agent,time\n0,nan\n", ":2: '0,nan' must have a whole agent >= 0 and 0 <= time < infinity"),
    ],
)
def test_bad_files_of_turns_are_refused(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Recorded.model_validate(recorded(tmp_path, text))
    assert error in str(caught.value)
    assert "turns.csv" in str(caught.value)


def test_what_goes_straight_to_its_receiver_passes_no_hop() -> None:
    delivered = conformance.run("async_kernel_ucb", {"threshold": 0.5}, agents=2).events(tr.DELIVER)
    assert {row.hop for row in delivered} == {0}
