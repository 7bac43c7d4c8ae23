"""The process with the server: stations connect to it, and it passes on what they send to each other.

It also decides when the run begins, when it has come to its end, and, with virtual time, when time goes on: when all
frames that were sent have been handled, and nobody has anything left to do. A station whose connection ends is lost:
its agents are gone, as if they had left.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable

from coband import SERVER, Address, RunResult
from coband.extending import Job, OnPull, Packet, Scenario, clock, invariants, trace
from coband.extensions.live import frames, schema
from coband.extensions.live.codec import WireError
from coband.extensions.live.config import LiveError, Terms
from coband.extensions.live.frames import FROM_STATION, named, written
from coband.extensions.live.listener import Door, part
from coband.extensions.live.machine import AT_ONCE, Given, Machine, Pump, Share, check_passing, receiver
from coband.extensions.live.merging import MergedTrace, Part, result_of
from coband.extensions.live.peers import Peer, Peers
from coband.extensions.live.reports import report_of, whole
from coband.extensions.live.schema import (
    Advance,
    Copy,
    Failed,
    Finish,
    Gone,
    Hello,
    Passing,
    Report,
    Rows,
    Start,
    Status,
)

CLOSING_SECONDS = 3.0
"""So long connections may take to close."""
AHEAD_SECONDS = 3600.0
"""So far may a station's clock be ahead; what it sends takes the server's clock along."""


class Hub:
    """Runs one job with stations.

    Args:
        say: tells the user something, in one line.
        on_pull: called now and then with the number of pulls so far.
    """

    def __init__(
        self, job: Job, scenario: Scenario, terms: Terms, say: Callable[[str], None], on_pull: OnPull | None
    ) -> None:
        self._job, self._scenario, self._terms, self._say, self._on_pull = job, scenario, terms, say, on_pull
        self._agents, self._virtual = scenario.agents.count, not terms.speed
        self._ahead = AHEAD_SECONDS / terms.speed if terms.speed else 0.0
        self._time, self._steps = 0.0, 0  # of virtual time
        self._machine = Machine(Share(scenario, job, 0, frozenset([SERVER])), self._post)
        self._pump = Pump(self._machine, terms.speed, self._consider, self.fail)
        self._peers = Peers(self._agents, terms.share)
        self._held: list[tuple[Address, Passing, Packet | None]] = []  # sent by the process whose step it was
        self._considering = self._finishing = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._door = Door(terms.token, self._attend, say, self.fail)

    async def listen(self) -> int:
        """Open the port; returns its number.

        Raises:
            UnsupportedScenario: it cannot be opened.
        """
        return await self._door.open(self._terms.host, self._terms.port)

    async def run(self, sink: trace.Sink | None) -> RunResult:
        """Wait for the end of the run.

        Raises:
            LiveError: a station failed, or all were lost.
            InvariantViolation: something was lost or counted twice.
        """
        try:
            await self._ended
        except asyncio.CancelledError:
            if sink is not None:  # interrupted: what there is of the trace
                part = trace.Trace(sink)
                MergedTrace(part, self._parts(), whole=False)
                part.flush()
            raise
        gone = [agent for peer in self._peers if not peer.reported for agent in peer.agents]
        return result_of(self._machine, self._parts(), sink, gone)

    def _parts(self) -> list[Part]:
        own = Part(self._machine.rows, report_of(self._machine))
        return [own, *(Part(peer.rows, whole(peer.reports)) for peer in self._peers if peer.reports)]

    async def close(self) -> None:
        self._ended.cancel()
        self._pump.stop()
        await self._door.close(CLOSING_SECONDS)

    def fail(self, error: BaseException) -> None:
        """End the run with an error, and tell stations from elsewhere."""
        if not self._ended.done():
            self._ended.set_exception(error)
            for peer in self._peers.here:
                peer.session.say(schema.Bye() if self._terms.start else schema.Over(str(error).partition("\n")[0]))

    # --- connections

    async def _attend(self, hello: Hello, reader: StreamReader, writer: StreamWriter) -> None:
        """The connection of a station."""
        try:
            peer = self._peers.admit(hello, writer)
        except LiveError as refusal:
            self._say(f"a station was refused: {refusal}")
            writer.write(written(schema.Refused(str(refusal))))
            return
        writer.write(written(self._welcome(peer)))
        try:
            await self._listen_to(peer, reader, writer)
        except WireError as error:
            self._say(f"{peer.words}: connection closed: {error}")
            self._lose(peer)
            await part(str(error), reader, writer)
        finally:
            self._lose(peer)

    def _welcome(self, peer: Peer) -> schema.Welcome:
        job = self._job
        return schema.Welcome(
            scenario=self._scenario.to_yaml(),
            base=str(self._scenario.base),
            task=schema.Task(job.id, job.label, job.algorithm, job.replication, job.seed, job.trace, job.entry),
            origin=peer.origin,
            agents=peer.agents,
            speed=self._terms.speed,
            largest=self._terms.largest,
        )

    async def _listen_to(self, peer: Peer, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            number, frame = FROM_STATION.read(await frames.read(reader, self._terms.largest))
            if isinstance(frame, schema.Ping):
                writer.write(written(schema.Pong(asyncio.get_running_loop().time())))
                await writer.drain()
            elif isinstance(frame, schema.Ready) and not peer.ready:
                peer.ready = True
                if self._peers.complete:
                    self._start()
            elif not peer.ready or isinstance(frame, schema.Ready | Hello):
                raise WireError(f"{named(frame)} {'after' if peer.ready else 'before'} the station was ready")
            elif isinstance(frame, Status):
                self._take_status(peer, frame)
            else:
                peer.session.receive(number)
                self._take(peer, frame)

    def _start(self) -> None:
        epoch = self._pump.epoch = asyncio.get_running_loop().time()
        for peer in self._peers.here:
            peer.session.post(Start(epoch))
        self._pump.frame(Start(epoch))

    def _lose(self, peer: Peer) -> None:
        """A connection has ended; before its last report this loses the station's agents."""
        if self._ended.done() or peer.reported or peer.lost:
            return
        peer.lost = True
        if self._pump.epoch is None or not self._peers.here:
            self.fail(
                LiveError(f"{peer.words} was lost{', as all others' if self._pump.epoch else ' before the start'}")
            )
            return
        self._say(f"{peer.words} is lost; the run goes on without it")
        gone = Gone(peer.agents, max(self._time, self._pump.now, *(row[1] for row in peer.rows[-1:])))
        for other in self._peers.here:
            if self._virtual:
                self._advance(other.origin, gone.time, AT_ONCE)
            other.session.post(gone)
        if self._virtual:
            self._advance(0, gone.time, AT_ONCE)
        self._give(gone.time, gone)
        self._finish_if_all_have_reported()

    # --- frames

    def _take(self, peer: Peer, frame: schema.Frame) -> None:
        """A numbered frame of a station, in its turn."""
        if isinstance(frame, Failed):
            text = f"{peer.words}: {frame.text}"
            self.fail(invariants.InvariantViolation(text) if frame.how == "violated" else LiveError(text))
        elif isinstance(frame, Rows | Report):
            if self._pump.epoch is None:
                raise WireError(f"{named(frame)} before the start")
            if isinstance(frame, Report) and frame.agents and not self._finishing:
                raise WireError("a last report before it was asked for")
            peer.record(frame, self._agents, self._machine.kinds)
            self._finish_if_all_have_reported()
        else:
            assert isinstance(frame, Passing)
            self._forward(peer, frame)

    def _forward(self, peer: Peer, frame: Passing) -> None:
        """Give a frame between transports to the server's machine, or to the station of its receiver."""
        transport, target = self._machine.transport, receiver(frame)
        check_passing(frame, self._agents, transport.takes)
        source = frame.source if target == frame.destination else frame.destination
        if source not in peer.agents:
            raise WireError(f"{named(frame)} of node {source}, which is not of this station")
        packet = transport.packet_of(frame) if isinstance(frame, Copy) else None
        if self._pump.epoch is None:
            raise WireError(f"{named(frame)} before the start")
        if frame.time > (latest := self._time if self._virtual else self._pump.now + self._ahead):
            raise WireError(f"{named(frame)} of time {frame.time:.9g}, before which {latest:.9g} comes")
        if self._virtual:
            self._held.append((target, frame, packet))
        else:
            self._hand_over(target, frame, packet)

    def _hand_over(self, target: Address, frame: Passing, packet: Packet | None) -> None:
        if target == SERVER:
            if self._virtual:
                self._advance(0, self._time, AT_ONCE)
            self._give(self._pump.now, frame, packet)
        elif packet is not None and target in self._machine.run.down.gone:
            self._machine.transport.lose(packet)
        else:
            self._post(target, frame)

    def _give(self, now: float, frame: Given, packet: Packet | None = None) -> None:
        """Give the server's machine a frame, and let it do what is due then."""
        self._machine.take(now, frame, packet)
        self._pump.drain()

    def _post(self, node: Address, frame: Passing) -> None:
        peer = self._peers.of(node)
        if peer.lost:
            return
        if self._virtual:
            self._advance(peer.origin, self._time, AT_ONCE)
        peer.session.post(frame)

    def _advance(self, origin: int, time: float, until: clock.Due) -> None:
        """Let virtual time go on in a process, one at a time, as the one clock of the simulator does."""
        self._time, self._steps = time, self._steps + 1
        frame = Advance(time, self._steps, until)
        if origin:
            self._peers.at(origin).session.post(frame)
        else:
            self._machine.take(time, frame)

    # --- how far everybody is

    def _take_status(self, peer: Peer, status: Status) -> None:
        peer.session.check(status)
        peer.status = status
        if self._on_pull is not None:
            self._on_pull(sum(peer.status.pulls for peer in self._peers))
        self._consider()

    def _consider(self) -> None:
        """As long as all is done that is due, go on."""
        if self._considering:
            return
        self._considering = True
        try:
            while self._go_on():
                pass
        finally:
            self._considering = False

    def _go_on(self) -> bool:
        """Hand over what was sent, go to the next moment of virtual time, or to the end; False: there is no need."""
        here = self._peers.here
        settled = all(peer.idle for peer in here) and not self._pump.due
        if self._pump.epoch is None or self._finishing or not settled or self._ended.done():
            return False
        dues = {0: self._machine.next_due, **{peer.origin: peer.status.due for peer in here}}
        origin = min(dues, key=dues.__getitem__)
        first = dues.pop(origin)
        if self._held:
            held, self._held = self._held, []
            for one in held:
                self._hand_over(*one)
        elif first == clock.NEVER_DUE:
            self._finishing = True
            for peer in here:
                peer.session.post(Finish())
        elif self._terms.speed:
            return False
        else:
            self._advance(origin, first[0], min((math.nextafter(first[0], math.inf), -1, 0), *dues.values()))
        self._pump.drain()
        return True

    def _finish_if_all_have_reported(self) -> None:
        if self._finishing and not self._ended.done() and all(peer.reported for peer in self._peers.here):
            for peer in self._peers.here:
                peer.session.say(schema.Bye())
            self._ended.set_result(None)
