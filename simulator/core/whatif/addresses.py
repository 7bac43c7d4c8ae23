"""Addresses of random draws: a message keeps its latency, its losses and its handling time in a what-if run.

In an ordinary run the n-th copy on a link takes the n-th draw of the link's streams. If a message is lost and sent
again, or is no longer sent, all later copies of that link would take other draws than before. A what-if run therefore
looks draws up by what they are for: the n-th message of a pair of nodes, the attempt, and whether the copy is the
message or its acknowledgement. The original run writes down which draw each of them has had. What the original run did
not have gets a stream of its own, named after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from coband.simulator.core.hosts.speed import SlowPeriod
from coband.simulator.core.network.links import Link, LinkModel
from coband.simulator.core.network.loss import loss_process
from coband.simulator.core.network.network import Network, NetworkConfig
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import BaseDistribution, Draws
from coband.simulator.core.randomness.streams import Streams

Positions = dict[Hashable, int]
Stream = tuple[str, int, str]
Make = Callable[[np.random.Generator], Callable[[], Any]]


class AddressBook:
    """Which draw of its stream everything has had in the original run.

    Args:
        wanted: numbers of the sends whose messages are to be found.

    Attributes:
        writing: the original run is going on.
        about: what the next draws of links are for.
        found: (number of the send, source, destination, number within the pair) of the messages of wanted sends.
    """

    def __init__(self, wanted: Collection[int] = ()) -> None:
        self.writing = True
        self.about: Hashable = None
        self.found: list[tuple[int, Address, Address, int]] = []
        self._wanted = frozenset(wanted)
        self._positions: dict[Stream, Positions] = {}

    def positions(self, stream: Stream) -> Positions:
        """The positions in one stream."""
        return self._positions.setdefault(stream, {})

    def about_copy(self, packet: Packet) -> None:
        """The next draws are for a copy that is put on its link."""
        self.about = packet.number, packet.attempts
        if self.writing and packet.attempts == 0 and packet.id in self._wanted:
            self.found.append((packet.id, packet.source, packet.destination, packet.number))

    def about_acknowledgement(self, packet: Packet, arrival: int) -> None:
        """The next draws are for the acknowledgement of a copy, after so many that have been taken before."""
        self.about = packet.number, arrival, "acknowledged"


class AddressedDraws:
    """The draws of one stream, found by what they are for.

    Args:
        book: of the run.
        streams: of the replication.
        stream: name of the stream.
        make: what draws successive values from a generator.
    """

    def __init__(self, book: AddressBook, streams: Streams, stream: Stream, make: Make) -> None:
        self._book, self._streams, self._stream, self._make = book, streams, stream, make
        self._positions = book.positions(stream)
        self._draw = make(streams(*stream))
        self._values: list[Any] = []

    def __call__(self) -> Any:
        """The draw for what the book is about."""
        return self.about(self._book.about)

    def about(self, address: Hashable) -> Any:
        """The draw for something."""
        if self._book.writing:
            self._positions[address] = len(self._positions)
            return self._draw()
        place = self._positions.get(address)
        if place is None:
            role, entity, purpose = self._stream
            return self._make(self._streams(role, entity, f"{purpose}, what if: {address}"))()
        while len(self._values) <= place:
            self._values.append(self._draw())
        return self._values[place]


class AddressedTimes(Draws):
    """Times of handling messages, found by the message.

    Args:
        slow_period: when the node is slower; None for never.
    """

    __slots__ = ("_draws", "_seen", "_slow_period")

    def __init__(
        self,
        book: AddressBook,
        streams: Streams,
        index: int,
        distribution: BaseDistribution,
        factor: float,
        slow_period: SlowPeriod | None,
    ) -> None:
        super().__init__(distribution, streams("compute", index, "handling"), factor)
        self._draws = AddressedDraws(
            book, streams, ("compute", index, "handling"), lambda rng: Draws(distribution, rng, factor)
        )
        self._slow_period = slow_period
        self._seen: Counter[Hashable] = Counter()

    def __call__(self, about: object = None) -> float:
        """The time of handling a packet; several timers, which have no number, are told apart by their order."""
        assert isinstance(about, Packet)
        address = about.source, about.destination, about.number, about.expired, about.timer
        self._seen[address] += 1
        value: float = self._draws.about((*address, self._seen[address]))
        return value if self._slow_period is None else value * self._slow_period.factor()


class AddressedLink(Link):
    """A link whose draws are found by what they are for."""

    __slots__ = ()

    def __init__(
        self, model: LinkModel, streams: Streams, entity: int, way: str, heals: float, book: AddressBook
    ) -> None:
        super().__init__(model, streams, entity, way, heals)

        def addressed(purpose: str, make: Make) -> Any:
            return AddressedDraws(book, streams, ("network", entity, f"{purpose} {way}"), make)

        def latency(rng: np.random.Generator) -> Draws:
            return Draws(model.latency, rng)

        if self._latency is not None:
            self._latency = addressed("latency", latency)
        if self._loses is not None:
            self._loses = addressed("loss", lambda rng: loss_process(model.loss, rng))
        if self._twice is not None:
            self._twice = addressed("duplicate", lambda rng: loss_process(model.duplicate, rng))
        if self._again is not None:
            self._again = addressed("duplicate latency", latency)


class AddressedNetwork(Network):
    """A network of such links."""

    def __init__(self, config: NetworkConfig, streams: Streams, book: AddressBook) -> None:
        super().__init__(config, streams)
        self._book = book

    def _linked_by(self, source: Address, destination: Address, entity: int, way: str) -> Link:
        return AddressedLink(self.model(source, destination), self._streams, entity, way, self.heals, self._book)
