"""The process with the server: stations connect to it, and it passes on what they send to each other.

It also decides when the run begins, when it has come to its end, and, with virtual time, when time goes on: when all
frames that were sent have been handled, and nobody has anything left to do.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.audit.trace import Sink, Trace
from coband.simulator.core.node import SERVER, Address, UnsupportedScenario
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.job import Job, OnPull
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.live import frames
from coband.simulator.live.codec import WireError, pack, unpack
from coband.simulator.live.machine import COPY, SETTLING, Machine, Share, check_parts
from coband.simulator.live.merging import MergedTrace, Part, result_of
from coband.simulator.live.peers import Peer, Peers
from coband.simulator.live.pump import Pump
from coband.simulator.live.session import NUMBERED
from coband.simulator.live.terms import LiveError, Terms

GREETING_SECONDS = 10.0
"""So long a connection may take to show its token."""
LAST_SECONDS = 3.0
"""So long stations are waited for when a run is interrupted."""
BACKWARD = ("ack", "skipped")
"""Frames that go from the receiver of a message to its sender."""


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
        nodes = frozenset([SERVER])
        self._machine = Machine(Share(scenario, job, 0, nodes), self._post)
        self._pump = Pump(self._machine, terms.speed, self._consider, self.fail)
        self._peers = Peers(scenario.agents.count, terms.share)
        self._finishing = self._started = self._handing = False
        self._held: list[tuple[Address, Address, Sequence[Any]]] = []  # receiver, sender, frame
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connections: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._losses: dict[int, asyncio.TimerHandle] = {}
        self._server: asyncio.Server | None = None

    async def listen(self) -> int:
        """Open the port; returns its number.

        Raises:
            UnsupportedScenario: it cannot be opened.
        """
        host, port = self._terms.host, self._terms.port
        try:
            self._server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error
            raise UnsupportedScenario(
                f"{host}:{port} cannot be opened: {reason}; choose another --host, of this machine, or --port"
            ) from None
        return int(self._server.sockets[0].getsockname()[1])

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
        return result_of(self._machine, self._parts(), sink)

    def _parts(self) -> list[Part]:
        own = self._machine.report()
        return [Part([*self._machine.rows], own), *(peer.part for peer in self._peers if peer.part.report)]

    async def _keep_what_there_is(self, sink: Sink | None) -> None:
        """Store the trace of a run that was interrupted, as far as stations still send theirs."""
        self._finishing, self._ended = True, asyncio.get_running_loop().create_future()
        for peer in self._peers:
            peer.session.post(["finish"])
        if list(self._peers):
            await asyncio.wait([self._ended], timeout=LAST_SECONDS)
        if sink is not None:
            trace = Trace(sink)
            MergedTrace(trace, self._parts())
            trace.flush()

    async def close(self) -> None:
        """Close all connections."""
        self._pump.stop()
        for handle in self._losses.values():
            handle.cancel()
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._connections):
            writer.close()
        if self._serving:
            await asyncio.wait(self._serving, timeout=LAST_SECONDS)
        self._ended.cancel()

    def fail(self, error: Exception) -> None:
        """End the run with an error, and tell stations from elsewhere."""
        if not self._ended.done():
            self._ended.set_exception(error)
            for peer in self._peers:
                peer.session.say(["bye"] if self._terms.start else ["over", str(error).partition("\n")[0]])

    # --- connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("peername")[:2]
        self._connections.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        peer: Peer | None = None
        try:
            peer = await self._greeted(reader, writer)
            if peer is not None:
                await self._listen_to(peer, reader, writer)
        except WireError as error:
            self._say(f"connection from {host}:{port} closed: {error}")
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self.fail(error)
        finally:
            self._connections.discard(writer)
            writer.close()
            if peer is not None:
                self._lost(peer, writer)

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        """Check the greeting of a connection and answer it; None: it was refused.

        Raises:
            WireError: it is no greeting, or has another token.
        """
        async with asyncio.timeout(GREETING_SECONDS):
            hello = unpack(await frames.read(reader, frames.GREETING))
        if not isinstance(hello, dict) or not isinstance(hello.get("token"), str):
            raise WireError("no greeting")
        if not hmac.compare_digest(hello["token"].encode(), self._terms.token.encode()):
            raise WireError("wrong token")
        try:
            peer = self._peers.admit(hello)
        except LiveError as refusal:
            self._say(f"a station was refused: {refusal}")
            writer.write(frames.framed(pack(["refused", str(refusal)])))
            return None
        facts = {
            "scenario": self._scenario.to_yaml(),
            "base": str(self._scenario.base),
            "job": vars(self._job),
            "origin": peer.origin,
            "agents": peer.agents,
            "speed": self._terms.speed,
            "epoch": self._pump.epoch,
            "received": peer.session.received,
            "largest": self._terms.largest,
            "rejoin": self._terms.rejoin,
        }
        writer.write(frames.framed(pack(["welcome", facts])))
        return peer

    async def _listen_to(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = unpack(await frames.read(reader, self._terms.largest))
            if not isinstance(frame, list) or not frame:
                raise WireError("a frame that is no list")
            if frame[0] == "ping":
                writer.write(frames.framed(pack(["pong", asyncio.get_running_loop().time()])))
            elif frame[0] == "ready" and len(frame) == 2:
                peer.session.resume(writer, frame[1])
                self._joined(peer)
            elif not peer.session.connected:
                raise WireError(f"a frame {frame[0]!r:.20} before the station was ready")
            elif frame[0] == "status" and len(frame) == 5:
                self._take_status(peer, frame)
            elif frame[0] == NUMBERED and len(frame) > 2:
                if peer.session.accept(frame[1]):
                    self._take(peer, frame[2:])
            else:
                raise WireError(f"a frame {frame[0]!r:.20}, which there is not")

    def _joined(self, peer: Peer) -> None:
        peer.ready = True
        if (handle := self._losses.pop(peer.origin, None)) is not None:
            handle.cancel()
            self._machine.note_state(self._pump.now, peer.agents, True)
            self._say(f"{peer.words} is back")
        if not self._started and self._peers.complete:
            self._start()

    def _start(self) -> None:
        self._started = True
        self._pump.epoch = asyncio.get_running_loop().time()
        for peer in self._peers:
            peer.session.post(["start", self._pump.epoch])
        self._pump.frame(["start"])

    def _lost(self, peer: Peer, writer: asyncio.StreamWriter) -> None:
        """A connection has ended: its agents are down until it comes again."""
        if self._ended.done() or peer.part.report:
            return
        if not peer.session.connected:  # it never was ready
            peer.ready = False
            return
        peer.session.broken()
        peer.ready = False
        rejoin = self._terms.rejoin
        if self._started:
            self._machine.note_state(self._pump.now, peer.agents, False)
        self._say(f"{peer.words} is lost; waiting {rejoin:g} s for it")
        gone = LiveError(f"{peer.words} was lost, and did not come back within {rejoin:g} s")
        self._losses[peer.origin] = asyncio.get_running_loop().call_later(rejoin, self.fail, gone)

    # --- frames

    def _post(self, node: Address, frame: list[Any]) -> None:
        self._peers.of(node).session.post(frame)

    def _take_status(self, peer: Peer, frame: Sequence[Any]) -> None:
        handled, sent, due, pulls = frame[1:]
        numbers = all(isinstance(number, int) for number in (handled, sent, pulls))
        if not numbers or not isinstance(due, (int, float)) or math.isnan(due):
            raise WireError("a status that says nothing")
        peer.session.settle(handled)
        peer.status = (handled, sent, float(due), pulls)
        if self._on_pull is not None:
            self._on_pull(sum(peer.status[3] for peer in self._peers))
        self._consider()

    def _take(self, peer: Peer, frame: Sequence[Any]) -> None:
        """A numbered frame of a station."""
        what = frame[0]
        if what == "copy" or what in SETTLING:
            self._forward(peer, frame)
        elif what == "rows" and len(frame) == 2 and isinstance(frame[1], list):
            peer.part.rows += frame[1]
        elif what == "report" and len(frame) == 2 and isinstance(frame[1], dict):
            peer.part.report = frame[1]
            if all(other.part.report for other in self._peers):
                self._end()
        elif what == "failed" and len(frame) == 3:
            text = f"{peer.words}: {frame[2]}"
            self.fail(InvariantViolation(text) if frame[1] == "violated" else LiveError(text))
        else:
            raise WireError(f"a frame {what!r:.20}, which there is not")

    def _forward(self, peer: Peer, frame: Sequence[Any]) -> None:
        """Give a frame between transports to the server's machine, or to the station of its receiver."""
        check_parts(frame, COPY if frame[0] == "copy" else SETTLING[frame[0]], self._scenario.agents.count)
        source, target = frame[1:3] if frame[0] not in BACKWARD else (frame[2], frame[1])
        if source not in peer.agents:
            raise WireError(f"a {frame[0]} of node {source}, which is not of this station")
        if self._terms.speed:
            self._hand_over(target, frame)
        else:
            if frame[0] == "copy":
                self._machine.transport.packet_of(frame)  # an invalid one is found while its sender is known
            self._held.append((target, source, frame))

    def _hand_over(self, target: Address, frame: Sequence[Any]) -> None:
        if target == SERVER:
            self._pump.frame(frame)
            return
        if frame[0] == "copy":
            packet = self._machine.transport.packet_of(frame)
            if target in self._machine.run.down and self._machine.transport.mends:
                self._machine.transport.lose(packet)
                return
        self._post(target, list(frame))

    # --- beginning, time and end

    def _consider(self) -> None:
        """If all is done that is due, go on: to the next moment of virtual time, or to the end."""
        if not self._started or self._finishing or self._handing or not all(peer.idle for peer in self._peers):
            return
        if self._held:
            self._hand_over_held()
            return
        due = min(self._machine.next_due, *(peer.status[2] for peer in self._peers))
        if self._machine.next_due <= self._pump.now:
            return
        if due == math.inf:
            self._finishing = True
            for peer in self._peers:
                peer.session.post(["finish"])
        elif not self._terms.speed:
            for peer in self._peers:
                if peer.status[2] <= due:
                    peer.session.post(["advance", due])
            if self._machine.next_due <= due:
                self._pump.frame(["advance", due])

    def _hand_over_held(self) -> None:
        """Hand over what stations have sent at this moment of virtual time, in an order that depends on no race.

        It is that of the simulator for simultaneous deliveries: the server's first, then by agent.
        """
        held, self._held, self._handing = sorted(self._held, key=lambda item: item[:2]), [], True
        for target, _, frame in held:
            self._hand_over(target, frame)
        self._handing = False
        self._consider()

    def _end(self) -> None:
        for peer in self._peers:
            peer.session.say(["bye"])
        if not self._ended.done():
            self._ended.set_result(None)
