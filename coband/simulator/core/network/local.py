"""The LOCAL service: messages that go from neighbour to neighbour in a graph (Dubey and Pentland 2020, "Kernel Methods
for Cooperative Multi-Agent Contextual Bandits", section 3.1).

A message with a time to live of gamma hops reaches every agent at most gamma links from the one that sent it. The first
hop takes the link's latency; every node then passes it on once, one trial after it came, to all its neighbours but the
one that it came from. So without latencies it reaches distance h at h - 1 trials after it was sent, after that trial's
turns. A copy that reaches a node which has seen the message is a duplicate and goes no further.

*Transmissions* are the copies put on links, *deliveries* the first copies that reach an agent; on ideal links
deg(v) + sum of (deg(u) - 1) over the u at distance 1 .. gamma - 1, and |N_gamma(v)| - 1 per message of agent v.

A message to one neighbour makes one hop over their link: one transmission and, when it arrives, one delivery.

LOCAL messages of which copies travel one by one, over links that delay, lose or limit them, are at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection

from coband.simulator.core.clock.clock import TIMER
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Neighbours, Recipient
from coband.simulator.core.packet import Flood, Packet
from coband.simulator.core.records import trace as tr
from coband.simulator.core.run_context import RunContext

SEEN = "seen"
"""Reason of a duplicate that its receiver ignores."""


class Local(ABC):
    """Carries messages between agents of a graph: to one neighbour, or to all agents within a number of hops.

    Args:
        trial: the time after which a node passes a message on.
        deliver: called with the first copy that reaches an agent.
    """

    def __init__(
        self, graph: Graph, trial: float, run: RunContext, transport: Transport, deliver: Callable[[Packet], None]
    ) -> None:
        self._graph, self._trial, self._run, self._transport, self._deliver = graph, trial, run, transport, deliver
        self._seen: list[Collection[Address]] = []  # who has seen a message, by its number
        self._only = [(node,) for node in range(graph.nodes)]  # one of these where it is to one neighbour, to save room
        self._put_off: dict[Address, list[Packet]] = {}
        run.ledger.deliveries = 0

    def _next_trial(self) -> float:
        """One trial from now: the very time of the next turns, where these follow each other by a trial."""
        now, trial = self._run.clock.now, self._trial
        passed = round(now / trial)
        return (passed + 1) * trial if abs(passed * trial - now) <= 1e-9 * now else now + trial

    def send(self, origin: Address, recipient: Recipient, message: Message, cause: int) -> None:
        """Send ``message`` from ``origin``, because of the event ``cause``.

        Raises:
            ValueError: the recipient is neither neighbours nor one of them.
        """
        if isinstance(recipient, Neighbours):
            self._flood(origin, recipient.hops, message, cause)
        elif recipient in self._graph.adjacency[origin]:
            flood = Flood(self._number(()), origin, 1, 1, unicast=True, sent=self._run.clock.now)
            self._transport.pass_on(origin, (recipient,), message, cause, flood)
        else:
            raise ValueError(self._no_neighbour(origin, recipient))

    def _no_neighbour(self, origin: Address, recipient: Recipient) -> str:
        near = ", ".join(map(str, self._graph.adjacency[origin]))
        whom = f"agent {recipient}" if isinstance(recipient, int) else "all agents at once"
        whom = "the server" if recipient == SERVER else whom
        have = f"its neighbours are {near}" if near else "it has no neighbours"
        return f"agent {origin} cannot write to {whom}: {have}. In a graph agents write to NEIGHBOURS or to one of them"

    def _number(self, seen: Collection[Address]) -> int:
        """The number of a new LOCAL message that these have seen."""
        self._seen.append(seen)
        return len(self._seen) - 1

    @abstractmethod
    def _flood(self, origin: Address, hops: int, message: Message, cause: int) -> None:
        """Send a message to all agents within a number of hops."""

    def arrive(self, packet: Packet) -> None:
        """A copy has come over a link: hand over the first one and ignore any other."""
        self._take(packet)

    def _take(self, packet: Packet) -> bool:
        """Whether a copy is the first one that reaches its agent, which then gets it."""
        run, flood, node = self._run, packet.flood, packet.destination
        assert flood is not None
        seen = self._seen[flood.id]
        if node in seen:
            run.audit.ignored(packet)
            run.trace.record_copy(run.clock.now, tr.DUPLICATE, node, packet.source, packet, run.trace.names[SEEN])
            return False
        if isinstance(seen, set):
            seen.add(node)
        else:
            self._seen[flood.id] = self._only[node]
        run.ledger.deliveries = (run.ledger.deliveries or 0) + 1
        run.audit.passed_on(flood, node, packet.send)
        self._deliver(packet)
        return True

    def came_up(self, node: Address) -> None:
        """A node is up again: it passes on what became due while it was down."""
        for packet in self._put_off.pop(node, ()):
            self._forward(packet)

    def went(self, node: Address) -> None:
        """A node is down for good: it passes on nothing more."""
        self._put_off.pop(node, None)

    def _forward(self, packet: Packet) -> None:
        raise AssertionError("no copies travel one by one in this mode")

    @property
    def postponed(self) -> bool:
        """Whether something waits for a node to be up."""
        return bool(self._put_off)


class HopByHop(Local):
    """Walks every copy over every link, whatever the links do to it."""

    def _flood(self, origin: Address, hops: int, message: Message, cause: int) -> None:
        flood = Flood(self._number({origin}), origin, hops, 1, sent=self._run.clock.now)
        self._transport.pass_on(origin, self._graph.adjacency[origin], message, cause, flood)

    def arrive(self, packet: Packet) -> None:
        """Hand over the first copy and pass it on; ignore any other."""
        flood = packet.flood
        assert flood is not None
        if self._take(packet) and flood.hop < flood.hops:
            self._run.clock.at(self._next_trial(), TIMER, packet.destination, self._pass_on, packet)

    def _pass_on(self, packet: Packet) -> None:
        down, node = self._run.down, packet.destination
        if node not in down:
            self._forward(packet)
        elif node not in down.gone:
            self._put_off.setdefault(node, []).append(packet)

    def _forward(self, packet: Packet) -> None:
        flood, node = packet.flood, packet.destination
        assert flood is not None
        receivers = [other for other in self._graph.adjacency[node] if other != packet.source]
        if receivers:
            onwards = Flood(flood.id, flood.origin, flood.hops, flood.hop + 1, sent=flood.sent)
            self._transport.pass_on(node, receivers, packet.message, packet.send, onwards)
