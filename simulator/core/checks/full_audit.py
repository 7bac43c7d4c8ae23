"""The accounts of ``checks: full``: every copy and every bit by link, and the pulls on their way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Set
from weakref import WeakKeyDictionary

from coband.simulator.core.audit.invariants import Audit, Copies, InvariantViolation
from coband.simulator.core.audit.ledger import DOWN, UP, Ledger
from coband.simulator.core.checks.accounts import Accounts
from coband.simulator.core.checks.draws import LinkDraws
from coband.simulator.core.checks.payloads import numbers_in
from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.outbox import SERVER, Address
from coband.simulator.core.packet import Flood, Packet


class FullAudit(Audit):
    """The cheap checks, the fate of copies link by link, and the pulls on their way.

    Attributes:
        underway: pulls in uploads that the server has not handled yet.
        lost: pulls in uploads that it will never get.
        given_up_by: of these, pulls in uploads that were given up, by the agent that knows of it and has not taken them
            back.
        accounts: the ledger, kept a second time.
        acknowledges: whether nodes acknowledge copies.
        draws: the replays of links; None where none are recorded.
        bits: that nodes have put on links (UP), and that have reached them (DOWN).
        bits_of: of a copy of a message, with its header.
    """

    full = True

    def __init__(self, ordered: bool, clock: Clock, down: Set[int] = frozenset()) -> None:
        super().__init__(ordered, down)
        self._clock = clock
        self._links: dict[tuple[Address, Address, str], Copies] = defaultdict(Copies)
        self._due: Counter[tuple[int, Address, float]] = Counter()
        self._sizes: WeakKeyDictionary[Message, int] = WeakKeyDictionary()
        self.accounts = Accounts()
        self.acknowledges = False
        self.draws: LinkDraws | None = None
        self.underway = self.lost = 0
        self.given_up_by: Counter[Address] = Counter()
        self.bits: Counter[tuple[Address, str]] = Counter()
        self.bits_of: Callable[[Message], int] = lambda message: 0

    def _link(self, packet: Packet) -> Copies:
        return self._links[packet.source, packet.destination, packet.message.kind]

    def sent(self, packet: Packet) -> None:
        super().sent(packet)
        self._link(packet).sent += 1
        if not packet.withheld:
            self.bits[packet.source, UP] += self.bits_of(packet.message)
        self.accounts.put(packet, self.size(packet.message))
        if not packet.attempts and packet.destination == SERVER:
            self.underway += packet.message.pulls

    def size(self, message: Message) -> int:
        """Scalars that a message carries, counted entry by entry."""
        size = self._sizes.get(message)
        if size is None:
            size = self._sizes[message] = numbers_in(message)
        return size

    def carried(self, packet: Packet, start: float, left: float, arrivals: tuple[float, ...]) -> None:
        if self.draws is not None:
            self.draws.carried(packet, self._clock.now, start, left, arrivals)

    def acknowledged(self, packet: Packet, now: float, arrival: float) -> None:
        if self.draws is not None:
            self.draws.acknowledged(packet, now, arrival)

    def duplicated(self, packet: Packet) -> None:
        super().duplicated(packet)
        self._link(packet).duplicated += 1

    def due(self, packet: Packet, time: float) -> None:
        self._due[packet.id, packet.destination, time] += 1

    def arrived(self, packet: Packet, now: float) -> None:
        key = packet.id, packet.destination, now
        if not self._due[key]:
            text = f"a copy of {packet.message.kind!r} arrived at {now:g}, which is not its sending time and its delays"
            raise InvariantViolation(text, packet.send)
        if packet.destination not in self._down:
            self.bits[packet.destination, DOWN] += self.bits_of(packet.message)
        self._due[key] -= 1
        if not self._due[key]:
            del self._due[key]
        if self.acknowledges and packet.destination not in self._down:
            self.accounts.acknowledged()

    def passed_on(self, flood: Flood, node: Address, cause: int) -> None:
        super().passed_on(flood, node, cause)
        self.accounts.deliveries += 1

    def dropped(self, packet: Packet) -> None:
        super().dropped(packet)
        self._link(packet).dropped += 1
        if not self._ordered and packet.destination == SERVER:
            self._lose(packet)

    def duplicate(self, packet: Packet) -> None:
        super().duplicate(packet)
        self._link(packet).duplicates += 1

    def delivered(self, packet: Packet, now: float) -> None:
        super().delivered(packet, now)
        self._link(packet).delivered += 1

    def gave_up(self, packet: Packet) -> None:
        super().gave_up(packet)
        if packet.destination == SERVER:
            self._lose(packet)
            if not packet.withheld:
                self.given_up_by[packet.source] += packet.message.pulls

    def _lose(self, packet: Packet) -> None:
        self.underway -= packet.message.pulls
        self.lost += packet.message.pulls

    def check_links(self, ledger: Ledger) -> None:
        """At the end: nothing is on the way, the ledger is right, and links have drawn for copies alone."""
        for (source, destination, kind), copies in self._links.items():
            if copies.in_flight:
                way = f"from node {source} to node {destination}"
                raise InvariantViolation(f"{copies.in_flight} copies of {kind!r} {way} neither arrived nor were lost")
        if self._due:
            raise InvariantViolation(f"{self._due.total()} copies never arrived at their time")
        for sentence in self.accounts.mismatches(ledger):
            raise InvariantViolation(sentence)
        if self.draws is not None:
            self.draws.at_end()
