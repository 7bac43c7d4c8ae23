"""What the hub does, as a function of actions and of when they happen.

Connections come and go, and processes say how far they are; what follows from that is a sequence of actions, which the
hub writes to its journal. Done again, they lead to the same nodes, and to the same frames under the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.node import SERVER, Address
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.live.codec import WireError
from coband.simulator.live.machine import COPY, SETTLING, Machine, Share, check_parts
from coband.simulator.live.peers import Peer, Peers
from coband.simulator.live.terms import LiveError, Terms

BACKWARD = ("ack", "skipped")
"""Frames that go from the receiver of a message to its sender."""


class Course:
    """The server's machine, the sessions of all stations, and how far the run is.

    Attributes:
        epoch: time of the machine's clock at which the run began; None before.
        finishing: whether stations were told to report.
        failure: what a station has failed with.
        down: stations that are lost.
    """

    def __init__(self, job: Job, scenario: Scenario, terms: Terms) -> None:
        self._agents, self._virtual = scenario.agents.count, not terms.speed
        self.machine = Machine(Share(scenario, job, 0, frozenset([SERVER])), self._post)
        self.peers = Peers(self._agents, terms.share)
        self.epoch: float | None = None
        self.finishing = False
        self.failure: Exception | None = None
        self.down: set[int] = set()
        self._held: list[tuple[Address, Address, Sequence[Any]]] = []  # receiver, sender, frame

    @property
    def holds(self) -> bool:
        """Whether there are frames to be handed over at this moment of virtual time."""
        return bool(self._held)

    @property
    def reported(self) -> bool:
        """Whether all stations have reported."""
        return self.finishing and all(peer.part.report for peer in self.peers)

    def do(self, now: float, action: Sequence[Any]) -> None:
        """Do something.

        Raises:
            WireError: a station has sent what it may not.
        """
        what, *rest = action
        if what == "frame":
            self._take(now, *rest)
        elif what == "peer":
            self.peers.add(*rest)
        elif what == "start":
            self._start(*rest)
        elif what == "state":
            self._note_state(now, *rest)
        elif what == "advance":
            self._advance(*rest)
        elif what == "hand over":
            self._hand_over_held(now)
        elif what == "restarted":
            self._restarted(now, *rest)
        else:
            assert what == "finish"
            self.finishing = True
            for peer in self.peers:
                peer.session.post(["finish"])

    def _post(self, node: Address, frame: list[Any]) -> None:
        self.peers.of(node).session.post(frame)

    def _start(self, epoch: float) -> None:
        self.epoch = epoch
        for peer in self.peers:
            peer.session.post(["start", epoch])
        self.machine.on_frame(0.0, ["start"])

    def _note_state(self, now: float, origin: int, up: bool) -> None:
        (self.down.discard if up else self.down.add)(origin)
        self.machine.note_state(now, self.peers.with_origin(origin).agents, up)

    def _restarted(self, now: float, since: float) -> None:
        """The hub's process was gone for a while, and the server with it."""
        if self.machine.server is not None:
            self.machine.note_state(since, [SERVER], False)
            self.machine.note_state(now, [SERVER], True)

    def _advance(self, due: float, origins: Sequence[int], own: bool) -> None:
        """Let virtual time go on, for those who have something to do then."""
        for origin in origins:
            self.peers.with_origin(origin).session.post(["advance", due])
        if own:
            self.machine.on_frame(due, ["advance", due])

    # --- frames

    def _take(self, now: float, origin: int, number: int, *frame: Any) -> None:
        """A numbered frame of a station, unless it has come before."""
        peer = self.peers.with_origin(origin)
        if not peer.session.accept(number):
            return
        what = frame[0]
        if what == "copy" or what in SETTLING:
            self._forward(now, peer, frame)
        elif what == "rows" and len(frame) == 2 and isinstance(frame[1], list):
            peer.part.rows += frame[1]
        elif what == "report" and len(frame) == 2 and isinstance(frame[1], dict):
            peer.part.report = frame[1]
        elif what == "failed" and len(frame) == 3:
            text = f"{peer.words}: {frame[2]}"
            self.failure = InvariantViolation(text) if frame[1] == "violated" else LiveError(text)
        else:
            raise WireError(f"a frame {what!r:.20}, which there is not")

    def _forward(self, now: float, peer: Peer, frame: Sequence[Any]) -> None:
        """Give a frame between transports to the server's machine, or to the station of its receiver."""
        check_parts(frame, COPY if frame[0] == "copy" else SETTLING[frame[0]], self._agents)
        source, target = frame[1:3] if frame[0] not in BACKWARD else (frame[2], frame[1])
        if source not in peer.agents:
            raise WireError(f"a {frame[0]} of node {source}, which is not of this station")
        if frame[0] == "copy" and (self._virtual or self.epoch is None):
            self.machine.transport.packet_of(frame)  # an invalid one is found while its sender is known
        if self.epoch is None:
            raise WireError(f"a {frame[0]} before the start")
        if not self._virtual:
            self._hand_over(now, target, frame)
            return
        self._held.append((target, source, frame))

    def _hand_over(self, now: float, target: Address, frame: Sequence[Any]) -> None:
        if target == SERVER:
            self.machine.on_frame(now, frame)
            return
        if frame[0] == "copy":
            packet = self.machine.transport.packet_of(frame)
            if target in self.machine.run.down and self.machine.transport.mends:
                self.machine.transport.lose(packet)
                return
        self._post(target, list(frame))

    def _hand_over_held(self, now: float) -> None:
        """Hand over what stations have sent at this moment of virtual time, in an order that depends on no race.

        It is that of the simulator for simultaneous deliveries: the server's first, then by agent.
        """
        held, self._held = sorted(self._held, key=lambda item: item[:2]), []
        for target, _, frame in held:
            self._hand_over(now, target, frame)
