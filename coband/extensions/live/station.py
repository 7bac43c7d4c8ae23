"""A process with agents, which connects to the hub."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from coband import Address
from coband.extending import Job, code_version, invariants, loading, told
from coband.extensions.live import frames, listener, schema
from coband.extensions.live.codec import WireError
from coband.extensions.live.config import TELLING, LiveError
from coband.extensions.live.frames import FROM_HUB, Session, named, written
from coband.extensions.live.machine import Given, Machine, Pump, Share
from coband.extensions.live.reports import Recorder

RETRY_SECONDS = 0.2
PINGS = 8


@dataclass(frozen=True)
class Invitation:
    """Where a station connects.

    Attributes:
        agents: how many agents it takes; None: as many as the hub says.
        patience: seconds for which it tries to reach the hub.
        base: directory of relative file names in the scenario; None: as the hub says.
    """

    host: str
    port: int
    token: str
    agents: int | None = None
    patience: float = 30.0
    base: Path | None = None


class Station:
    """Runs some agents of a run."""

    _session: Session
    _machine: Machine
    _recorder: Recorder
    _pump: Pump

    def __init__(self, invitation: Invitation) -> None:
        self._invitation = invitation
        self._said: schema.Status | None = None
        self._finished = False

    @property
    def _hub(self) -> str:
        return f"{self._invitation.host}:{self._invitation.port}"

    async def run(self) -> None:
        """Take part until the run has ended.

        Raises:
            LiveError: the hub refuses, cannot be reached, goes away, or sends what it may not.
        """
        with code_version.one_thread():
            reader, writer = await self._connected()
            try:
                await self._follow(reader, writer)
            except WireError as error:
                raise LiveError(f"the hub at {self._hub} has sent what it may not: {error}") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise LiveError(f"the hub at {self._hub} has closed the connection before the end of the run") from None
            finally:
                writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        invitation, loop = self._invitation, asyncio.get_running_loop()
        until = loop.time() + invitation.patience
        while True:
            try:
                reader, writer = await asyncio.open_connection(invitation.host, invitation.port)
                frames.watch(writer)
                return reader, writer
            except OSError as error:
                if loop.time() > until:
                    raise LiveError(f"no hub answers at {self._hub}: {error.strerror or error}") from None
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, make the nodes, then take what comes."""
        facts = await self._greet(reader, writer)
        self._session = Session(writer)
        self._build(facts)
        try:
            ahead = await self._ahead(reader, writer)
            writer.write(written(schema.Ready()))
            while True:
                number, frame = await self._next(reader, facts.largest)
                if isinstance(frame, schema.Bye):
                    return
                if not number:
                    raise WireError(f"{named(frame)} that was not due")
                self._session.receive(number)
                self._take(frame, ahead)
        finally:
            self._pump.stop()

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
        writer.write(written(schema.Hello(code_version.source_digest(), name, self._invitation.agents)))
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
        scenario = loading.loads(facts.scenario, "the hub's scenario", base=base)
        task = facts.task
        job = Job(task.id, task.label, task.algorithm, task.replication, task.seed, task.trace, entry=task.entry)
        if (label := task.entry or task.label) not in [entry.label for entry in scenario.algorithms]:
            raise WireError(f"a welcome to {label[:80]!r}, which its scenario does not have")
        if not set(facts.agents) <= set(range(scenario.agents.count)):
            raise WireError("a welcome of agents that its scenario does not have")
        share = Share(scenario, job, facts.origin, frozenset(facts.agents))
        self._machine = Machine(share, self._post)
        self._recorder = Recorder(self._machine)
        self._pump = Pump(self._machine, facts.speed, self._tell, self._fail)

    def _take(self, frame: schema.Frame, ahead: float) -> None:
        """A frame of the session."""
        if isinstance(frame, schema.Finish):
            if self._finished:
                raise WireError("a second finish")
            self._finished = True
            for record in self._recorder.rest():
                self._session.post(record)
            return
        assert isinstance(frame, Given)
        if isinstance(frame, schema.Start):
            self._pump.epoch = frame.epoch - ahead
        self._pump.frame(frame)

    def _post(self, node: Address, frame: schema.Passing) -> None:
        """Send what a transport sends, after what is recorded of it."""
        self._record()
        self._session.post(frame)

    def _record(self) -> None:
        for record in () if self._finished else self._recorder.news():
            self._session.post(record)

    def _fail(self, error: BaseException) -> None:
        """An event has raised an exception: the run is over."""
        if isinstance(error, invariants.InvariantViolation):
            self._session.post(schema.Failed("violated", str(error)[: schema.LONGEST_TEXT]))
            return
        text = str(error) if isinstance(error, TELLING) else told(error)
        self._session.post(schema.Failed("failed", text[: schema.LONGEST_TEXT]))

    def _tell(self) -> None:
        """Say how far it is, if that has changed."""
        self._record()
        session, machine = self._session, self._machine
        status = schema.Status(session.received, session.sent, machine.next_due, machine.pulls)
        if status != self._said:
            self._said = status
            session.say(status)
