"""Planted bugs, each caught by an invariant: what the checks are good for."""

from typing import Any

import pytest

from coband.extensions.conformance.runs import run
from coband.server.common.synchronisation import SynchronousServer
from coband.server.kernel.async_kernel_ucb import AsyncKernelUCBServer
from coband.simulator.core.conversations import Talks
from coband.simulator.core.conversations.conversation import Conversations
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.network.reliable import ReliableTransport
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.message import NodeMistake
from coband.simulator.core.packet import Packet
from coband.simulator.core.records.invariants import InvariantViolation
from tests.core import toys
from tests.core.hosts.test_faults import CHURN, EVERYTHING, outage
from tests.core.network.test_network_runs import plan

LOSSY: dict[str, Any] = {"loss": 0.3, "latency": 0.2, "retransmission": {"timeout": 1.0}}


def violation(made: dict[str, Any], seed: int = 0, **config: Any) -> str:
    with pytest.raises(InvariantViolation) as caught:
        toys.run(made, seed, **config)
    return str(caught.value)


def test_a_transport_that_delivers_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    hand_over = ReliableTransport._hand_over

    def twice(self: ReliableTransport, packet: Packet) -> None:
        hand_over(self, packet)
        hand_over(self, packet)

    monkeypatch.setattr(ReliableTransport, "_hand_over", twice)
    text = violation(plan(turns=20, network=LOSSY))
    assert "once and in order" in text or "arrived than were sent" in text


def test_a_datagram_that_comes_more_often_than_links_carried_it(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Transport._schedule

    def twice(self: Transport, packet: Packet, arrival: float) -> None:
        schedule(self, packet, arrival)
        schedule(self, packet, arrival)

    monkeypatch.setattr(Transport, "_schedule", twice)
    text = violation(plan(network={"latency": 0.5, "transport": "datagram"}))
    assert "more often than links carried it" in text or "arrived than were sent" in text


def test_work_that_ends_at_a_node_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "_is_suspended", lambda *parts: False)
    text = violation(plan(agent={"compute": 2.0}, network=outage(0, start=2.0, end=5.0)))
    assert text.startswith("node 0 acted while it was down")


def test_a_repetition_from_a_node_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def overdue(self: ReliableTransport, packet: Packet) -> None:
        if not packet.acknowledged:
            self._repeat(packet)

    monkeypatch.setattr(ReliableTransport, "_overdue", overdue)
    outages = [{"start": 1.0, "end": 5.0, "nodes": ["server"]}, {"start": 1.5, "end": 3.0, "nodes": [0]}]
    text = violation(plan(network={**LOSSY, "loss": 0.0, "outages": outages}))
    assert text.startswith("agent 0 sent 'report' to the server while it was down")


def test_a_message_that_is_handed_to_a_node_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def arrive(self: Transport, packet: Packet) -> None:
        self._audit.delivered(packet)
        self._handler.deliver(packet)

    monkeypatch.setattr(Transport, "_arrive", arrive)
    network = {"latency": 0.5, "transport": "datagram", **outage("server", start=1.2, end=4.0)}
    assert violation(plan(network=network)).startswith("'report' was handed to the server while it was down")


def test_an_acknowledgement_that_is_lost_and_data_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def resigned(self: ReliableTransport, packet: Packet) -> None:
        """Takes silence for consent."""

    monkeypatch.setattr(ReliableTransport, "_repeat", resigned)
    text = violation(plan(turns=20, network=LOSSY), seed=1)
    assert "copies of 'report' neither arrived nor were lost" in text
    every_copy = plan(network={"latency": 0.2, "loss": 0.99})
    assert "which must make 1 in all" in violation(every_copy)


def test_a_sender_that_repeats_only_once_and_forgets_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    repeat = ReliableTransport._repeat

    def once(self: ReliableTransport, packet: Packet) -> None:
        if packet.attempts < 2:
            repeat(self, packet)

    monkeypatch.setattr(ReliableTransport, "_repeat", once)
    made = plan(agents=3, turns=30, network=EVERYTHING, agent=CHURN)
    assert "copies of 'report' neither arrived nor were lost" in violation(made, seed=1)


def test_a_model_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = toys.ToyAgent.receive

    def backwards(self: toys.ToyAgent, message: Any, source: int) -> Any:
        self.note("model", version=10 - int(message.total))
        return receive(self, message, source)

    monkeypatch.setattr(toys.ToyAgent, "receive", backwards)
    assert violation(plan(turns=3)).startswith("node 0 went back from model version 9 to 8")


SLOW = {
    "schedule": {"kind": "rounds", "turns": 12},
    "network": {"latency": {"kind": "uniform", "low": 0.1, "high": 0.4}},
}


def test_an_upload_of_more_pulls_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Conversations._post

    def one_more(self: Conversations, message: Any, *rest: Any) -> Any:
        """Its agent and the server believe it."""
        message.__dict__["pulls"] += message.pulls > 0
        return post(self, message, *rest)

    monkeypatch.setattr(Conversations, "_post", one_more)
    with pytest.raises(NodeMistake, match="of its pulls are not sent yet"):
        run("dis_lin_ucb", {"threshold": 0.3}, agents=4, **SLOW)


def test_an_upload_that_is_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Talks.receive

    def twice(self: Any, message: Any, source: int) -> Any:
        if message.pulls and isinstance(self, SynchronousServer):
            self.applied += message.pulls
        return receive(self, message, source)

    monkeypatch.setattr(Talks, "receive", twice)
    with pytest.raises(InvariantViolation, match="which must make 48 in all"):
        run("dis_lin_ucb", {"threshold": 0.3}, agents=4, **SLOW)


def test_a_sum_that_is_taken_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    add = AsyncKernelUCBServer.add

    def twice(self: AsyncKernelUCBServer, upload: Any, agent: int) -> Any:
        answer = add(self, upload, agent)
        self.statistics = self.statistics + self.statistics
        return answer

    monkeypatch.setattr(AsyncKernelUCBServer, "add", twice)
    with pytest.raises(InvariantViolation, match="is not the sum of"):
        run("async_kernel_ucb", {"threshold": 0.5}, agents=4, share=False, **SLOW)
