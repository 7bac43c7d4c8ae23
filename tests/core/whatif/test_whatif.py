"""What-if runs of the engine: the same where nothing changes, exact where something does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.trace import Row
from coband.simulator.core.randomness.distributions import Constant, Exponential
from coband.simulator.core.whatif.addresses import AddressBook
from coband.simulator.core.whatif.changes import AgentChange, MessageChange, WhatIf
from tests.core.whatif.runs import changed, happened, key_of, original, perform

RANDOM = {"kind": "exponential", "rate": 0.5}
AGENTS = {"count": 3, "handling": {"kind": "exponential", "rate": 4.0}}
ROUNDS = {"kind": "rounds", "turns": 8}
NETWORKS: dict[str, dict[str, Any]] = {
    "ideal": {},
    "in order": {"latency": RANDOM},
    "narrow": {"latency": RANDOM, "bandwidth": 2.0, "server": {"uplink": 5.0, "downlink": 6.0}, "reorder": "fifo"},
    "lossy": {"latency": RANDOM, "loss": 0.3, "duplicate": 0.2},
    "bursts": {"latency": RANDOM, "loss": {"kind": "gilbert_elliott", "p": 0.2, "r": 0.4}},
    "datagrams": {"latency": RANDOM, "loss": 0.3, "duplicate": 0.2, "transport": "datagram"},
    "given up": {"latency": RANDOM, "loss": 0.5, "retransmission": {"max_attempts": 2}},
    "partition": {"latency": RANDOM, "partitions": [{"start": 2, "end": 6, "groups": [[0, 1]]}]},
}


def test_two_changes_of_one_message_are_one() -> None:
    both = MessageChange(lost=True, delay=0.5) | MessageChange(for_good=True, delay=1.5)
    assert both == MessageChange(lost=True, for_good=True, delay=2.0)


def plan_of(network: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"agents": AGENTS, "schedule": ROUNDS, "network": network, **more}


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_changes_where_nothing_is_changed(name: str) -> None:
    plan = plan_of(NETWORKS[name])
    ordinary, rows = perform(plan, None)
    first, _, book = original(plan)
    again, repeated = changed(plan, book)
    assert rows
    assert repeated == rows
    assert {ordinary.fingerprint, first.fingerprint, again.fingerprint} == {ordinary.fingerprint}
    assert ordinary.totals == first.totals == again.totals


def test_slow_periods_and_absent_agents_stay() -> None:
    agents = {
        **AGENTS,
        "compute": {"kind": "exponential", "rate": 1.0},
        "speed": {"kind": "uniform", "low": 0.5, "high": 2.0},
        "stragglers": {"fraction": 0.7, "slowdown": 5, "episodes": {"mean_slow": 3, "mean_fast": 3}},
        "availability": {"kind": "markov_on_off", "mean_up": 5, "mean_down": 1},
    }
    plan = plan_of(NETWORKS["lossy"]) | {"agents": agents}
    result, _ = perform(plan, None)
    _, _, book = original(plan)
    assert changed(plan, book)[0].fingerprint == result.fingerprint


# --- one lost message, by hand: one agent, turns at 10 and 20, one way takes 1, a timeout takes 5

BY_HAND: dict[str, Any] = {
    "agents": {"count": 1},
    "schedule": {"kind": "rounds", "turns": 2, "interval": 10},
    "network": {"latency": 1, "retransmission": {"timeout": 5}},
}
SEEN = tr.SEND, tr.DELIVER, tr.DROP, tr.RETRANSMIT, tr.EXPIRE
FIRST_REPORT = {(0, -1, 1): MessageChange(lost=True)}


def test_a_lost_message_is_sent_again_after_the_timeout() -> None:
    _, rows, book = original(BY_HAND)
    assert happened(rows, *SEEN) == [
        (10, tr.SEND, 0, -1),
        (11, tr.DELIVER, -1, 0),
        (11, tr.SEND, -1, tr.EVERYONE),
        (12, tr.DELIVER, 0, -1),
        (20, tr.SEND, 0, -1),
        (21, tr.DELIVER, -1, 0),
        (21, tr.SEND, -1, tr.EVERYONE),
        (22, tr.DELIVER, 0, -1),
    ]
    result, after = changed(BY_HAND, book, FIRST_REPORT)
    assert happened(after, *SEEN)[:6] == [
        (10, tr.SEND, 0, -1),
        (11, tr.DROP, 0, -1),
        (15, tr.RETRANSMIT, 0, -1),
        (16, tr.DELIVER, -1, 0),
        (16, tr.SEND, -1, tr.EVERYONE),
        (17, tr.DELIVER, 0, -1),
    ]
    assert happened(after, *SEEN)[6:] == happened(rows, *SEEN)[4:]
    assert (result.totals["wire_messages"], result.totals["dropped"]) == (5, 1)  # no acknowledgements beside them


def test_later_messages_of_the_pair_wait_for_a_lost_one() -> None:
    """Turns at 2 and 4: the second report, there at 5, waits for the first, there at 8."""
    plan = BY_HAND | {"schedule": {"kind": "rounds", "turns": 2, "interval": 2}}
    _, _, book = original(plan)
    _, after = changed(plan, book, FIRST_REPORT)
    assert [(row.time, row.node) for row in after if row.event == tr.DELIVER] == [(8, -1), (8, -1), (9, 0), (9, 0)]


def test_a_message_is_lost_for_good_at_its_timeout() -> None:
    _, _, book = original(BY_HAND)
    result, after = changed(BY_HAND, book, {(0, -1, 1): MessageChange(lost=True, for_good=True)})
    assert happened(after, *SEEN)[:4] == [
        (10, tr.SEND, 0, -1),
        (11, tr.DROP, 0, -1),
        (15, tr.EXPIRE, 0, -1),
        (20, tr.SEND, 0, -1),
    ]
    assert (result.totals["expired"], result.totals["messages"]) == (1, 3)


def test_a_lost_message_of_an_agent_that_leaves_is_given_up() -> None:
    """When it would have been repeated, as one that a link has lost."""
    plan = BY_HAND | {"agents": {"count": 1, "leaves": {"kind": "times", "times": [[0, 12]]}}}
    _, _, book = original(plan)
    _, after = changed(plan, book, FIRST_REPORT)
    assert happened(after, *SEEN) == [(10, tr.SEND, 0, -1), (11, tr.DROP, 0, -1), (15, tr.EXPIRE, 0, -1)]


def test_a_lost_datagram_is_not_sent_again() -> None:
    plan = BY_HAND | {"network": {"latency": 1, "transport": "datagram"}}
    _, rows, book = original(plan)
    _, after = changed(plan, book, FIRST_REPORT)
    assert happened(after, *SEEN)[:2] == [(10, tr.SEND, 0, -1), (11, tr.DROP, 0, -1)]
    assert happened(after, *SEEN)[2:] == happened(rows, *SEEN)[4:]


@pytest.mark.parametrize("transport", ["reliable", "datagram"])
def test_a_late_message_is_late_by_so_much(transport: str) -> None:
    plan = BY_HAND | {"network": {"latency": 1, "transport": transport}}
    _, _, book = original(plan)
    _, after = changed(plan, book, {(0, -1, 1): MessageChange(delay=2.5)})
    deliveries = [(13.5, tr.DELIVER, -1, 0), (14.5, tr.DELIVER, 0, -1)]
    assert happened(after, tr.DELIVER)[:2] == deliveries


def test_a_late_message_is_late_by_so_much_where_copies_are_lost() -> None:
    """Copies that are sent since no acknowledgement comes in time arrive later too; the first of a pair waits."""
    plan = plan_of(NETWORKS["lossy"])
    _, rows, book = original(plan)
    firsts = [row for row in rows if row.event == tr.DELIVER and row.node == -1 and key_of(rows, row)[2] == 1]
    assert len(firsts) == 3
    for delivery in firsts:
        _, after = changed(plan, book, {key_of(rows, delivery): MessageChange(delay=30.0)})
        late = [row for row in after if (row.event, row.message, row.node) == (tr.DELIVER, delivery.message, -1)]
        assert [row.time for row in late] == [pytest.approx(delivery.time + 30.0)]


# --- what is not after the change is as it was


def after_change(rows: list[Row], delivery: Row) -> Iterator[int]:
    """The events that happen after a delivery, itself included: later ones of its node, and what they send."""
    reached: dict[int, int] = {delivery.node: delivery.seq}
    sends: set[int] = set()
    for row in rows:
        if row.seq >= reached.get(row.node, row.seq + 1) and row.event not in (tr.RETRANSMIT, tr.DROP, tr.DUPLICATE):
            yield row.seq
            if row.event == tr.SEND:
                sends.add(row.message)
        elif row.event == tr.DELIVER and row.message in sends:
            reached[row.node] = row.seq
            yield row.seq
        elif row.message in sends:
            yield row.seq


def contents(rows: list[Row], left_out: set[int]) -> dict[int, list[tuple[Any, ...]]]:
    """What each node does, in its order."""
    found = defaultdict(list)
    for row in rows:
        if row.seq not in left_out and row.event in (tr.TURN, tr.CHOOSE, tr.REWARD, tr.SEND, tr.DELIVER):
            found[row.node].append((row.time, row.event, row.peer, row.scalars, row.round, row.value))
    return found


@pytest.mark.parametrize("name", ["in order", "lossy", "bursts", "datagrams"])
@pytest.mark.parametrize("change", [MessageChange(lost=True), MessageChange(delay=3.0)])
def test_what_does_not_happen_after_the_change_is_identical(name: str, change: MessageChange) -> None:
    network = {key: value for key, value in NETWORKS[name].items() if key != "duplicate"}
    plan = plan_of(network) | {"schedule": {"kind": "rounds", "turns": 8, "interval": 2.0}}
    _, rows, book = original(plan, every=2)
    deliveries = [row for row in rows if row.event == tr.DELIVER]
    for delivery in deliveries[:: max(1, len(deliveries) // 6)]:
        _, after = changed(plan, book, {key_of(rows, delivery): change}, every=2)
        before, now = contents(rows, set(after_change(rows, delivery))), contents(after, set())
        assert sum(map(len, before.values())) >= delivery.seq // 3
        for node, events in before.items():
            assert now[node][: len(events)] == events


def test_other_links_keep_their_draws_after_a_loss() -> None:
    """The same turns send the same reports: each but the lost one takes as long as before."""
    plan = plan_of(
        NETWORKS["in order"],
    ) | {"agents": {"count": 3}}
    _, rows, book = original(plan)
    first = next(row for row in rows if row.event == tr.DELIVER and row.node == -1)
    _, after = changed(plan, book, {key_of(rows, first): MessageChange(lost=True)})

    def reports(trace: list[Row]) -> dict[tuple[int, float], float]:
        sent = {row.message: row for row in trace if row.event == tr.SEND and row.peer == -1}
        taken = [row for row in trace if row.event == tr.DELIVER and row.node == -1]
        return {(row.peer, sent[row.message].time): row.time for row in taken}

    before, now = reports(rows), reports(after)
    others = [key for key in before if key[0] != first.peer]
    assert before.keys() == now.keys()
    assert len(others) == 16
    assert [now[key] for key in others] == [before[key] for key in others]


def test_repetitions_of_other_messages_stay_after_a_loss() -> None:
    """Only acknowledgements get lost: those of later reports, which wait for the lost one, get lost as before."""
    network = {"latency": 1.0, "links": [{"direction": "down", "loss": 0.4}], "retransmission": {"timeout": 3.0}}
    plan = {"agents": {"count": 1}, "schedule": {"kind": "rounds", "turns": 30}, "network": network}
    _, rows, book = original(plan)
    _, after = changed(plan, book, {(0, -1, 5): MessageChange(lost=True)})

    def repeated(trace: list[Row]) -> list[tuple[float, float]]:
        """When each of the other reports was sent, and when again."""
        sent = {row.message: row.time for row in trace if row.event == tr.SEND and row.node == 0}
        again = [(sent[row.message], row.time) for row in trace if row.event == tr.RETRANSMIT and row.node == 0]
        return [times for times in again if times[0] != 5.0]

    assert len(repeated(rows)) > 10
    assert repeated(after) == repeated(rows)


def test_messages_of_sends_that_are_asked_for_are_found() -> None:
    """By the number of the send: the first report, and the news of it to each of two agents."""
    plan = BY_HAND | {"agents": {"count": 2}}
    _, rows = perform(plan, None)
    report, news = (next(row.message for row in rows if row.event == tr.SEND and row.node == node) for node in (0, -1))
    book = AddressBook([report, news])
    perform(plan, WhatIf(book))
    assert book.found == [(report, 0, -1, 1), (news, -1, 0, 1), (news, -1, 1, 1)]


# --- single agents


def test_one_agent_of_another_speed() -> None:
    plan = plan_of(NETWORKS["in order"]) | {"agents": {**AGENTS, "compute": 0.5}}
    _, rows, book = original(plan)
    _, after = changed(plan, book, agents={1: AgentChange(speed=5.0)})

    def times(trace: list[Row], agent: int) -> list[float]:
        turns = [row.time for row in trace if row.event == tr.TURN and row.node == agent]
        choices = [row.time for row in trace if row.event == tr.CHOOSE and row.node == agent]
        return [round(end - start, 9) for start, end in zip(turns, choices, strict=True)]

    assert (set(times(rows, 1)), set(times(after, 1)), set(times(after, 2))) == ({0.5}, {0.1}, {0.5})


def test_turns_of_one_agent_may_take_time() -> None:
    plan = plan_of({}) | {"agents": {"count": 3}}
    _, rows, book = original(plan)
    _, after = changed(plan, book, agents={1: AgentChange(compute=Constant(value=0.25))})
    choices = [row for row in after if row.event == tr.CHOOSE]
    assert {row.time % 1 for row in choices if row.node == 1} == {0.25}
    assert {row.time % 1 for row in choices if row.node != 1} == {0.0}
    assert len(choices) == len([row for row in rows if row.event == tr.CHOOSE])


def test_handling_of_one_agent_keeps_the_draws_of_others() -> None:
    plan = plan_of(NETWORKS["in order"])
    result, _, book = original(plan)
    same, _ = changed(plan, book, agents={1: AgentChange(handling=Exponential(kind="exponential", rate=4.0))})
    other, _ = changed(plan, book, agents={1: AgentChange(handling=Exponential(kind="exponential", rate=1.0))})
    assert same.fingerprint == result.fingerprint != other.fingerprint
