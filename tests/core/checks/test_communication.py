"""Planted errors of accounts, of receivers and of the draws of links, each found by an invariant."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from coband.simulator.arrays import FloatArray
from coband.simulator.conformance.graphs import graph_of
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.checks.accounts import Accounts
from coband.simulator.core.checks.full_audit import FullAudit
from coband.simulator.core.checks.payloads import difference, frozen, numbers_in
from coband.simulator.core.checks.receivers import Receivers
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.network import hop_by_hop, local
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.network.hop_by_hop import HopByHop
from coband.simulator.core.network.links import Link
from coband.simulator.core.network.loss import BernoulliLoss
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import ALL_AGENTS, SERVER, Neighbours, Outbox
from coband.simulator.core.packet import Flood, Packet
from coband.simulator.core.router import Router
from coband.simulator.maths.linalg.gram import Gram
from tests.core import toys
from tests.core.network.test_network_runs import plan
from tests.core.network.test_unicast import MODES, Gossip, Whisper, gossip
from tests.every import every

Patch = pytest.MonkeyPatch


def violation(**parts: Any) -> str:
    made = plan(**{"agents": 3, "turns": 6, "checks": "full", **parts})
    with pytest.raises(InvariantViolation) as caught:
        toys.run(made)
    return str(caught.value)


def gossip_violation(**parts: Any) -> str:
    with pytest.raises(InvariantViolation) as caught:
        gossip(config={"aloud": True}, **parts)
    return str(caught.value)


# --- sizes


class Laden(Message):
    kind: ClassVar[str] = "laden"
    values: FloatArray = payload()
    more: Any = None


@dataclass(frozen=True, kw_only=True)
class Parts:
    first: float
    second: float


def test_payloads_are_counted_entry_by_entry() -> None:
    parts = (np.ones((2, 3)), None, [1, 2.0, np.float64(3.0)], Gram(np.ones((1, 4))))
    counts = [numbers_in(Laden(values=part)) for part in parts]  # type: ignore[arg-type]
    assert counts == [6, 0, 3, 16]


def test_a_copy_shares_nothing_and_cannot_be_written_to() -> None:
    message = Laden(values=np.arange(3.0), round=2)
    copy = frozen(message)
    assert difference(copy, message) is None
    message.values[1] = 7.0
    assert copy.values.tolist() == [0.0, 1.0, 2.0]
    assert difference(copy, message) == "values"
    assert difference(copy, replace(copy, round=3)) == "round"
    with pytest.raises(ValueError, match="read-only"):
        copy.values[0] = 1.0


@every(
    ("one", "other", "same"),
    [
        (1.0, 1.0 + 1e-9, True),
        (0, -0.0, True),
        (1, 2, False),
        (np.array([1.0, math.nan]), np.array([1.0 + 1e-9, math.nan]), True),
        (np.array([1.0, 0.0]), np.array([1.0, 1e-3]), False),
        (np.array([1e3, 0.0]), np.array([1e3, 1e-4]), True),
        (np.array([1e-3, 0.0]), np.array([1e-3, 1e-8]), False),
        (np.array([1, 2]), np.array([1.0, 2.0]), True),
        (1, np.array([1.0, 1.0]), False),
        ((1.0, 2.0), [1.0, 2.0], False),
        ([1.0], [1.0, 2.0], False),
        ("up", "up\0", False),
        (Parts(first=1.0, second=2.0), Parts(first=1.0, second=2.0 + 1e-9), True),
        (Parts(first=1.0, second=2.0), Parts(first=1.0, second=3.0), False),
        (np.array([1.0]), np.array([1.0]).view(np.int64), False),
    ],
)
def test_payloads_are_alike_up_to_rounding(one: Any, other: Any, same: bool) -> None:
    assert (difference(Laden(values=one), Laden(values=other)) is None) == same


@pytest.mark.parametrize(("one", "other"), [(1, 1.0 + 1e-9), (1.0 + 1e-9, 1), (1.0, 1), (1.0, 1.0 + 1e-9), (None, 0.0)])
def test_parts_of_a_payload_are_compared_like_a_payload(one: Any, other: Any) -> None:
    """Numbers that are counted must be equal, and measured ones up to rounding: alone, in a tuple and in a list."""
    pairs: list[tuple[Any, Any]] = [(one, other), ((one,), (other,)), ([0.5, (one, 2)], [0.5, (other, 2)])]
    found = {difference(Laden(values=first), Laden(values=second)) for first, second in pairs}
    assert len(found) == 1


def test_a_size_that_counts_rows_alone(monkeypatch: Patch) -> None:
    rows = defaultdict(lambda: lambda value: len(np.atleast_1d(value)) - 1)
    monkeypatch.setattr("coband.simulator.core.nodes.message._SIZERS", rows)
    assert violation().startswith("a 'report' of node 0 is counted as 2 scalars and carries 3")


@pytest.mark.parametrize("hidden", [np.ones(2), 0.5, [1, 2], (1, 0.5), {"model": 1}])
def test_what_is_no_payload_and_carries_numbers(hidden: Any, monkeypatch: Patch) -> None:
    def observe(self: toys.ToyAgent, arms: Any, arm: int, reward: float) -> Outbox:
        return [(SERVER, Laden(values=np.ones(1), more=hidden, pulls=1))]

    assert Laden(values=np.ones(1)).scalars == 1  # at the first of its class every run looks
    monkeypatch.setattr(toys.ToyAgent, "observe", observe)
    assert violation().startswith("'more' of a 'laden' of node 0 is no payload and more than a header may be")


def test_what_agents_say_to_each_other_costs_what_it_carries(monkeypatch: Patch) -> None:
    """Also what an agent sends because it has heard several messages at one moment."""

    def receive(self: Gossip, message: Message, source: int) -> Outbox:
        aloud = isinstance(message, Whisper) and message.turn < 0
        return [(source, Laden(values=np.ones(1), more=0.5))] if aloud else []

    monkeypatch.setattr(Gossip, "receive", receive)
    text = gossip_violation(turns=1, local={"mode": "direct"})
    assert text.startswith("'more' of a 'laden' of node 0 is no payload and more than a header may be")


def test_what_a_message_does_not_declare(monkeypatch: Patch) -> None:
    observe = toys.ToyAgent.observe

    def burdened(self: toys.ToyAgent, arms: Any, arm: int, reward: float) -> Outbox:
        outbox = observe(self, arms, arm, reward)
        vars(outbox[0][1])["model"] = np.ones(9)
        return outbox

    monkeypatch.setattr(toys.ToyAgent, "observe", burdened)
    assert violation().startswith("'model' of a 'report' of node 0 is no payload")


# --- the ledger


def leave_out(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Ledger, name, lambda *parts, **more: None)


LOSSY: dict[str, Any] = {"loss": 0.3, "latency": 0.2, "retransmission": {"timeout": 1.0}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("acknowledgement", "the ledger counts 0 acknowledgements"),
        ("repetition", "the ledger counts 0 repeated copies"),
        ("first_copies", "the ledger counts 0"),
    ],
)
def test_a_ledger_that_leaves_something_out(name: str, text: str, monkeypatch: Patch) -> None:
    leave_out(name, monkeypatch)
    assert violation(network=LOSSY).startswith(text)


def test_a_ledger_that_confuses_agents(monkeypatch: Patch) -> None:
    enter = Ledger.first_copies

    def confused(self: Ledger, kind: str, direction: str, agents: list[int], *more: Any) -> None:
        enter(self, kind, direction, [0] * len(agents), *more)

    monkeypatch.setattr(Ledger, "first_copies", confused)
    assert "scalars up of agent" in violation() or "scalars down of agent" in violation()


def test_a_ledger_that_confuses_rounds(monkeypatch: Patch) -> None:
    enter = Ledger.first_copies

    def confused(self: Ledger, kind: str, direction: str, agents: list[int], scalars: int, round: int) -> None:
        enter(self, kind, direction, agents, scalars, max(round, 1))

    monkeypatch.setattr(Ledger, "first_copies", confused)
    assert violation().startswith("the ledger's scalars by round are")


@pytest.mark.parametrize("mode", MODES)
def test_a_ledger_that_counts_one_copy_of_a_flood(mode: str, monkeypatch: Patch) -> None:
    enter = Ledger.peer_copies

    def once(self: Ledger, kind: str, copies: int, *more: Any) -> None:
        enter(self, kind, min(copies, 1), *more)

    monkeypatch.setattr(Ledger, "peer_copies", once)
    assert "'whisper' peer" in gossip_violation(local={"mode": mode})


# --- links


def test_a_copy_too_many_on_one_link_does_not_stand_in_for_one_that_vanished_on_another() -> None:
    audit = FullAudit(ordered=True, clock=Clock())
    sound, vanished = (
        Packet(report, agent, agent, SERVER, 1, 7, 0, report.scalars)
        for agent, report in enumerate(toys.Report(values=np.ones(2)) for _ in range(2))
    )
    for packet in (vanished, sound):
        audit.sent(packet)
    audit.delivered(sound, 1.0)
    audit.duplicate(sound)
    audit.at_end()
    with pytest.raises(InvariantViolation) as caught:
        audit.check_links(Ledger(2))
    assert str(caught.value) == "1 copies of 'report' from node 1 to node -1 neither arrived nor were lost"


# --- receivers


def short(monkeypatch: Patch) -> None:
    arrive, hop = HopByHop.arrive, Direct._hop

    def arrived(self: HopByHop, packet: Any) -> None:
        if packet.flood.hop + 1 < packet.flood.hops:
            arrive(self, packet)
        else:
            self._take(packet)

    monkeypatch.setattr(HopByHop, "arrive", arrived)
    monkeypatch.setattr(Direct, "_hop", lambda self, batch, hops, now: hop(self, batch, max(hops - 1, 1), now))


def far(monkeypatch: Patch) -> None:
    hop = Direct._hop

    class Longer(Flood):
        def __init__(self, id: int, origin: int, hops: int, hop: int, unicast: bool = False, sent: float = 0.0) -> None:
            super().__init__(id, origin, hops + (hop == 1 and not unicast), hop, unicast, sent)

    monkeypatch.setattr(hop_by_hop, "Flood", Longer)
    monkeypatch.setattr(Direct, "_hop", lambda self, batch, hops, now: hop(self, batch, hops + (now == 1), now))


def shout(monkeypatch: Patch, hops: int) -> None:
    """Whispers that are for everybody so many hops away."""
    monkeypatch.setattr("tests.core.network.test_unicast.NEIGHBOURS", local.Neighbours(hops))


@pytest.mark.parametrize("mode", MODES)
def test_a_time_to_live_that_is_too_short(mode: str, monkeypatch: Patch) -> None:
    shout(monkeypatch, 3)
    gossip("line", 7, config={"aloud": True}, local={"mode": mode})
    short(monkeypatch)
    text = gossip_violation(topology="line", agents=7, local={"mode": mode})
    assert "never came to node" in text or "'whisper' peer" in text
    assert "its time to live is 3 hops, and they are 3 links apart" in text


@pytest.mark.parametrize("mode", MODES)
def test_a_time_to_live_that_is_too_long(mode: str, monkeypatch: Patch) -> None:
    shout(monkeypatch, 2)
    far(monkeypatch)
    text = gossip_violation(topology="line", agents=7, local={"mode": mode})
    assert "that was not for it: its time to live is 2 hops, and they are 3 links apart" in text


def test_under_random_latency_copies_may_run_out_of_hops_on_longer_ways(monkeypatch: Patch) -> None:
    """Here the first copy often comes by a longer way, so that not all agents within reach get every message."""
    shout(monkeypatch, 2)
    topology = {"kind": "erdos_renyi", "p": 0.4}
    network: dict[str, Any] = {"latency": {"kind": "exponential", "rate": 0.2}}
    result, _, engine = gossip(topology, 9, 6, 1, config={"aloud": True, "fanout": 0}, **network)
    full = 6 * sum(len(engine.graph.ball(agent, 2)) - 1 for agent in range(9))
    assert result.totals["deliveries"] < full
    short(monkeypatch)
    text = gossip_violation(topology=topology, agents=9, seed=1, **network)
    assert "never came to node" in text


@pytest.mark.parametrize("links", [1, 3])
def test_a_way_that_is_shorter_than_the_distance_or_longer_than_the_time_to_live(links: int) -> None:
    receivers = Receivers(4, graph_of("line", 4, 0), False, lambda agent: None)
    message = toys.News(total=1.0)
    receivers.sent(0, Neighbours(2), message, 5)
    receivers.handed(1, 0, message, 1, 6)
    with pytest.raises(InvariantViolation, match=f"of 2 hops took {links} to node 2, 2 links away"):
        receivers.handed(2, 0, message, links, 7)


def test_a_node_that_is_left_out(monkeypatch: Patch) -> None:
    hand_over = Direct._hand_over

    def deaf(self: Direct, batch: Any, hop: int) -> None:
        hear = self._hear
        self._hear = lambda node, *more: hear(node, *more) if node != 2 else None
        hand_over(self, batch, hop)
        self._hear = hear

    monkeypatch.setattr(Direct, "_hand_over", deaf)
    assert "never came to node 2, for which it was" in gossip_violation(topology="ring")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda agents: agents[1:], "never came to node 0, for which it was"),
        (lambda agents: [*agents, agents[-1]], "handed a 'news' 2 times, sent 1 times"),
    ],
)
def test_a_multicast_to_other_agents(wrong: Callable[[Any], Any], text: str, monkeypatch: Patch) -> None:
    receivers = Transport._receivers

    def changed(self: Transport, recipient: Any) -> Any:
        found = receivers(self, recipient)
        return found if recipient == SERVER else wrong(found)

    monkeypatch.setattr(Transport, "_receivers", changed)
    assert text in violation()


def test_a_datagram_that_comes_twice_to_one_does_not_stand_in_for_one_that_never_came_to_another() -> None:
    receivers = Receivers(3, None, False, lambda agent: None)
    message = toys.News(total=1.0)
    receivers.sent(SERVER, ALL_AGENTS, message, 5)
    for node in (0, 0, 1):
        receivers.handed(node, SERVER, message, None, 6)
    with pytest.raises(InvariantViolation, match="a 'news' of node -1 never came to node 2, for which it was"):
        receivers.at_end(frozenset())


@pytest.mark.parametrize("transport", ["reliable", "datagram"])
def test_a_message_that_its_host_gets_twice_though_links_carried_it_once(transport: str, monkeypatch: Patch) -> None:
    deliver = Router.deliver

    def twice(self: Router, packet: Packet) -> None:
        deliver(self, packet)
        if packet.destination == 2:
            deliver(self, packet)

    monkeypatch.setattr(Router, "deliver", twice)
    assert "node 2 was handed a 'news' 2 times, sent 1 times" in violation(network={"transport": transport})


def test_a_message_to_the_wrong_agent(monkeypatch: Patch) -> None:
    observe = toys.ToyServer.receive

    def one(self: toys.ToyServer, message: Any, source: int) -> Outbox:
        return [(source, sent) for _, sent in observe(self, message, source)]

    monkeypatch.setattr(toys.ToyServer, "receive", one)
    receivers = Transport._receivers
    monkeypatch.setattr(
        Transport,
        "_receivers",
        lambda self, recipient: [2] if recipient == 1 else receivers(self, recipient),
    )
    assert "node 2 was handed a 'news' of node -1 that was not for it" in violation()


# --- draws

FAULTY: dict[str, Any] = {"loss": 0.3, "duplicate": 0.3, "latency": {"kind": "exponential", "rate": 2.0}}


def other_streams(change: Callable[[int, str], tuple[int, str]], monkeypatch: Patch) -> None:
    init = Link.__init__

    def made(self: Link, model: Any, streams: Any, entity: int, way: str, *more: Any) -> None:
        def changed(role: str, entity: int, purpose: str) -> Any:
            return streams(role, *change(entity, purpose))

        init(self, model, changed, entity, way, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Link, "__init__", made)


def test_links_that_share_a_stream(monkeypatch: Patch) -> None:
    other_streams(lambda entity, purpose: (0 if "loss" in purpose else entity, purpose), monkeypatch)
    assert violation(network=FAULTY).startswith("two parts of the run draw from one stream, ('network', 0, 'loss")


def test_doublings_from_the_stream_of_losses(monkeypatch: Patch) -> None:
    def change(entity: int, purpose: str) -> tuple[int, str]:
        return entity, purpose.replace("duplicate up", "loss up")

    other_streams(change, monkeypatch)
    assert violation(network=FAULTY).startswith("two parts of the run draw from one stream, ('network', 0, 'loss up')")


@pytest.mark.parametrize("purpose", ["loss", "latency", "duplicate"])
def test_a_stream_of_another_name(purpose: str, monkeypatch: Patch) -> None:
    def change(entity: int, name: str) -> tuple[int, str]:
        return entity, f"{name} new" if name.startswith(purpose) else name

    other_streams(change, monkeypatch)
    assert "but the streams of the link from node" in violation(network=FAULTY, turns=20)


def test_one_draw_for_all_links(monkeypatch: Patch) -> None:
    common = np.random.default_rng(0)
    monkeypatch.setattr(BernoulliLoss, "__call__", lambda self: bool(common.random() < self._loss))
    assert "but the streams of the link from node" in violation(network=FAULTY, turns=20)


def test_acknowledgements_that_are_never_lost(monkeypatch: Patch) -> None:
    """They do not draw, so that the stream of the way back is behind."""
    monkeypatch.setattr(Link, "loses", lambda self, time: False)
    text = violation(network={"loss": 0.3, "latency": 0.1}, turns=20)
    assert "but the streams of the link from node" in text or "was drawn from more or less often" in text


@pytest.mark.parametrize(("direction", "way"), [("down", "node -1 to node 0"), ("up", "node 0 to node -1")])
def test_an_acknowledgement_goes_the_way_back(direction: str, way: str, monkeypatch: Patch) -> None:
    """Copies are drawn as ever; only acknowledgements, which are lost on the links of one direction, never are."""
    monkeypatch.setattr(Link, "loses", lambda self, time: False)
    links = [{"direction": direction, "loss": 0.5}]
    text = violation(agents=1, network={"links": links, "latency": 0.1}, turns=20)
    assert text.startswith("an acknowledgement arrives at ")
    assert f"but the streams of the link from {way} say: is lost" in text


def test_losses_after_the_network_has_healed(monkeypatch: Patch) -> None:
    lost = Link.loses

    def never_healed(self: Link, time: float) -> bool:
        self._heals = np.inf
        return lost(self, time)

    monkeypatch.setattr(Link, "loses", never_healed)
    assert "but the streams of the link" in violation(network={**FAULTY, "heals": 2.0}, turns=20)


def test_draws_beyond_the_copies_of_a_link(monkeypatch: Patch) -> None:
    carry = Link.carry

    def carried(self: Link, start: float, scalars: int, bits: int) -> Any:
        found = carry(self, start, scalars, bits)
        if start >= 6.0 and self._loses is not None:
            self._loses._rng.random()
        return found

    monkeypatch.setattr(Link, "carry", carried)
    network = {"links": [{"direction": "up", "loss": 0.01}], "transport": "datagram"}
    text = violation(network=network)
    found = re.search(r"of agent (\d) was drawn from more or less often than the link from node (\d) to node -1", text)
    assert found is not None, text
    assert found[1] == found[2]


@pytest.mark.parametrize("loss", [0.3, {"kind": "gilbert_elliott", "p": 0.2, "r": 0.4, "k": 0.9, "h": 0.2}])
@pytest.mark.parametrize("reorder", ["fifo", "free"])
@pytest.mark.parametrize("transport", ["reliable", "datagram"])
def test_links_as_they_are_pass(loss: Any, reorder: str, transport: str) -> None:
    up = {"direction": "up", "loss": loss, "reorder": reorder, "bandwidth": 50.0, "latency": FAULTY["latency"]}
    down = {**up, "direction": "down", "duplicate": 0.3}
    network = {"links": [up, down], "transport": transport, "heals": 15.0}
    result, _, _ = toys.run(plan(agents=3, turns=20, network=network, checks="full"), seed=2)
    assert result.totals["dropped"] > 0


def test_a_single_message_that_the_ledger_does_not_know() -> None:
    accounts = Accounts()
    accounts.put(Packet(Silent(), 0, 1, SERVER, 0, 0, 0, 0), 0)
    (found,) = accounts.mismatches(Ledger(2))
    assert found == "the ledger counts 0 'silent' up with 0 scalars, 1 with 0 scalars were sent"


class Silent(Message):
    kind: ClassVar[str] = "silent"
