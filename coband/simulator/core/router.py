"""The way between hosts and network: what a node sends goes out, what arrives goes to its host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts.agent_host import AgentHost
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.network.local import Local
from coband.simulator.core.network.transport import Transport
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Recipient
from coband.simulator.core.packet import Packet

if TYPE_CHECKING:
    from coband.simulator.core.wire.wire import Wire


class _ByAddress(dict[Address, Host]):
    """Hosts by address: those that are made when somebody needs them are asked for once."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        super().__init__()
        self._hosts = hosts

    def __missing__(self, address: Address) -> Host:
        found = self[address] = self._hosts[address]  # the server is last, so its address -1 finds it
        return found


class Router:
    """Takes messages of agents to the transport, or in a graph to the LOCAL service, and packets to their hosts.

    Attributes:
        last_delivery: when a message last reached a host.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hosts = _ByAddress(())
        self._local: Local | None = None
        self._wire: Wire | None = None
        self.last_delivery = 0.0

    def connect(
        self, hosts: Sequence[Host], transport: Transport, local: Local | None, wire: Wire | None = None
    ) -> None:
        """Say where messages go: ``hosts`` by address, the server's last; ``local`` in a graph; ``wire``: what is done
        to them before, None for nothing."""
        self._hosts, self._local, self._wire = _ByAddress(hosts), local, wire
        self._send = transport.send if local is None else local.send
        self._acknowledging = transport.mends
        self._plain = wire is None and local is None

    def send(self, source: Address, recipient: Recipient, message: Message, cause: int) -> None:
        """Put a message on the network, because of the event ``cause``."""
        if self._wire is None:
            self._send(source, recipient, message, cause)
        else:
            for receiver, sent in self._wire.leave(source, recipient, message):
                self._send(source, receiver, sent, cause)

    def deliver(self, packet: Packet) -> None:
        """A packet has reached its receiver; where nothing is acknowledged, its sender counts on that."""
        if not self._plain:
            if self._wire is not None and not self._acknowledging:
                self._wire.heard(packet)
            if self._local is not None:
                self._local.arrive(packet)
                return
            if self._wire is not None:
                packet = self._wire.taken(packet)
        self.last_delivery = self._clock.now
        self._hosts[packet.destination].on_packet(packet)

    def hand_over(self, packet: Packet) -> None:
        """Give a packet to its receiver's host, unless that leaves it out."""
        self.last_delivery = self._clock.now
        if self._wire is not None:
            message = self._wire.heard_by(packet.destination, packet.origin, packet.message)
            if message is None:
                self._hosts[packet.destination].arrives(packet)
                return
            packet = packet if message is packet.message else replace(packet, message=message)
        self._hosts[packet.destination].on_packet(packet)

    def accepts(self, agent: Address) -> frozenset[Address] | None:
        """Whose LOCAL messages an agent looks at; None for all."""
        host = self._hosts[agent]
        return host.accepts if isinstance(host, AgentHost) else None

    def hear(self, agent: Address, messages: Sequence[tuple[Address, Message]], cause: int, sent: float) -> None:
        """Give an agent the messages that reach it at one moment, each with its origin, who sent them at ``sent``."""
        self.last_delivery = self._clock.now
        host = self._hosts[agent]
        assert isinstance(host, AgentHost)
        if self._wire is not None:
            found = [(origin, self._wire.heard_by(agent, origin, message)) for origin, message in messages]
            messages = [(origin, message) for origin, message in found if message is not None]
        host.hear(messages, cause, sent)

    def acknowledged(self, packet: Packet) -> None:
        """The sender of a packet has learnt that it has arrived."""
        if self._wire is not None:
            self._wire.heard(packet)

    def give_up(self, packet: Packet, cause: int) -> None:
        """The transport has given up a packet: its sender is told and its receiver notices, unless it is of a flood."""
        if self._wire is not None:
            self._wire.lost(packet)
        if packet.own:
            self._hosts[packet.source].on_expiry(packet, cause)
            self._hosts[packet.destination].on_silence(packet.source, cause)
