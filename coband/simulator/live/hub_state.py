"""What the hub does, as a function of actions and of when they happen.

Connections come and go, and processes say how far they are; what follows from that is a sequence of actions, which the
hub writes to its journal. Done again, they lead to the same nodes, and to the same frames under the same numbers.

`Peers` are the stations of a run, as the hub knows them.
"""

from __future__ import annotations

from asyncio import StreamWriter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coband.simulator.core.clock.clock import Due
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.trace import PlainRow
from coband.simulator.experiments.runs.code_version import source_digest
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.live.codec import WireError
from coband.simulator.live.config import LiveError, Terms
from coband.simulator.live.frames import Session, named
from coband.simulator.live.machine import AT_ONCE, NUMBERS, Machine, Share, check_passing, receiver
from coband.simulator.live.reports import check_report, check_rows
from coband.simulator.live.schema import (
    Advance,
    Copy,
    Failed,
    Finish,
    Frame,
    Hello,
    Passing,
    Report,
    Rows,
    Start,
    Status,
)


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
    status: Status = field(default=Status(0, 0, AT_ONCE, 0))
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


AHEAD_SECONDS = 3600.0
"""So far may a station's clock be ahead; what it sends takes the server's clock along."""


class Course:
    """The server's machine, the sessions of all stations, and how far the run is.

    Attributes:
        epoch: time of the machine's clock at which the run began; None before.
        finishing: whether stations were told to report.
        failure: what a station has failed with.
        down: stations that are lost.
        held: what the process whose step it was has sent: receivers, frames, their packets.
        suspended: whether the hub's process has sent all stations away, so that time stands still.
    """

    def __init__(self, job: Job, scenario: Scenario, terms: Terms) -> None:
        self._agents, self._virtual = scenario.agents.count, not terms.speed
        self._ahead = AHEAD_SECONDS / terms.speed if terms.speed else 0.0
        self._time, self._steps = 0.0, 0  # of virtual time
        self.machine = Machine(Share(scenario, job, 0, frozenset([SERVER])), self._post)
        self.peers = Peers(self._agents, terms.share)
        self.epoch: float | None = None
        self.finishing = False
        self.failure: Exception | None = None
        self.down: set[int] = set()
        self.suspended = False
        self.held: list[tuple[Address, Passing, Packet | None]] = []

    @property
    def reported(self) -> bool:
        return self.finishing and all(peer.report is not None for peer in self.peers)

    def do(self, now: float, action: Sequence[Any]) -> None:
        """Do something.

        Raises:
            WireError: a station has sent what it may not; nothing of it was done.
        """
        what, *rest = action
        if what == "frame":
            origin, number, frame = rest
            self._take(now, self.peers.with_origin(origin), number, frame)
        elif what == "peer":
            self.peers.add(*rest)
        elif what == "start":
            self._start(*rest)
        elif what == "state":
            self._note_state(now, *rest)
        elif what == "advance":
            origin, time, until = rest
            self._advance(origin, time, tuple(until))
        elif what == "hand over":
            held, self.held = self.held, []
            for one in held:
                self._hand_over(now, *one)
        elif what == "restarted":
            self._restarted(now, *rest)
        elif what == "suspended":
            self.suspended = True
        else:
            assert what == "finish"
            self.finishing = True
            for peer in self.peers:
                peer.session.post(Finish(*rest))

    def _post(self, node: Address, frame: Passing) -> None:
        if self._virtual:
            self._advance(self.peers.of(node).origin, self._time, AT_ONCE)
        self.peers.of(node).session.post(frame)

    def _start(self, epoch: float) -> None:
        self.epoch = epoch
        for peer in self.peers:
            peer.session.post(Start(epoch))
        self.machine.take(0.0, Start(epoch))

    def _note_state(self, now: float, origin: int, up: bool) -> None:
        (self.down.discard if up else self.down.add)(origin)
        self.machine.note_state(now, self.peers.with_origin(origin).agents, up)

    def _restarted(self, now: float, since: float, epoch: float | None) -> None:
        """The hub's process was gone for a while, and the server with it; agents too, if they were sent away."""
        left, self.suspended, self.epoch = self.suspended, False, epoch
        if epoch is None:
            return
        for peer in self.peers:
            if left and peer.origin not in self.down:
                self._note_state(since, peer.origin, False)
        if self.machine.server is not None:
            self.machine.note_state(since, [SERVER], False)
            self.machine.note_state(now, [SERVER], True)

    def _advance(self, origin: int, time: float, until: Due) -> None:
        """Let virtual time go on in a process, one at a time, as the one clock of the simulator does."""
        self._time, self._steps = time, self._steps + 1
        frame = Advance(time, self._steps, until)
        if origin:
            self.peers.with_origin(origin).session.post(frame)
        else:
            self.machine.take(time, frame)

    # --- frames

    def _take(self, now: float, peer: Peer, number: int, frame: Frame) -> None:
        """A numbered frame of a station, unless it has come before."""
        if not peer.session.is_next(number):
            return
        if isinstance(frame, Failed):
            text = f"{peer.words}: {frame.text}"
            self.failure = InvariantViolation(text) if frame.how == "violated" else LiveError(text)
        elif isinstance(frame, Rows | Report):
            if not self.finishing:
                raise WireError(f"{named(frame)} before it was asked to report")
            peer.record(frame, self._agents, self.machine.kinds)
        else:
            assert isinstance(frame, Passing)
            self._forward(now, peer, frame)
        peer.session.received += 1

    def _forward(self, now: float, peer: Peer, frame: Passing) -> None:
        """Give a frame between transports to the server's machine, or to the station of its receiver."""
        transport, target = self.machine.transport, receiver(frame)
        check_passing(frame, self._agents, transport.takes)
        source = frame.source if target == frame.destination else frame.destination
        if source not in peer.agents:
            raise WireError(f"{named(frame)} of node {source}, which is not of this station")
        packet = transport.packet_of(frame) if isinstance(frame, Copy) else None
        if self.epoch is None:
            raise WireError(f"{named(frame)} before the start")
        if frame.time > (latest := self._time if self._virtual else now + self._ahead):
            raise WireError(f"{named(frame)} of time {frame.time:.9g}, before which {latest:.9g} comes")
        if self._virtual:
            self.held.append((target, frame, packet))
        else:
            self._hand_over(now, target, frame, packet)

    def _hand_over(self, now: float, target: Address, frame: Passing, packet: Packet | None) -> None:
        if target == SERVER:
            if self._virtual:
                self._advance(0, self._time, AT_ONCE)
            self.machine.take(now, frame, packet)
        elif packet is not None and target in self.machine.run.down and self.machine.transport.mends:
            self.machine.transport.lose(packet)
        else:
            self._post(target, frame)
