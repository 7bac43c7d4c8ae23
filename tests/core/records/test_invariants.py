"""What a violation of the cheap invariants says: the message, both nodes, and what should have been."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coband.simulator.core.packet import Flood, Packet
from coband.simulator.core.records.invariants import Audit, InvariantViolation
from tests.core.toys import Report

SEND = 40
"""Number of the event of sending the first packet."""


def packet(number: int, source: int = 4, destination: int = 7) -> Packet:
    message = Report(values=np.ones(2))
    send = SEND + number - 1
    return Packet(
        message, source, destination, id=10 + number, number=number, send=send, kind=0, scalars=message.scalars
    )


def sent(audit: Audit, *packets: Packet) -> tuple[Packet, ...]:
    for one in packets:
        audit.sent(one)
    return packets


def out_of_order() -> None:
    audit = Audit(ordered=True)
    first, second = sent(audit, packet(1), packet(2))
    audit.delivered(second)
    audit.delivered(first)


def after_one_was_given_up() -> None:
    audit = Audit(ordered=True)
    first, _, third = sent(audit, packet(1), packet(2), packet(3))
    audit.gave_up(first)
    audit.delivered(third)


def more_often_than_sent() -> None:
    audit = Audit(ordered=True)
    (one,) = sent(audit, packet(1))
    audit.delivered(one)
    audit.delivered(one)


def more_often_than_carried() -> None:
    audit = Audit(ordered=False)
    one, _ = sent(audit, packet(1), packet(2, destination=8))
    audit.duplicated(one)
    for _ in range(3):
        audit.delivered(one)


def after_it_was_lost() -> None:
    audit = Audit(ordered=False)
    one, _ = sent(audit, packet(1), packet(2, destination=8))
    audit.dropped(one)
    audit.delivered(one)


def from_a_node_that_is_down() -> None:
    sent(Audit(ordered=True, down={4}), packet(1))


def to_a_node_that_is_down() -> None:
    down: set[int] = set()
    audit = Audit(True, down)
    (one,) = sent(audit, packet(1))
    down.add(7)
    audit.delivered(one)


def beyond_its_time_to_live() -> None:
    Audit(ordered=True).passed_on(Flood(id=3, origin=4, hops=2, hop=3), 7, SEND)


def flood_again() -> None:
    audit = Audit(ordered=True)
    for hop in (1, 2):
        audit.passed_on(Flood(id=3, origin=4, hops=2, hop=hop), 7, SEND + hop - 2)


def flood_to_its_origin() -> None:
    Audit(ordered=True).passed_on(Flood(id=3, origin=4, hops=2, hop=2), 4, SEND)


PAIR, DUE = "from agent 4 to agent 7", "was due: reliable transport hands over each message once and in order"


@pytest.mark.parametrize(
    ("broken", "cause", "text"),
    [
        (out_of_order, SEND + 1, f"message 2 ('report') {PAIR} was delivered when message 1 {DUE}"),
        (after_one_was_given_up, SEND + 2, f"message 3 ('report') {PAIR} was delivered when message 2 {DUE}"),
        (more_often_than_sent, SEND, "more copies of 'report' arrived than were sent"),
        (more_often_than_carried, SEND, "message 11 was delivered to agent 7 more often than links carried it"),
        (after_it_was_lost, SEND, "message 11 was delivered to agent 7 more often than links carried it"),
        (from_a_node_that_is_down, SEND, "agent 4 sent 'report' to agent 7 while it was down"),
        (to_a_node_that_is_down, SEND, "'report' was handed to agent 7 while it was down"),
        (beyond_its_time_to_live, SEND, "a message of 2 hops reached agent 7 after 3"),
        (flood_again, SEND, "LOCAL message 3 was handed to agent 7 twice"),
        (flood_to_its_origin, SEND, "LOCAL message 3 was handed to agent 4 twice"),
    ],
)
def test_a_violation_names_the_message_its_nodes_and_its_event(
    broken: Callable[[], Any], cause: int, text: str
) -> None:
    with pytest.raises(InvariantViolation) as caught:
        broken()
    assert (str(caught.value), caught.value.cause) == (text, cause)
