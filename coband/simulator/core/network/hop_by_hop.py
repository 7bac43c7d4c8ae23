"""LOCAL messages whose copies travel one by one: for links that delay, lose or limit them, and nodes that fail."""

from __future__ import annotations

from coband.simulator.core.clock.clock import TIMER
from coband.simulator.core.network.local import Local
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.packet import Flood, Packet


class HopByHop(Local):
    """Walks every copy over every link, whatever the links do to it."""

    def _flood(self, origin: Address, hops: int, message: Message, cause: int) -> None:
        flood = Flood(self._number(origin), origin, hops, 1, sent=self._run.clock.now)
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
