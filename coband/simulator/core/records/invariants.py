"""What must hold in every run: conservation of copies, order, and of pulls.

These checks are cheap and always run; ``checks: full`` adds ``core.twins.twins``. A violation stops the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass

from coband.simulator.core.nodes.outbox import called
from coband.simulator.core.packet import Flood, Packet


class InvariantViolation(Exception):
    """Something happened that must never happen; the message says what, ``cause`` is the seq of the event."""

    def __init__(self, text: str, cause: int = -1) -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(slots=True)
class Copies:
    """Fate of the copies of one kind of message."""

    sent: int = 0
    delivered: int = 0
    dropped: int = 0
    duplicates: int = 0
    duplicated: int = 0  # made by links; ``duplicates`` were suppressed
    expired: int = 0  # messages (not copies) that the transport gave up

    @property
    def in_flight(self) -> int:
        """Copies that are still on the way."""
        return self.sent + self.duplicated - self.delivered - self.dropped - self.duplicates


class Audit:
    """Counts the fate of every copy and checks each delivery.

    Args:
        ordered: deliveries of one pair must come in order, each once (reliable transport).
        down: the nodes that are down now.
    """

    def __init__(self, ordered: bool, down: Set[int] = frozenset()) -> None:
        self._ordered, self._down = ordered, down
        self.copies: dict[str, Copies] = defaultdict(Copies)
        self._last: dict[int, int] = defaultdict(int)  # by pair, in one number
        self._open: dict[tuple[int, int], int] = {}  # copies on the way, by (message, receiver)
        self._skipped: set[tuple[int, int, int]] = set()
        self._heard: set[tuple[int, int]] = set()
        self._refused = False

    def sent(self, packet: Packet) -> None:
        """A copy was put on a link; its sender must be up."""
        self.copies[packet.message.kind].sent += 1
        if packet.source in self._down:
            whom = called(packet.destination)
            text = f"{called(packet.source)} sent {packet.message.kind!r} to {whom} while it was down"
            raise InvariantViolation(text, packet.send)
        if not self._ordered:
            self._open[packet.id, packet.destination] = 1

    def duplicated(self, packet: Packet) -> None:
        """A link has doubled a copy."""
        self.copies[packet.message.kind].duplicated += 1
        if not self._ordered:
            self._open[packet.id, packet.destination] += 1

    def flooded(self, kind: str, copies: int, delivered: int, scalars: int) -> None:
        """Copies of a LOCAL message were put on ideal links; so many reached nodes that had not seen it."""
        fate = self.copies[kind]
        fate.sent += copies
        fate.delivered += delivered
        fate.duplicates += copies - delivered

    def ignored(self, packet: Packet) -> None:
        """A copy of a LOCAL message was handed to a node that had seen it."""
        copies = self.copies[packet.message.kind]
        copies.delivered -= 1
        copies.duplicates += 1

    def passed_on(self, flood: Flood, node: int, cause: int) -> None:
        """A LOCAL message is handed to a node: it must be within its time to live, and the first copy."""
        if flood.hop > flood.hops:
            raise InvariantViolation(f"a message of {flood.hops} hops reached {called(node)} after {flood.hop}", cause)
        if (flood.id, node) in self._heard or node == flood.origin:
            raise InvariantViolation(f"LOCAL message {flood.id} was handed to {called(node)} twice", cause)
        self._heard.add((flood.id, node))

    def dropped(self, packet: Packet) -> None:
        """A copy was lost."""
        self.copies[packet.message.kind].dropped += 1
        if not self._ordered:
            self._close(packet)

    def duplicate(self, packet: Packet) -> None:
        """A copy arrived that the receiver already had, and was suppressed."""
        self.copies[packet.message.kind].duplicates += 1

    def refused(self) -> None:
        """A node wrote to one that has left for good, so that no copy was sent."""
        self._refused = True

    def gave_up(self, packet: Packet) -> None:
        """The transport has given up a message."""
        self.copies[packet.message.kind].expired += 1
        self._skipped.add((*packet.pair, packet.number))

    def delivered(self, packet: Packet) -> None:
        """A message is handed to its receiver; it must have been sent, once, and in its turn."""
        copies = self.copies[packet.message.kind]
        copies.delivered += 1
        if copies.delivered + copies.dropped + copies.duplicates > copies.sent + copies.duplicated:
            raise InvariantViolation(f"more copies of {packet.message.kind!r} arrived than were sent", packet.send)
        if packet.destination in self._down:
            text = f"{packet.message.kind!r} was handed to {called(packet.destination)} while it was down"
            raise InvariantViolation(text, packet.send)
        if self._ordered:
            self._in_order(packet)
        else:
            self._close(packet)

    def _close(self, packet: Packet) -> None:
        """One of the copies of a datagram has come to its end."""
        key = packet.id, packet.destination
        left = self._open.pop(key, 0) - 1
        if left < 0:
            text = f"message {packet.id} was delivered to {called(packet.destination)} more often than links carried it"
            raise InvariantViolation(text, packet.send)
        if left:
            self._open[key] = left

    def _in_order(self, packet: Packet) -> None:
        pair = packet.source << 32 | packet.destination + 1
        expected = self._last[pair] + 1
        if self._skipped:
            while (*packet.pair, expected) in self._skipped:
                expected += 1
        if packet.number != expected:
            raise InvariantViolation(
                f"message {packet.number} ({packet.message.kind!r}) from {called(packet.source)} to "
                f"{called(packet.destination)} was delivered when "
                f"message {expected} was due: reliable transport hands over each message once and in order",
                packet.send,
            )
        self._last[pair] = expected

    def at_end(self) -> None:
        """When no event is left, no copy may be in flight."""
        for kind, copies in self.copies.items():
            if copies.in_flight != 0:
                raise InvariantViolation(f"{copies.in_flight} copies of {kind!r} neither arrived nor were lost")

    @property
    def dropped_copies(self) -> int:
        """Copies that were lost."""
        return sum(copies.dropped for copies in self.copies.values())

    @property
    def given_up(self) -> int:
        """Messages that the transport gave up."""
        return sum(copies.expired for copies in self.copies.values())

    @property
    def lost_for_good(self) -> bool:
        """True when some message never reached its receiver."""
        return (
            self._refused
            or self.given_up > 0
            or (not self._ordered and any(copies.dropped for copies in self.copies.values()))
        )


UNCOUNTED = (
    "; an agent writes `self.unshared += 1` in observe (and 0 when it has sent its pulls to a server, which adds the "
    "message's pulls to `self.applied`)"
)


def check_pulls(pulls: int, unshared: int, applied: int, in_flight_lost: bool) -> None:
    """At the end: the pulls that the server has taken in and those that agents still hold are all pulls, each once."""
    held = unshared + applied
    if held > pulls or unshared < 0 or (held < pulls and not in_flight_lost):
        raise InvariantViolation(
            f"the server has applied {applied} pulls and agents hold {unshared}, which must make {pulls} in all"
            f"{UNCOUNTED if held < pulls else ''}"
        )
