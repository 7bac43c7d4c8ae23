"""Carrying messages: copies are put on the links of a network and handed to the receiving host, each once.

This is all that datagrams need, and a reliable transport where nothing can be lost: its receiving end only keeps the
order of each pair. Where something can be, see ``core.network.reliable``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from coband.simulator.core.clock.clock import DELIVERY, TIMER
from coband.simulator.core.network.network import REPETITIONS, Network
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Multicast, Recipient
from coband.simulator.core.nodes.outbox import NobodyThere
from coband.simulator.core.packet import Flood, Packet
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.ledger import DOWN, PEER, UP
from coband.simulator.core.run_context import RunContext

Describe = Callable[[Message], str | None]


class PacketHandler(Protocol):
    """Takes what the transport delivers or gives up."""

    def deliver(self, packet: Packet) -> None:
        """A packet has reached its receiver."""

    def acknowledged(self, packet: Packet) -> None:
        """The sender of a packet has learnt that it has arrived."""

    def give_up(self, packet: Packet, cause: int) -> None:
        """A packet will never reach its receiver; ``cause``: seq of the event."""


@dataclass(slots=True)
class Receiving:
    """What the receiving end of one pair knows."""

    expected: int = 1
    held: dict[int, Packet] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)

    def next(self) -> Packet | None:
        """Take the next message in order out of those that are held; None if it has not come."""
        while self.expected in self.skipped:
            self.skipped.remove(self.expected)
            self.expected += 1
        packet = self.held.pop(self.expected, None)
        self.expected += packet is not None
        return packet


class Transport:
    """Sends each message once (``datagram``), in order per pair where ``ordered``.

    Args:
        run: clock, accounts and who is down; what reaches a node that is down is lost.
        handler: takes packets that have reached their receiver, and those that were given up.
        describe: text of a message's payload for the trace, or None; None: nothing is said of any.
        ordered: messages of a pair do not overtake each other.
        withholds: messages may be lost behind their nodes.
    """

    def __init__(
        self,
        run: RunContext,
        network: Network,
        handler: PacketHandler,
        describe: Describe | None,
        ordered: bool,
        withholds: bool = False,
    ) -> None:
        self._clock, self._trace, self._down = run.clock, run.trace, run.down
        self._ledger, self._audit, self._energy = run.ledger, run.audit, run.energy
        self._gone = run.down.gone
        self._network, self._handler, self.describe, self._ordered = network, handler, describe, ordered
        self._redrawn = network.presence is not None
        self._hindered = bool(network.config.partitions) or self._redrawn or run.energy is not None
        self._ideal, self._withholds = network.config.ideal, withholds
        self._everyone = list(range(run.ledger.agents))
        self._messages = 0
        self._numbers: dict[int, int] = {}  # by pair
        self._receiving: dict[tuple[Address, Address], Receiving] = {}

    mends = False
    """Whether copies are acknowledged, repeated and given up."""
    idle_timers = 0
    """Number of scheduled timers that will do nothing, those of messages that are acknowledged already."""

    def send(self, source: Address, recipient: Recipient, message: Message, cause: int) -> None:
        receivers = self._receivers(recipient)
        if self._gone and not (receivers := self._reached(source, receivers, message, cause, recipient)):
            return
        ledger, kind, scalars, round = self._ledger, message.kind, message.scalars, message.round
        if source == SERVER:
            way = DOWN
            ledger.first_copies(kind, DOWN, receivers, scalars, round)
        elif recipient == SERVER:
            way = UP
            ledger.first_copies(kind, UP, [source], scalars, round)
        else:
            way = PEER
            ledger.peer_copies(kind, {source: len(receivers)}, scalars, round)
        ledger.carry(message, way, len(receivers))
        self._send(source, recipient if isinstance(recipient, int) else tr.EVERYONE, receivers, message, cause)

    def pass_on(
        self, source: Address, receivers: Sequence[Address], message: Message, cause: int, flood: Flood
    ) -> None:
        """Put a copy of a LOCAL message on the link to each of some neighbours of ``source``."""
        if self._gone or self._redrawn:
            to = receivers[0] if flood.unicast else None
            if not (receivers := self._reached(source, receivers, message, cause, to, flood)):
                return
        self._ledger.peer_copies(message.kind, {source: len(receivers)}, message.scalars, message.round)
        self._ledger.carry(message, PEER, len(receivers))
        self._send(source, receivers[0] if flood.unicast else tr.EVERYONE, receivers, message, cause, flood)

    def _reached(
        self,
        source: Address,
        receivers: Sequence[Address],
        message: Message,
        cause: int,
        recipient: object,
        flood: Flood | None = None,
    ) -> list[Address]:
        """Return those of some receivers that take part and have a link to ``source`` now.

        Who writes to a single one of which that is not true is told so at this moment.
        """
        network, now = self._network, self._clock.now
        reached = [one for one in receivers if one not in self._gone and network.leads(source, one, now)]
        if isinstance(recipient, int) and not reached:
            packet = Packet(message, source, recipient, send=cause, flood=flood, expired=True)
            self._clock.at(self._clock.now, TIMER, source, self._unsent, packet)
        return reached

    def _unsent(self, packet: Packet) -> None:
        self._audit.refused()
        self._handler.give_up(packet, packet.send)

    def take_number(self) -> int:
        """The number of a new send; the copies of a multicast share it."""
        self._messages += 1
        return self._messages - 1

    def _send(
        self,
        source: Address,
        peer: Address,
        receivers: Sequence[Address],
        message: Message,
        cause: int,
        flood: Flood | None = None,
    ) -> None:
        now, scalars, kind, id = self._clock.now, message.scalars, self._trace.names[message.kind], self._messages
        self._messages = id + 1
        hop, sent = (0, now) if flood is None else (flood.hop, flood.sent)
        detail = None if self.describe is None else self.describe(message)
        seq = self._trace.record_send(
            now, source, peer, message, id=id, cause=cause, copies=len(receivers), hop=hop, detail=detail
        )
        numbers, put = self._numbers, self._put
        for receiver in receivers:
            pair = source << 32 | receiver + 1  # a tuple takes twice as much memory
            number = numbers[pair] = numbers.get(pair, 0) + 1
            put(
                Packet(
                    message,
                    source,
                    receiver,
                    id=id,
                    number=number,
                    send=seq,
                    kind=kind,
                    scalars=scalars,
                    sent=sent,
                    flood=flood,
                )
            )

    def _receivers(self, recipient: Recipient) -> list[Address]:
        if isinstance(recipient, int):
            if not -1 <= recipient < len(self._everyone):
                last = len(self._everyone) - 1
                raise NobodyThere(f"there is no node {recipient}: write to SERVER, or to an agent 0 .. {last}")
            return [recipient]
        if not isinstance(recipient, Multicast):
            raise TypeError("in a star nobody has neighbours; send to SERVER or ALL_AGENTS")
        if recipient.excluding is None:
            return self._everyone
        return [agent for agent in self._everyone if agent != recipient.excluding]

    def _put(self, packet: Packet) -> float:
        """Put one copy on the link; returns the time at which it has left the sender."""
        self._audit.sent(packet)
        packet.attempts += 1
        now = start = self._clock.now
        if (self._withholds or self._hindered) and self._is_stopped(packet, now):
            return now
        if self._ideal:  # what leaves in order arrives in order
            self._schedule(packet, now)
            return now
        network, source = self._network, packet.source
        if source == SERVER and network.egress is not None:
            start = network.egress.leave(now, packet.scalars, self._bits(packet))
        link = network.link(source, packet.destination, REPETITIONS if packet.attempts > 1 else "")
        if link is None:
            self._arrive_at(packet, start)
            return start
        left, arrivals = link.carry(start, packet.scalars, 0 if link.stage is None else self._bits(packet))
        if not arrivals:
            self._lost(packet, "loss")
        elif len(arrivals) == 2:
            self._audit.duplicated(packet)
            self._event(tr.DUPLICATE, packet, reason=self._trace.names["link"])
        for arrival in arrivals:
            self._arrive_at(packet, arrival)
        return left

    def _is_stopped(self, packet: Packet, now: float) -> bool:
        """Whether a copy does not get to its link; sending it takes energy where there is a link."""
        if self._withholds and packet.withheld:
            self._lost(packet, "silent")
            return True
        if self._energy is not None:
            self._energy.up(packet.source, self._bits(packet))
        if why := self._network.cut_off(packet.source, packet.destination, now):
            self._lost(packet, why)
        return bool(why)

    def _bits(self, packet: Packet) -> int:
        """Bits of one copy, with its header."""
        return self._ledger.bits_of(packet.message) + self._ledger.header_bits

    def _arrive_at(self, packet: Packet, arrival: float) -> None:
        """A copy leaves its link at ``arrival``; at the server it may have to wait for the shared capacity."""
        if packet.destination == SERVER and self._network.ingress is not None:
            self._clock.at(arrival, DELIVERY, SERVER, self._enter_server, packet)
        else:
            self._schedule(packet, arrival)

    def _enter_server(self, packet: Packet) -> None:
        assert self._network.ingress is not None
        self._schedule(packet, self._network.ingress.leave(self._clock.now, packet.scalars, self._bits(packet)))

    def _schedule(self, packet: Packet, arrival: float) -> None:
        self._clock.at(arrival, DELIVERY, packet.destination, self._arrive, packet)

    def _lost(self, packet: Packet, why: str) -> None:
        self._audit.dropped(packet)
        self._event(tr.DROP, packet, reason=self._trace.names[why])

    def _arrive(self, packet: Packet) -> None:
        if packet.destination in self._down:
            self._lost(packet, "down")
            return
        if self._energy is not None:
            self._energy.down(packet.destination, self._bits(packet))
        if self._ordered:
            self._put_in_order(packet)
        else:
            self._hand_over(packet)

    def _put_in_order(self, packet: Packet) -> None:
        """Hold a copy until all earlier messages of its pair have come."""
        receiving = self._receiving.get(packet.pair)
        if receiving is None:
            receiving = self._receiving[packet.pair] = Receiving()
        if packet.number == receiving.expected and not receiving.held:  # as nearly always
            receiving.expected += 1
            self._hand_over(packet)
            return
        receiving.held[packet.number] = packet
        self._release(receiving, packet.destination)

    def _release(self, receiving: Receiving, node: Address) -> None:
        """Hand over the next message in order; one more that is in order then is a delivery of its own."""
        packet = receiving.next()
        if packet is not None:
            if receiving.held:
                self._clock.at(self._clock.now, DELIVERY, node, partial(self._release, receiving), node)
            self._hand_over(packet)

    def _hand_over(self, packet: Packet) -> None:
        self._audit.delivered(packet)
        self._handler.deliver(packet)

    def came_up(self, node: Address) -> None:
        """A node is up again."""

    def went(self, node: Address) -> None:
        """A node is down for good."""

    @property
    def postponed(self) -> bool:
        """Whether a copy waits for a node to be up."""
        return False

    def close(self) -> None:
        """The run is over: what waits for a node that is down for good is lost."""

    def _event(self, event: int, packet: Packet, reason: int = tr.NONE) -> int:
        return self._trace.record_copy(self._clock.now, event, packet.source, packet.destination, packet, reason)
