"""The stations of a run, as the hub knows them."""

from __future__ import annotations

from asyncio import StreamWriter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coband import Address, Message
from coband.extending import code_version, trace
from coband.extensions.live.codec import WireError
from coband.extensions.live.config import LiveError
from coband.extensions.live.frames import Session, named
from coband.extensions.live.machine import AT_ONCE, NUMBERS
from coband.extensions.live.reports import check_report, check_rows
from coband.extensions.live.schema import Hello, Report, Rows, Status


@dataclass
class Peer:
    """A station, as the hub knows it.

    Attributes:
        origin: number of its process, from 1.
        ready: whether it has made its nodes.
        lost: whether its connection has ended before it had reported all.
        reported: whether it has.
        status: how far it is, as it has said last.
        rows, reports: what it has recorded.
    """

    origin: int
    agents: tuple[Address, ...]
    name: str
    session: Session
    ready: bool = False
    lost: bool = False
    reported: bool = False
    status: Status = field(default=Status(0, 0, AT_ONCE, 0))
    rows: list[trace.PlainRow] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    _new: list[trace.PlainRow] = field(default_factory=list)

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
        """Keep what it has recorded: rows, when the report that belongs to them has come.

        Args:
            agents, kinds: agents and kinds of messages of the run.

        Raises:
            WireError: it does not fit together.
        """
        first = self.origin * NUMBERS
        if self.reported:
            raise WireError(f"{named(frame)} after the last report")
        if isinstance(frame, Rows):
            check_rows(frame.rows, first + len(self.rows) + len(self._new), agents)
            self._new += frame.rows
            return
        numbers = range(first, first + len(self.rows) + len(self._new))
        check_report(frame, self._new, numbers, self.agents, agents, kinds)
        self.rows += self._new
        self._new = []
        self.reports.append(frame)
        self.reported = bool(frame.agents)


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

    def at(self, origin: int) -> Peer:
        return self._peers[origin - 1]

    @property
    def here(self) -> list[Peer]:
        """Those that are not lost."""
        return [peer for peer in self._peers if not peer.lost]

    def admit(self, hello: Hello, writer: StreamWriter) -> Peer:
        """One more station, with some of the agents that have none.

        Raises:
            LiveError: it is refused; the text says why.
        """
        if hello.code != code_version.source_digest():
            raise LiveError("it has another coband than the hub; install the same one")
        if not self._free:
            raise LiveError("all agents have a process already")
        count = hello.agents or self._share
        mine, self._free = tuple(self._free[:count]), self._free[count:]
        peer = Peer(len(self._peers) + 1, mine, hello.name, Session(writer))
        self._peers.append(peer)
        self._at.update(dict.fromkeys(mine, peer))
        return peer
