"""A process with agents, which connects to the hub; killed and started again with its journal, it goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.node import Address
from coband.simulator.experiments.runs.blas import one_thread
from coband.simulator.experiments.runs.code_version import source_digest
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.live import frames
from coband.simulator.live.codec import pack, unpack
from coband.simulator.live.journal import Journal
from coband.simulator.live.machine import Machine, Share
from coband.simulator.live.pump import Pump
from coband.simulator.live.session import NUMBERED, Session
from coband.simulator.live.terms import PROTOCOL, LiveError

RETRY_SECONDS = 0.2
PINGS = 8
ROWS = 2000
"""Events in one frame."""


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
        self._facts: dict[str, Any] | None = None
        self._said: tuple[Any, ...] = ()
        self._reported = self._done = False

    async def run(self) -> None:
        """Take part until the run has ended.

        Raises:
            LiveError: the hub refuses, or cannot be reached.
            WireError: the hub sends what it may not.
        """
        with one_thread():
            self._replay()
            try:
                while not self._done:
                    await self._one_connection()
            finally:
                if self._pump is not None:
                    self._pump.stop()
                if self._journal is not None:
                    self._journal.close()

    async def _one_connection(self) -> None:
        reader, writer = await self._connected()
        try:
            await self._follow(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._session.broken()
        finally:
            writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        invitation, loop = self._invitation, asyncio.get_running_loop()
        until = loop.time() + invitation.patience
        while True:
            try:
                return await asyncio.open_connection(invitation.host, invitation.port)
            except OSError as error:
                if loop.time() > until:
                    place = f"{invitation.host}:{invitation.port}"
                    raise LiveError(f"no hub answers at {place}: {error.strerror or error}") from None
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: greet, catch up, then take what comes."""
        facts = await self._greet(reader, writer)
        largest = int(facts["largest"])
        if self._machine is None:
            self._facts = facts
            if self._journal is not None:
                self._journal.begin({**facts, "received": 0, "epoch": None})
            self._build(facts)
        assert self._pump is not None
        ahead = await self._ahead(reader, writer)
        if facts["epoch"] is not None:
            self._pump.epoch = facts["epoch"] - ahead
        writer.write(frames.framed(pack(["ready", self._session.received])))
        self._session.resume(writer, facts["received"])
        self._said = ()
        self._pump.drain()
        while not self._done:
            frame = unpack(await frames.read(reader, largest))
            if frame[0] == "bye":
                self._done = True
            elif frame[0] == "over":
                raise LiveError(f"the run has come to an early end: {frame[1]}")
            elif frame[0] == NUMBERED and self._session.accept(frame[1]):
                self._take(frame[2:], ahead)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
        hello = {
            "protocol": PROTOCOL,
            "code": source_digest(),
            "token": self._invitation.token,
            "name": f"process {os.getpid()} on {socket.gethostname()}",
            "agents": self._invitation.agents,
            "origin": None if self._facts is None else self._facts["origin"],
        }
        writer.write(frames.framed(pack(hello)))
        try:
            answer = unpack(await frames.read(reader, frames.LARGEST))
        except asyncio.IncompleteReadError:
            raise LiveError("the hub has closed the connection: the token may be wrong, or the run has ended") from None
        if answer[0] != "welcome":
            raise LiveError(f"the hub refuses: {answer[1]}")
        facts: dict[str, Any] = answer[1]
        return facts

    async def _ahead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        """How far the hub's clock is ahead of this one, from the quickest of some answers."""
        loop, found = asyncio.get_running_loop(), list[tuple[float, float]]()
        for _ in range(PINGS):
            begun = loop.time()
            writer.write(frames.framed(pack(["ping"])))
            _, theirs = unpack(await frames.read(reader, frames.GREETING))
            ended = loop.time()
            found.append((ended - begun, theirs - (begun + ended) / 2))
        return min(found)[1]

    def _build(self, facts: dict[str, Any]) -> None:
        """Make the machine that the hub has asked for."""
        base = Path(facts["base"]) if self._invitation.base is None else self._invitation.base
        scenario = loads(facts["scenario"], "the hub's scenario", base=base)
        share = Share(scenario, Job(**facts["job"]), facts["origin"], frozenset(facts["agents"]))
        self._machine = Machine(share, self._post)
        self._pump = Pump(self._machine, facts["speed"], self._tell, self._fail, self._journal)

    def _post(self, node: Address, frame: list[Any]) -> None:
        self._session.post(frame)

    def _replay(self) -> None:
        """Do again what the journal says was done."""
        if self._journal is None:
            return
        facts, entries = self._journal.read()
        if facts is None:
            return
        self._facts = facts
        self._build(facts)
        assert self._machine is not None
        for now, raw in entries:
            if not raw:
                self._machine.run_due(now)
                continue
            self._session.received += 1
            frame = unpack(raw)
            if frame[0] == "finish":
                self._report()
            else:
                self._machine.on_frame(now, frame)

    def _take(self, frame: Sequence[Any], ahead: float) -> None:
        assert self._pump is not None
        if frame[0] == "finish":
            if self._journal is not None:
                self._journal.write(self._pump.now, pack(list(frame)))
            self._report()
            return
        if frame[0] == "start":
            self._pump.epoch = frame[1] - ahead
        self._pump.frame(frame)

    def _fail(self, error: Exception) -> None:
        """An event has raised an exception: the run is over."""
        if isinstance(error, InvariantViolation):
            self._session.post(["failed", "violated", str(error)])
        else:
            self._session.post(["failed", "failed", "".join(traceback.format_exception(error))])

    def _report(self) -> None:
        """Send what was recorded."""
        assert self._machine is not None
        self._reported = True
        report = self._machine.report()
        rows = self._machine.rows
        for start in range(0, len(rows), ROWS):
            self._session.post(["rows", rows[start : start + ROWS]])
        self._session.post(["report", report])

    def _tell(self) -> None:
        """Say how far it is, if that has changed."""
        assert self._machine is not None
        session, machine = self._session, self._machine
        status = (session.received, session.sent, machine.next_due, machine.pulls)
        if status != self._said and session.connected:
            self._said = status
            session.say(["status", *status])
