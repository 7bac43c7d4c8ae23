"""A process with agents, which connects to the hub; killed and started again with its journal, it goes on."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.runs.code_version import one_thread, source_digest
from coband.simulator.experiments.runs.job import Job, told
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.live import frames, listener, schema
from coband.simulator.live.codec import WireError, pack, unpack
from coband.simulator.live.config import TELLING, LiveError
from coband.simulator.live.frames import FROM_HUB, Session, named, parts, written
from coband.simulator.live.journal import Journal
from coband.simulator.live.machine import Machine, Pump, Share
from coband.simulator.live.reports import portions, report_of

RETRY_SECONDS = 0.2
PINGS = 8


@dataclass(frozen=True)
class Invitation:
    """Where a station connects.

    Attributes:
        agents: how many agents it takes; None: as many as the hub says.
        journal: where it keeps what it needs to go on after it was killed; None: nowhere.
        patience: seconds for which it tries to reach the hub.
        base: directory of relative file names in the scenario; None: as the hub says.
    """

    host: str
    port: int
    token: str
    agents: int | None = None
    journal: Path | None = None
    patience: float = 30.0
    base: Path | None = None


class Station:
    """Runs some agents of a run."""

    def __init__(self, invitation: Invitation) -> None:
        self._invitation = invitation
        self._journal = None if invitation.journal is None else Journal(invitation.journal)
        self._session = Session()
        self._machine: Machine | None = None
        self._pump: Pump | None = None
        self._facts: schema.Welcome | None = None
        self._said: schema.Status | None = None
        self._finished = self._done = False
        self._until = math.inf  # when it gives up, unless it gets somewhere

    @property
    def _hub(self) -> str:
        return f"{self._invitation.host}:{self._invitation.port}"

    async def run(self) -> None:
        """Take part until the run has ended.

        Raises:
            LiveError: the hub refuses, cannot be reached, or sends what it may not.
        """
        with one_thread():
            try:
                self._replay()
                while not self._done:
                    await self._one_connection()
            except WireError as error:
                raise LiveError(f"the hub at {self._hub} has sent what it may not: {error}") from None
            finally:
                if self._pump is not None:
                    self._pump.stop()
                if self._journal is not None:
                    self._journal.close()

    async def _one_connection(self) -> None:
        reader, writer = await self._connected()
        loop, received = asyncio.get_running_loop(), self._session.received
        begun = loop.time()
        try:
            await self._follow(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._session.broken()
            if self._session.received > received or loop.time() > begun + self._invitation.patience:
                self._until = math.inf
            elif loop.time() > self._until:
                raise LiveError(f"the hub at {self._hub} closes every connection") from None
            await asyncio.sleep(RETRY_SECONDS)
        finally:
            writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        invitation, loop = self._invitation, asyncio.get_running_loop()
        self._until = min(self._until, loop.time() + invitation.patience)
        while True:
            try:
                reader, writer = await asyncio.open_connection(invitation.host, invitation.port)
                frames.watch(writer)
                return reader, writer
            except OSError as error:
                if loop.time() > self._until:
                    raise LiveError(f"no hub answers at {self._hub}: {error.strerror or error}") from None
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: greet, catch up, then take what comes."""
        facts = await self._greet(reader, writer)
        if self._machine is None:
            self._build(facts)
            self._facts = facts
            if self._journal is not None:
                self._journal.begin(parts(facts._replace(received=0, epoch=None)))
        assert self._pump is not None
        assert self._facts is not None
        if facts.run != self._facts.run:
            journal = "this process" if self._invitation.journal is None else self._invitation.journal.name
            raise LiveError(
                f"the hub at {self._hub} runs something else than {journal} has begun; give another --journal"
            )
        ahead = await self._ahead(reader, writer)
        if facts.epoch is not None:
            self._pump.epoch = facts.epoch - ahead
        writer.write(written(schema.Ready(self._session.received)))
        self._session.resume(writer, facts.received)
        self._said = None
        self._pump.drain()
        while not self._done:
            number, frame = await self._next(reader, facts.largest)
            if isinstance(frame, schema.Bye):
                self._done = True
            elif not number:
                raise WireError(f"{named(frame)} that was not due")
            elif self._session.is_next(number):
                self._session.received += 1
                self._take(frame, ahead)

    async def _next(self, reader: asyncio.StreamReader, largest: int) -> tuple[int, schema.Frame]:
        """The next frame, and its number.

        Raises:
            LiveError: the hub says that this is the end.
        """
        number, frame = FROM_HUB.read(await frames.read(reader, largest))
        if isinstance(frame, schema.Over):
            raise LiveError(f"the run has come to an early end: {frame.why}")
        if isinstance(frame, schema.Refused):
            raise LiveError(f"the hub refuses: {frame.why}")
        return number, frame

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> schema.Welcome:
        try:
            async with asyncio.timeout(max(self._invitation.patience, listener.SECONDS)):
                await listener.enter(reader, writer, self._invitation.token)
        except TimeoutError:
            raise LiveError(f"what is at {self._hub} does not greet as a hub does") from None
        except asyncio.IncompleteReadError:
            raise LiveError("the hub has closed the connection: the token may be wrong, or the run has ended") from None
        name = f"process {os.getpid()} on {socket.gethostname()}"
        origin = None if self._facts is None else self._facts.origin
        writer.write(written(schema.Hello(source_digest(), name, self._invitation.agents, origin)))
        _, frame = await self._next(reader, frames.LARGEST)
        if not isinstance(frame, schema.Welcome):
            raise WireError(f"{named(frame)} instead of a welcome")
        return frame

    async def _ahead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        """How far the hub's clock is ahead of this one, from the quickest of some answers."""
        loop, found = asyncio.get_running_loop(), list[tuple[float, float]]()
        for _ in range(PINGS):
            begun = loop.time()
            writer.write(written(schema.Ping()))
            _, frame = await self._next(reader, frames.GREETING)
            if not isinstance(frame, schema.Pong):
                raise WireError(f"{named(frame)} instead of a pong")
            ended = loop.time()
            found.append((ended - begun, frame.time - (begun + ended) / 2))
        return min(found)[1]

    def _build(self, facts: schema.Welcome) -> None:
        """Make the machine that the hub has asked for.

        Raises:
            WireError: its parts do not fit together.
            ScenarioError, DataError, UnsupportedScenario: the scenario cannot run here.
        """
        base = Path(facts.base) if self._invitation.base is None else self._invitation.base
        scenario = loads(facts.scenario, "the hub's scenario", base=base)
        task = facts.task
        job = Job(task.id, task.label, task.algorithm, task.replication, task.seed, task.trace, entry=task.entry)
        if (label := task.entry or task.label) not in [entry.label for entry in scenario.algorithms]:
            raise WireError(f"a welcome to {label[:80]!r}, which its scenario does not have")
        if not set(facts.agents) <= set(range(scenario.agents.count)):
            raise WireError("a welcome of agents that its scenario does not have")
        share = Share(scenario, job, facts.origin, frozenset(facts.agents))
        self._machine = Machine(share, lambda node, frame: self._session.post(frame))
        self._pump = Pump(self._machine, facts.speed, self._tell, self._fail, self._journal)

    def _replay(self) -> None:
        """Do again what the journal says was done.

        Raises:
            LiveError: it is no journal of a station.
        """
        if self._journal is None:
            return
        told, entries = self._journal.read()
        if told is None:
            return
        try:
            facts = FROM_HUB.again(told)
            if not isinstance(facts, schema.Welcome):
                raise WireError(f"it begins with {named(facts)}")
            self._build(facts)
            self._facts = facts
            for now, raw in entries:
                self._redo(now, raw)
        except WireError as error:
            raise LiveError(f"{self._invitation.journal} is no journal of a station: {error}") from None

    def _redo(self, now: float, raw: bytes) -> None:
        assert self._machine is not None
        if not raw:
            self._machine.run_due(now)
            return
        self._session.received += 1
        frame = FROM_HUB.again(unpack(raw))
        if isinstance(frame, schema.Passing | schema.Start | schema.Advance):
            self._machine.take(now, frame, self._machine.check(frame))
        else:
            self._report()

    def _take(self, frame: schema.Frame, ahead: float) -> None:
        """A frame of the session, in its turn."""
        assert self._pump is not None
        if isinstance(frame, schema.Finish):
            if self._finished:
                raise WireError("a second finish")
            if self._journal is not None and frame.early:  # the run goes on from what was before
                self._journal.close()
            elif self._journal is not None:
                self._journal.write(self._pump.now, pack(parts(frame)))
            self._report()
            return
        assert isinstance(frame, schema.Passing | schema.Start | schema.Advance)
        if isinstance(frame, schema.Start):
            self._pump.epoch = frame.epoch - ahead
        self._pump.frame(frame)

    def _fail(self, error: BaseException) -> None:
        """An event has raised an exception: the run is over."""
        if isinstance(error, InvariantViolation):
            self._session.post(schema.Failed("violated", str(error)[: schema.LONGEST_TEXT]))
            return
        text = str(error) if isinstance(error, TELLING) else told(error)
        self._session.post(schema.Failed("failed", text[: schema.LONGEST_TEXT]))

    def _report(self) -> None:
        assert self._machine is not None
        self._finished = True
        report = report_of(self._machine)
        for rows in portions(self._machine.rows):
            self._session.post(schema.Rows(rows))
        self._session.post(report)

    def _tell(self) -> None:
        """Say how far it is, if that has changed."""
        assert self._machine is not None
        session, machine = self._session, self._machine
        status = schema.Status(session.received, session.sent, machine.next_due, machine.pulls)
        if status != self._said and session.connected:
            self._said = status
            session.say(status)
