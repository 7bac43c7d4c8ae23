"""The checks of ``checks: full``, beside the cheap ones of ``core.audit.invariants``.

After every message and turn: the node's own invariants; every pull is with its agent, on the way, lost for good, or
with the server, once. For every copy: it arrives when it was to arrive. At the end: per link and kind
sent + duplicated = delivered + dropped + suppressed; the ledger is the sum over all sends; the server's statistics are
the sum over the uploads that it has taken in.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence, Set

from coband.simulator.core.audit.invariants import Audit, Copies, InvariantViolation
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.audit.progress import Progress
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Client, Node, Server
from coband.simulator.core.packet import Packet

ROUNDING = 1e-9  # relative, of sums of the same numbers in another order


class FullAudit(Audit):
    """The cheap checks, the fate of copies link by link, and the pulls on their way.

    Attributes:
        underway: pulls in uploads that the server has not handled yet.
        lost: pulls in uploads that it will never get.
    """

    full = True

    def __init__(self, ordered: bool, down: Set[int] = frozenset()) -> None:
        super().__init__(ordered, down)
        self._links: dict[tuple[Address, Address, str], Copies] = defaultdict(Copies)
        self._due: Counter[tuple[int, Address, float]] = Counter()
        self._scalars = 0
        self.underway = self.lost = 0

    def _link(self, packet: Packet) -> Copies:
        return self._links[packet.source, packet.destination, packet.message.kind]

    def sent(self, packet: Packet) -> None:
        super().sent(packet)
        self._link(packet).sent += 1
        if not packet.attempts:
            self._scalars += packet.scalars
            if packet.destination == SERVER:
                self.underway += packet.message.pulls

    def flooded(self, kind: str, copies: int, delivered: int, scalars: int) -> None:
        super().flooded(kind, copies, delivered, scalars)
        self._scalars += copies * scalars

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
        self._due[key] -= 1
        if not self._due[key]:
            del self._due[key]

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
        self._link(packet).expired += 1
        if packet.destination == SERVER:
            self._lose(packet)

    def _lose(self, packet: Packet) -> None:
        self.underway -= packet.message.pulls
        self.lost += packet.message.pulls

    def check_links(self, ledger: Ledger) -> None:
        """At the end: nothing is on the way, link by link, and the ledger has counted what was sent."""
        for (source, destination, kind), copies in self._links.items():
            if copies.in_flight:
                way = f"from node {source} to node {destination}"
                raise InvariantViolation(f"{copies.in_flight} copies of {kind!r} {way} neither arrived nor were lost")
        if self._due:
            raise InvariantViolation(f"{self._due.total()} copies never arrived at their time")
        if self._scalars != ledger.scalars:
            raise InvariantViolation(f"the ledger counts {ledger.scalars} scalars, {self._scalars} were sent")


class Inspection:
    """Watches nodes and pulls.

    Args:
        agents, server: the nodes; server None where there is none.
    """

    def __init__(self, audit: FullAudit, progress: Progress, agents: Sequence[Client], server: Server | None) -> None:
        self._audit, self._progress, self._agents, self._server = audit, progress, agents, server
        self._uploads: list[tuple[Address, Message]] = []

    def __call__(self, node: Node, packet: Packet | None, cause: int) -> None:
        """After a node has taken a turn, or handled ``packet``, or heard that it was given up."""
        if packet is not None and node is self._server and packet.source != SERVER:
            self._audit.underway -= packet.message.pulls
            if self._audit.underway < 0:
                raise InvariantViolation(f"{-self._audit.underway} pulls were taken in that nobody had sent", cause)
            self._uploads.append((packet.origin, packet.message))
        for sentence in node.broken_invariants():
            raise InvariantViolation(sentence, cause)
        missing = self._missing()
        if packet is not None and packet.expired and 0 < -missing <= packet.message.pulls:
            self._audit.lost += missing  # the sender has taken its pulls back
        elif missing:
            what = "lost" if missing > 0 else "counted twice"
            raise InvariantViolation(f"{abs(missing)} of {self._progress.made} pulls were {what}", cause)

    def _missing(self) -> int:
        """Pulls that nobody has, less those that somebody has too often."""
        applied = self._server.applied if self._server is not None else 0
        held = sum(agent.unshared for agent in self._agents) + self._audit.underway + applied
        return self._progress.made - held - self._audit.lost

    def at_end(self, ledger: Ledger, regret: float) -> None:
        """When no event is left."""
        self._audit.check_links(ledger)
        if not math.isclose(math.fsum(self._progress.regrets), regret, rel_tol=ROUNDING, abs_tol=ROUNDING):
            raise InvariantViolation(f"the total regret is {regret}, the sum over all turns another number")
        if self._server is not None:
            for sentence in self._server.discrepancies(self._uploads):
                raise InvariantViolation(sentence)
