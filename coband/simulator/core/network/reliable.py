"""The reliable transport: acknowledgement, repetition after a timeout, order per pair, and giving up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coband.simulator.core.clock.clock import DELIVERY, TIMER
from coband.simulator.core.network.network import ACKNOWLEDGEMENTS
from coband.simulator.core.network.transport import Receiving, Transport
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.records import trace as tr


class ReliableTransport(Transport):
    """Every message exactly once and in order per pair, over links that lose and duplicate copies.

    Each copy that arrives is acknowledged (an acknowledgement can be lost too); what is not acknowledged in time is
    sent again, each time after a longer wait; the receiver suppresses duplicates and holds what came too early. A node
    that is down neither acknowledges nor retransmits; it resumes when it is up again. Nothing is repeated to or by a
    node that is down for good: it is given up instead. A message that is given up is never delivered, even if a copy is
    still on its way, and its sender is told.
    """

    mends = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._timeouts: dict[tuple[Address, Address], float] = {}
        self._put_off: dict[Address, list[Packet]] = {}  # repetitions that wait for their sender
        self._kept: dict[Address, list[Receiving]] = {}  # messages in order that wait for their receiver

    @property
    def postponed(self) -> bool:
        return bool(self._put_off or self._kept)

    def _put(self, packet: Packet) -> float:
        left = super()._put(packet)
        first = self._timeouts.get(packet.pair)
        if first is None:
            first = self._timeouts[packet.pair] = self._network.timeout(*packet.pair)
        wait = self._network.config.retransmission.wait(first, packet.attempts)
        self._clock.at(left + wait, TIMER, packet.source, self._overdue, packet)
        return left

    def _overdue(self, packet: Packet) -> None:
        if (packet.first or packet).acknowledged:
            self.idle_timers -= 1
        elif packet.source not in self._down:
            self._repeat(packet)
        elif packet.source in self._gone:
            self._give_up(packet, "gone")
        else:
            self._put_off.setdefault(packet.source, []).append(packet)

    def _repeat(self, packet: Packet) -> None:
        if packet.destination in self._gone:
            self._give_up(packet, "gone")
        elif self._may_repeat(packet):
            self._ledger.repetition(packet.scalars, self._ledger.bits_of(packet.message))
            self._event(tr.RETRANSMIT, packet)
            self._put(replace(packet, first=packet.first or packet))
        else:
            self._give_up(packet)

    def _may_repeat(self, packet: Packet) -> bool:
        """Whether a copy may follow: not too many have been sent, nor for longer than nodes have patience."""
        patience = self._network.config.recovery.patience
        within = patience is None or not packet.own or self._clock.now < packet.sent + patience
        return within and self._limit(packet) == "patience"

    def _limit(self, packet: Packet) -> str:
        """What ends its copies: ``max_attempts``, once there have been so many, else the nodes' ``patience``."""
        most = 1 if packet.withheld else self._network.config.retransmission.max_attempts
        return "max_attempts" if packet.attempts >= most else "patience"

    def _give_up(self, packet: Packet, why: str = "") -> None:
        receiving, first = self._receiving.setdefault(packet.pair, Receiving()), packet.first or packet
        if packet.number < receiving.expected or packet.number in receiving.held:
            first.acknowledged = True  # it has arrived, though no acknowledgement of it has
        else:
            seq = self._expire(packet, why or self._limit(packet))
            receiving.skipped.add(packet.number)
            first.expired = packet.expired = True
            self._handler.give_up(packet, seq)
            self._release(receiving, packet.destination)

    def came_up(self, node: Address) -> None:
        """Hand over and repeat what had to wait while the node was down."""
        for receiving in self._kept.pop(node, ()):
            self._release(receiving, node)
        for packet in self._put_off.pop(node, ()):
            self._repeat(packet)

    def went(self, node: Address) -> None:
        self._kept.pop(node, None)
        for packet in self._put_off.pop(node, ()):
            self._give_up(packet, "gone")

    def close(self) -> None:
        """Lost is what has arrived at a node that went down for good before it was its turn."""
        for (_, destination), receiving in self._receiving.items():
            for packet in receiving.held.values() if destination in self._gone else ():
                self._lost(packet, "down")
                self._expire(packet, "gone")

    def _expire(self, packet: Packet, why: str) -> int:
        self._audit.gave_up(packet)
        return self._event(tr.EXPIRE, packet, reason=self._trace.names[why])

    def _put_in_order(self, packet: Packet) -> None:
        receiving = self._receiving.setdefault(packet.pair, Receiving())
        self._acknowledge(packet)
        if packet.number < receiving.expected or packet.number in receiving.held or packet.number in receiving.skipped:
            self._audit.duplicate(packet)
            self._event(tr.DUPLICATE, packet, reason=self._trace.names["suppressed"])
            return
        super()._put_in_order(packet)

    def _release(self, receiving: Receiving, node: Address) -> None:
        """The same; when the node is down, later."""
        if node not in self._down:
            super()._release(receiving, node)
        elif node not in self._gone:
            self._kept.setdefault(node, []).append(receiving)

    def _acknowledge(self, packet: Packet) -> None:
        self._ledger.acknowledgement()
        if self._network.cut_off(packet.destination, packet.source, self._clock.now):
            return
        link = self._network.link(packet.destination, packet.source, ACKNOWLEDGEMENTS)
        arrival = self._clock.now
        if link is not None:
            if link.loses(arrival):
                return
            arrival += link.latency()
        self._clock.at(arrival, DELIVERY, packet.source, self._acknowledged, packet)

    def _acknowledged(self, packet: Packet) -> None:
        first = packet.first or packet
        if first.acknowledged or first.expired or packet.source in self._down:
            return
        first.acknowledged = True
        self.idle_timers += 1
        self._handler.acknowledged(packet)
