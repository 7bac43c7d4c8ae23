"""What is on the way: one copy of a message between two nodes."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address


@dataclass(frozen=True, slots=True, eq=False)
class Flood:
    """Where a LOCAL message stands on its way through a graph (``core.network.local``).

    Attributes:
        id: number of the LOCAL message.
        origin: the agent that it is from.
        hops: its time to live, in links.
        hop: links passed when the packet arrives.
        unicast: it goes to one neighbour only, and its origin is told when it is given up.
        sent: when its origin sent it.
    """

    id: int
    origin: Address
    hops: int
    hop: int
    unicast: bool = False
    sent: float = 0.0


@dataclass(slots=True, eq=False)
class Packet:
    """One message on its way to one receiver.

    Attributes:
        id: number of the send; the copies of a multicast share it.
        number: position in the sequence of messages of this (source, destination), from 1.
        send: seq of the send event.
        sent: when it was sent by the node whose message it is.
        flood: of a LOCAL message; None in a star.
        attempts: which copy of the message it is, from 1; 0 before it was put on the link.
        first: the first copy, of one that repeats it; None of the first itself, which knows all that follows.
        acknowledged: the sender knows that the receiver has it.
        expired: the transport has given it up, and tells the sender.
        timer: it is a timer that the node has set for itself, or its host for it.
    """

    message: Message
    source: Address
    destination: Address
    id: int = -1
    number: int = 0
    send: int = -1
    kind: int = -1
    scalars: int = 0
    sent: float = 0.0
    flood: Flood | None = None
    attempts: int = 0
    acknowledged: bool = False
    expired: bool = False
    timer: bool = False
    first: Packet | None = None

    @property
    def origin(self) -> Address:
        """The node whose message it is; its source may only pass it on."""
        return self.source if self.flood is None else self.flood.origin

    @property
    def withheld(self) -> bool:
        """Whether its node is silent about it."""
        passage = self.message.passage
        return passage is not None and passage.withheld

    @property
    def hop(self) -> int:
        """Links passed by a LOCAL message, 0 for others."""
        return 0 if self.flood is None else self.flood.hop

    @property
    def pair(self) -> tuple[Address, Address]:
        """(source, destination)."""
        return self.source, self.destination

    @property
    def own(self) -> bool:
        """Whether it is its source's own message to its destination, and no copy of a flood."""
        return self.flood is None or self.flood.unicast
