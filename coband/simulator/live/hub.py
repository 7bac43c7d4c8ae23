"""The process with the server: stations connect to it, and it passes on what they send to each other.

It also decides when the run begins, when it has come to its end, and, with virtual time, when time goes on: when all
frames that were sent have been handled, and nobody has anything left to do.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from coband.simulator.core.clock.clock import NEVER_DUE
from coband.simulator.core.records.trace import Sink, Trace
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.job import Job, OnPull
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.live import frames, schema
from coband.simulator.live.codec import WireError, pack, unpack
from coband.simulator.live.config import LiveError, Terms
from coband.simulator.live.frames import FROM_STATION, named, parts, written
from coband.simulator.live.hub_state import Course, Peer
from coband.simulator.live.journal import Journal
from coband.simulator.live.listener import Door, part
from coband.simulator.live.machine import Pump
from coband.simulator.live.merging import MergedTrace, Part, result_of
from coband.simulator.live.reports import report_of

LAST_SECONDS = 3.0
"""So long stations are waited for when a run is interrupted."""


class Hub:
    """Runs one job with stations.

    Args:
        say: tells the user something, in one line.
        on_pull: called now and then with the number of pulls so far.
        journal: of this run; what it does is written there, what is there already is done again first. None: nowhere.

    Attributes:
        alone: whether no station looks for it: nothing was there to be done again, or all stations were sent away.
    """

    def __init__(
        self,
        job: Job,
        scenario: Scenario,
        terms: Terms,
        say: Callable[[str], None],
        on_pull: OnPull | None,
        journal: Journal | None = None,
    ) -> None:
        self._job, self._scenario, self._terms, self._say, self._on_pull = job, scenario, terms, say, on_pull
        self._journal = journal
        self._course = Course(job, scenario, terms)
        self._pump = Pump(self._course.machine, terms.speed, self._consider, self.fail, journal)
        self._considering = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._losses: dict[int, asyncio.TimerHandle] = {}
        self.alone = True
        self._port = self._replayed()
        self._door = Door(self._terms.token, self._attend, say, self.fail)

    def _replayed(self) -> int:
        """Do again what the journal says; returns the port to open."""
        if self._journal is None:
            return self._terms.port
        told, entries = self._journal.read()
        if told is None:
            return self._terms.port
        self._terms = replace(self._terms, token=told["token"])
        now = 0.0
        for now, raw in entries:
            if not raw:
                self._course.machine.run_due(now)
                continue
            action = unpack(raw)
            if action[0] == "frame":
                action = (*action[:3], FROM_STATION.again(action[3:]))
            with suppress(WireError):  # its sender was told when it happened
                self._course.do(now, action)
        self.alone, self._pump.epoch = self._course.suspended, self._course.epoch
        if self.alone and self._course.epoch is not None:
            self._pump.epoch = asyncio.get_running_loop().time() - now * self._terms.speed
        self._act("restarted", now, self._pump.epoch)
        for peer in self._course.peers:
            self._wait_for(peer)
        return int(told["port"])

    def _act(self, *action: Any, now: float | None = None) -> None:
        """Do something, and all that is due then."""
        now = self._pump.now if now is None else now
        if self._journal is not None:
            *words, last = action
            self._journal.write(now, pack((*words, *parts(last)) if isinstance(last, schema.Frame) else action))
        self._course.do(now, action)
        if self._course.failure is not None:
            self.fail(self._course.failure)
        if self._course.reported:
            self._end()
        if self._course.epoch is not None:
            self._pump.drain()

    @property
    def token(self) -> str:
        return self._terms.token

    async def listen(self) -> int:
        """Open the port; returns its number.

        Raises:
            UnsupportedScenario: it cannot be opened.
        """
        self._port = await self._door.open(self._terms.host, self._port)
        if self._journal is not None and not self._journal.begun:
            job = self._job
            facts = self._terms.facts(self._scenario.to_yaml(), job.entry or job.label, job.replication)
            self._journal.begin({"run": facts, "port": self._port, "token": self._terms.token})
        if self._course.reported:
            self._end()
        return self._port

    async def run(self, sink: Sink | None) -> RunResult:
        """Wait for the end of the run.

        Raises:
            LiveError: a station failed, or was lost for good.
            InvariantViolation: something was lost or counted twice.
        """
        try:
            await self._ended
        except asyncio.CancelledError:
            await self._keep_what_there_is(sink)
            raise
        return result_of(self._course.machine, self._parts(), sink)

    def _parts(self) -> list[Part]:
        machine, peers = self._course.machine, self._course.peers
        own = Part(machine.rows, report_of(machine))
        return [own, *(Part(peer.rows, peer.report) for peer in peers if peer.report is not None)]

    async def _keep_what_there_is(self, sink: Sink | None) -> None:
        """Store the trace of a run that was interrupted, as far as stations still send theirs."""
        self._ended = asyncio.get_running_loop().create_future()
        self._leave(suspended=self.alone or all(peer.writer is not None for peer in self._course.peers))
        if not self._course.finishing:
            self._act("finish", True)
        await asyncio.wait([self._ended], timeout=LAST_SECONDS)
        if sink is not None:
            trace = Trace(sink)
            MergedTrace(trace, self._parts(), whole=False)
            trace.flush()

    def _leave(self, suspended: bool) -> None:
        """Leave the journal as it is: the run can go on from here; ``suspended``: all stations are sent away."""
        if self._journal is not None:
            with suppress(LiveError):  # no room is no reason to say nothing to stations
                if suspended:
                    self._journal.write(self._pump.now, pack(("suspended",)))
            self._journal.close()

    async def close(self) -> None:
        self._ended.cancel()
        self._pump.stop()
        for handle in self._losses.values():
            handle.cancel()
        await self._door.close(LAST_SECONDS)
        if self._journal is not None:
            self._journal.close()

    def fail(self, error: BaseException) -> None:
        """End the run with an error, and tell stations from elsewhere."""
        if not self._ended.done():
            self._ended.set_exception(error)
            self._leave(suspended=True)
            for peer in self._course.peers:
                peer.session.say(schema.Bye() if self._terms.start else schema.Over(str(error).partition("\n")[0]))

    # --- connections

    async def _attend(self, hello: schema.Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a station."""
        try:
            wanted = self._course.peers.wanted(hello)
        except LiveError as refusal:
            self._say(f"a station was refused: {refusal}")
            writer.write(written(schema.Refused(str(refusal))))
            return
        if isinstance(wanted, int):
            self._act("peer", wanted, hello.name)
        peer = self._course.peers.newest if isinstance(wanted, int) else wanted
        peer.name, peer.writer = hello.name, writer
        writer.write(written(self._welcome(peer)))
        try:
            await self._listen_to(peer, reader, writer)
        except WireError as error:
            self._say(f"{peer.words}: connection closed: {error}")
            self._lost(peer, writer)
            await part(str(error), reader, writer)
        finally:
            self._lost(peer, writer)

    def _welcome(self, peer: Peer) -> schema.Welcome:
        job = self._job
        return schema.Welcome(
            scenario=self._scenario.to_yaml(),
            base=str(self._scenario.base),
            task=schema.Task(job.id, job.label, job.algorithm, job.replication, job.seed, job.trace, job.entry),
            origin=peer.origin,
            agents=peer.agents,
            speed=self._terms.speed,
            epoch=self._pump.epoch,
            received=peer.session.received,
            largest=self._terms.largest,
        )

    async def _listen_to(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            number, frame = FROM_STATION.read(await frames.read(reader, self._terms.largest))
            if isinstance(frame, schema.Ping):
                writer.write(written(schema.Pong(asyncio.get_running_loop().time())))
                await writer.drain()
            elif isinstance(frame, schema.Ready) and not peer.ready:
                peer.session.resume(writer, frame.received)
                self._joined(peer)
            elif not peer.ready or isinstance(frame, schema.Ready | schema.Hello):
                raise WireError(f"{named(frame)} {'after' if peer.ready else 'before'} the station was ready")
            elif isinstance(frame, schema.Status):
                self._take_status(peer, frame)
            else:
                self._act("frame", peer.origin, number, frame)

    def _joined(self, peer: Peer) -> None:
        peer.ready = True
        if (handle := self._losses.pop(peer.origin, None)) is not None:
            handle.cancel()
            self._say(f"{peer.words} is back")
        if peer.origin in self._course.down:
            self._act("state", peer.origin, True)
        if self._course.epoch is None and self._course.peers.complete:
            self._pump.epoch = asyncio.get_running_loop().time()
            self._act("start", self._pump.epoch, now=0.0)

    def _lost(self, peer: Peer, writer: asyncio.StreamWriter) -> None:
        """A connection has ended: its agents are down until it comes again."""
        if peer.writer is not writer:
            return
        peer.writer = None
        if self._ended.done() or peer.report is not None:
            return
        was_ready, peer.ready = peer.ready, False
        peer.session.broken()
        if was_ready and self._course.epoch is not None:
            self._act("state", peer.origin, False)
        self._say(f"{peer.words} is lost; waiting {self._terms.rejoin:g} s for it")
        self._wait_for(peer)

    def _wait_for(self, peer: Peer) -> None:
        """End the run if a station that is not here does not come in time."""
        rejoin = self._terms.rejoin
        gone = LiveError(f"{peer.words} was lost, and did not come back within {rejoin:g} s")
        self._losses[peer.origin] = asyncio.get_running_loop().call_later(rejoin, self.fail, gone)

    # --- how far everybody is

    def _take_status(self, peer: Peer, status: schema.Status) -> None:
        if status.sent != peer.session.received:
            raise WireError(f"a status after {status.sent} frames, where {peer.session.received} have come")
        peer.session.settle(status.handled)
        peer.status = status
        if self._on_pull is not None:
            self._on_pull(sum(peer.status.pulls for peer in self._course.peers))
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
        course, machine = self._course, self._course.machine
        settled = all(peer.idle for peer in course.peers) and not self._pump.due
        if course.epoch is None or course.finishing or not settled:
            return False
        dues = [machine.next_due, *(peer.status.due for peer in course.peers)]
        first = min(dues)
        if course.held:
            self._act("hand over")
        elif first == NEVER_DUE:
            self._act("finish", False)
        elif self._terms.speed:
            return False
        else:
            origin = dues.index(first)
            others = min((math.nextafter(first[0], math.inf), -1, 0), *dues[:origin], *dues[origin + 1 :])
            self._act("advance", origin, first[0], others)
        return True

    def _end(self) -> None:
        for peer in self._course.peers:
            peer.session.say(schema.Bye())
        if not self._ended.done():
            self._ended.set_result(None)
