"""The stations of a run, as the hub knows them."""

from __future__ import annotations

from asyncio import StreamWriter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.records.trace import PlainRow
from coband.simulator.experiments.runs.code_version import source_digest
from coband.simulator.live.codec import WireError
from coband.simulator.live.frames import named
from coband.simulator.live.machine import NUMBERS
from coband.simulator.live.reports import check_report, check_rows
from coband.simulator.live.schema import Hello, Report, Rows, Status
from coband.simulator.live.session import Session
from coband.simulator.live.terms import LiveError


@dataclass
class Peer:
    """A station, as the hub knows it.

    Attributes:
        origin: number of its process, from 1.
        writer: of its connection; None without one.
        ready: whether it has made its nodes.
        status: how far it is, as it has said last.
        rows: its events, as far as it has sent them.
        report: what it has reported; None before.
    """

    origin: int
    agents: tuple[Address, ...]
    name: str = ""
    session: Session = field(default_factory=Session)
    writer: StreamWriter | None = None
    ready: bool = False
    status: Status = field(default=Status(0, 0, 0.0, 0))
    rows: list[PlainRow] = field(default_factory=list)
    report: Report | None = None

    @property
    def idle(self) -> bool:
        """Whether every frame between it and the hub has been handled."""
        session, status = self.session, self.status
        return self.ready and status.handled == session.sent and status.sent == session.received

    @property
    def words(self) -> str:
        """Who it is."""
        first, last = self.agents[0], self.agents[-1]
        which = f"agent {first}" if first == last else f"agents {first} to {last}"
        return f"{which} ({self.name})"

    def record(self, frame: Rows | Report, agents: int, kinds: Mapping[str, type[Message]]) -> None:
        """Keep what it has recorded; ``agents`` and ``kinds`` of messages: of the run.

        Raises:
            WireError: it does not fit together.
        """
        first = self.origin * NUMBERS
        if self.report is not None:
            raise WireError(f"{named(frame)} after a report")
        if isinstance(frame, Rows):
            check_rows(frame.rows, first + len(self.rows), agents)
            self.rows += frame.rows
        else:
            check_report(frame, self.rows, first, self.agents, agents, kinds)
            self.report = frame


class Peers:
    """Who has joined, and which agents have no process yet.

    Args:
        agents: their number.
        share: agents of each station, unless it asks for another number.
    """

    def __init__(self, agents: int, share: int) -> None:
        self._share, self._free = share, list(range(agents))
        self._peers: list[Peer] = []
        self._at: dict[Address, Peer] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers)

    def of(self, node: Address) -> Peer:
        return self._at[node]

    @property
    def complete(self) -> bool:
        """Whether every agent has a process, which is ready."""
        return not self._free and all(peer.ready for peer in self._peers)

    def with_origin(self, origin: int) -> Peer:
        return self._peers[origin - 1]

    def add(self, count: int, name: str) -> None:
        """One more station, with so many of the agents that have none."""
        mine, self._free = tuple(self._free[:count]), self._free[count:]
        peer = Peer(len(self._peers) + 1, mine, name)
        self._peers.append(peer)
        self._at.update(dict.fromkeys(mine, peer))

    @property
    def newest(self) -> Peer:
        return self._peers[-1]

    def wanted(self, hello: Hello) -> int | Peer:
        """How many agents a station that joins is to have, or which one it is, when it comes again.

        Raises:
            LiveError: it is refused; the text says why.
        """
        if hello.code != source_digest():
            raise LiveError("it has another coband than the hub; install the same one")
        if hello.origin is not None:
            return self._again(hello.origin)
        if not self._free:
            raise LiveError("all agents have a process already")
        return hello.agents or self._share

    def _again(self, origin: int) -> Peer:
        known = [peer for peer in self._peers if peer.origin == origin]
        if not known:
            raise LiveError(f"there is no station {origin} in this run; its journal is of another one")
        if known[0].writer is not None:
            raise LiveError(f"{known[0].words} is here already")
        return known[0]
