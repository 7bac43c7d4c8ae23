"""The simulator's links and transports with their two ends in two processes.

The sender's process draws what a link does to a copy, and hands the copy over when the link would deliver it: the
network between the processes is taken to be quicker than the links of the scenario. Acknowledgements come back the
same way. What the simulator's transport knows of both ends at once, such as that a message which is given up has not
arrived, two processes settle with frames that no link delays: ``skip``, ``skipped`` and ``silence``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from coband import SERVER, Address, Message
from coband.extending import (
    Network,
    Packet,
    Receiving,
    ReliableTransport,
    Router,
    RunContext,
    Transport,
    clock,
    invariants,
    what_was_done,
)
from coband.extensions.live.codec import Codec
from coband.extensions.live.schema import PASSING, Ack, Copy, Kinds, Passing, Settling, Silence, Skip, Skipped

Post = Callable[[Address, Passing], None]
"""Sends a frame to the process in which a node is."""


class LiveAudit(invariants.Audit):
    """Counts the fate of the copies that one process has to do with; the sums of all are checked at the end."""

    def delivered(self, packet: Packet) -> None:
        self.copies[packet.message.kind].delivered += 1
        if self._ordered:
            self._in_order(packet)

    def dropped(self, packet: Packet) -> None:
        self.copies[packet.message.kind].dropped += 1

    def skip(self, pair: tuple[Address, Address], number: int) -> None:
        """The sender of a message has given it up."""
        self._skipped.add((*pair, number))


class LocalRouter(Router):
    """Hands over packets to the hosts of this process, and silences to those elsewhere."""

    post: Post
    tells = False
    """Whether it tells senders what has arrived, as nothing else does."""

    def deliver(self, packet: Packet) -> None:
        if self.tells:
            self.post(packet.source, Ack(*packet.pair, packet.number, self._clock.now))
        super().deliver(packet)

    def give_up(self, packet: Packet, cause: int) -> None:
        if self._wire is not None:
            self._wire.lost(packet)
        self._hosts[packet.source].on_expiry(packet, cause)
        self.post(packet.destination, Silence(packet.source, packet.destination, cause, self._clock.now))

    def silence(self, frame: Silence) -> None:
        """A node of this process notices that something does not come."""
        self._hosts[frame.destination].on_silence(frame.source, frame.cause)


class OverSockets(Transport):
    """Sends each copy once to other processes and takes theirs.

    Connections lose none, so that this is also a reliable transport over sound links.

    Args:
        run: what the nodes of this process share.
        network: the links; those that begin in this process are used.
        router: to the hosts of this process.
        ordered: messages of a pair do not overtake each other.
        codec: writes and reads messages.
        post: sends a frame to the process in which a node is.
        first: number of this process's first message.
        told: whether receivers tell what has arrived, as encodings that remember need it.

    Attributes:
        takes: the kinds of frames that other processes may send it.
    """

    def __init__(
        self,
        run: RunContext,
        network: Network,
        router: LocalRouter,
        ordered: bool,
        codec: Codec,
        post: Post,
        first: int,
        told: bool = False,
        withholds: bool = False,
    ) -> None:
        super().__init__(run, network, router, self._written, ordered, withholds)
        self._told, self._pending = told, dict[tuple[Address, Address, int], Packet]()
        self.takes: Kinds = PASSING if self.mends else (Copy, Ack) if told else (Copy,)
        self._codec, self._post, self._messages = codec, post, first
        self._ingress, network.ingress = network.ingress, None  # it is where the server is
        self._bodies: WeakKeyDictionary[Message, bytes] = WeakKeyDictionary()
        self.written_bytes = 0
        self.lateness: list[float] = []  # from when copies should have left to when they did
        self.transits: list[float] = []  # from there to the process of their receiver

    def _written(self, message: Message) -> str:
        """Encode a message that is sent; the trace says how many bytes it takes, and what was done to it."""
        body = self._bodies[message] = self._codec.encode(message)
        return json.dumps({"bytes": len(body), **what_was_done(message)})

    def _schedule(self, packet: Packet, arrival: float) -> None:
        self._clock.at(arrival, clock.DELIVERY, packet.destination, self._depart, (arrival, packet))

    def _depart(self, due: tuple[float, Packet]) -> None:
        """A copy has passed its link: hand it to the process of its receiver."""
        arrival, packet = due
        if packet.destination in self._down:
            self._lost(packet, "down")
            return
        self.lateness.append(self._clock.now - arrival)
        body = self._bodies[packet.message]
        self.written_bytes += len(body)
        numbers = (packet.number, packet.id, packet.send, packet.attempts)
        self._post(packet.destination, Copy(*packet.pair, *numbers, self._clock.now, body))

    def packet_of(self, frame: Copy) -> Packet:
        """The packet in a frame.

        Raises:
            WireError: it holds no valid message.
        """
        message = self._codec.decode(frame.message, frame.source)
        kind = self._trace.names[message.kind]
        return Packet(
            message,
            frame.source,
            frame.destination,
            id=frame.id,
            number=frame.number,
            send=frame.send,
            kind=kind,
            scalars=message.scalars,
            attempts=frame.attempts,
        )

    def take(self, packet: Packet) -> None:
        """A copy has come from another process."""
        if packet.destination == SERVER and self._ingress is not None:
            arrival = self._ingress.leave(self._clock.now, packet.scalars, self._bits(packet))
            self._clock.at(arrival, clock.DELIVERY, SERVER, self._arrive, packet)
        else:
            self._arrive(packet)

    def _put(self, packet: Packet) -> float:
        if self._told or self.mends:
            self._pending[*packet.pair, packet.number] = packet
        return super()._put(packet)

    def lose(self, packet: Packet) -> None:
        """The process of a copy's receiver is gone."""
        self._lost(packet, "down")

    def settle(self, frame: Settling) -> None:
        """Take what the transport at the other end says of a copy: that it has arrived, or may be lost."""
        packet = self._pending.pop(frame[:3], None)
        if packet is not None:
            self._handler.acknowledged(packet)


class LiveReliable(OverSockets, ReliableTransport):
    """Acknowledgement, repetition and giving up, where links lose copies."""

    _audit: LiveAudit
    _handler: LocalRouter

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._asked: set[Packet] = set()  # whether they have arrived; no timer of theirs runs any more

    def _acknowledged(self, packet: Packet) -> None:
        """An acknowledgement has passed its link: hand it to the process of the sender."""
        self._post(packet.source, Ack(*packet.pair, packet.number, self._clock.now))

    def _repeat(self, packet: Packet) -> None:
        if packet.destination in self._gone:
            self._skipped(packet, False, "gone")
        elif self._may_repeat(packet):
            super()._repeat(packet)
        else:
            self._asked.add(packet)
            self._post(packet.destination, Skip(*packet.pair, packet.number, self._clock.now))

    def settle(self, frame: Settling) -> None:
        if isinstance(frame, Silence):
            self._handler.silence(frame)
            self._release(self._receiving.setdefault(frame[:2], Receiving()), frame.destination)
            return
        key = frame[:3]
        if isinstance(frame, Skip):
            self._skip(*key)
            return
        packet = self._pending.get(key)
        if packet is None or (isinstance(frame, Skipped) and packet not in self._asked):
            return
        first = packet.first or packet
        if isinstance(frame, Skipped):
            self._skipped(packet, frame.has)
        elif packet in self._asked:
            first.acknowledged = True
        else:
            ReliableTransport._acknowledged(self, packet)
        if first.acknowledged or packet.expired:
            del self._pending[key]
            self._asked.discard(packet)

    def _skip(self, source: Address, destination: Address, number: int) -> None:
        """The sender wants to give a message up: agree, unless it has arrived."""
        receiving = self._receiving.setdefault((source, destination), Receiving())
        has = number < receiving.expected or number in receiving.held
        if not has:
            receiving.skipped.add(number)
            self._audit.skip((source, destination), number)
        self._post(source, Skipped(source, destination, number, has, self._clock.now))

    def went(self, node: Address) -> None:
        """Whether a message has arrived at a node that is gone nobody answers."""
        super().went(node)
        for packet in [packet for packet in self._asked if packet.destination == node]:
            self._asked.discard(packet)
            self._pending.pop((*packet.pair, packet.number), None)
            self._skipped(packet, False, "gone")

    def _skipped(self, packet: Packet, has: bool, why: str = "") -> None:
        if has:
            (packet.first or packet).acknowledged = True
            return
        seq = self._expire(packet, why or self._limit(packet))
        packet.expired = True
        self._handler.give_up(packet, seq)
