"""Transports that lose or delay chosen messages, and say what the draws of links are for.

A message is lost where it ends its way: the copy that would have been taken in is lost instead, so that everything
before that moment is as it was. What follows is the transport's affair: datagrams are not repeated; a reliable
transport repeats the message after its timeout, and holds later messages of the pair until it is there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from operator import attrgetter
from typing import Any

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.clock.clock import DELIVERY, TIMER
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.reliable import ReliableTransport
from coband.simulator.core.network.transport import Describe, PacketHandler, Transport
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.run_context import RunContext
from coband.simulator.core.whatif.addresses import AddressedNetwork
from coband.simulator.core.whatif.changes import REASON, Key, MessageChange, WhatIf, key_of

UNCHANGED = MessageChange()


class Datagrams(Transport):
    """A transport that sends each message once."""

    def __init__(
        self,
        run: RunContext,
        config: NetworkConfig,
        streams: Streams,
        handler: PacketHandler,
        describe: Describe | None,
        whatif: WhatIf,
    ) -> None:
        network = AddressedNetwork(config, streams, whatif.book)
        super().__init__(run, network, handler, describe, config.transport == "reliable")
        self._book, self._changes = whatif.book, whatif.messages
        self._met: set[Key] = set()

    def _put(self, packet: Packet) -> float:
        self._book.about_copy(packet)
        return super()._put(packet)

    def _change_of(self, packet: Packet) -> MessageChange:
        return self._changes.get(key_of(packet), UNCHANGED)

    def _loses(self, packet: Packet, change: MessageChange) -> bool:
        """Whether the copy that has come is the one that is lost."""
        key = key_of(packet)
        if not change.lost or (key in self._met and not change.for_good):
            return False
        self._met.add(key)
        return True

    def _arrive(self, packet: Packet) -> None:
        change = self._change_of(packet)
        if change is UNCHANGED or packet.destination in self._down:
            super()._arrive(packet)
        elif self._loses(packet, change):
            self._lost(packet, REASON)
        elif change.delay:
            self._clock.at(self._clock.now + change.delay, DELIVERY, packet.destination, super()._arrive, packet)
        else:
            super()._arrive(packet)


class Mending(Datagrams, ReliableTransport):
    """A reliable transport over links that lose copies of themselves."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._copies: Counter[Key] = Counter()  # taken after the first one

    def _lost(self, packet: Packet, why: str) -> None:
        super()._lost(packet, why)
        if why == REASON:
            self._landed(packet, lost=True)

    def _acknowledge(self, packet: Packet) -> None:
        receiving = self._receiving[packet.pair]
        if packet.number < receiving.expected or packet.number in (*receiving.held, *receiving.skipped):
            self._copies[key_of(packet)] += 1
        self._book.about_acknowledgement(packet, self._copies[key_of(packet)])
        super()._acknowledge(packet)

    def _repeat(self, packet: Packet) -> None:
        if self._change_of(packet).for_good:
            self._give_up(packet)
        else:
            super()._repeat(packet)


class InOrder(Datagrams):
    """A reliable transport over links that lose nothing: only what the what-if run loses is repeated.

    Every other message takes the time that it took in the original run, in which nothing had to be acknowledged.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._awaited: dict[tuple[Address, Address], list[int]] = {}  # numbers of changed messages on their way
        self._held: dict[tuple[Address, Address], list[Packet]] = {}

    def _put(self, packet: Packet) -> float:
        left = super()._put(packet)
        change = self._change_of(packet)
        if packet.attempts == 1 and change is not UNCHANGED:
            self._awaited.setdefault(packet.pair, []).append(packet.number)
            if change.lost:
                wait = self._network.config.retransmission.wait(self._network.timeout(*packet.pair), 1)
                self._clock.at(left + wait, TIMER, packet.source, self._overdue, packet)
        return left

    def _in_turn(self, packet: Packet, arrival: float) -> float:
        return arrival if packet.attempts > 1 else super()._in_turn(packet, arrival)

    def _loses(self, packet: Packet, change: MessageChange) -> bool:
        return change.lost and (packet.attempts == 1 or change.for_good)

    def _arrive(self, packet: Packet) -> None:
        change = self._change_of(packet)
        if packet.expired or self._loses(packet, change):
            self._lost(packet, REASON)
        elif change.delay:
            self._clock.at(self._clock.now + change.delay, DELIVERY, packet.destination, self._arrive_late, packet)
        else:
            self._arrive_late(packet)

    def _arrive_late(self, packet: Packet) -> None:
        """A copy is there; unless an earlier message of its pair is still awaited, it is taken in."""
        awaited = self._awaited.get(packet.pair, ())
        if awaited and packet.number > awaited[0]:
            self._held.setdefault(packet.pair, []).append(packet)
            return
        Transport._arrive(self, packet)
        if packet.number in awaited:
            self._settle(packet)

    def _settle(self, packet: Packet) -> None:
        """A changed message has arrived or is given up: take in what has waited for it."""
        self._awaited[packet.pair].remove(packet.number)
        for held in sorted(self._held.pop(packet.pair, ()), key=attrgetter("number")):
            self._arrive_late(held)

    def _overdue(self, packet: Packet) -> None:
        """The timeout of a message that is lost: send it again, or give it up."""
        if self._change_of(packet).for_good:
            seq = self._event(tr.EXPIRE, packet, reason=self._trace.names[REASON])
            self._audit.gave_up(packet)
            packet.expired = True
            self._handler.give_up(packet, seq)
            self._settle(packet)
        else:
            self._ledger.repetition(packet.scalars, self._ledger.bits_of(packet.message))
            self._event(tr.RETRANSMIT, packet)
            self._put(replace(packet))
