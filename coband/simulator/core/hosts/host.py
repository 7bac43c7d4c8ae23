"""A node in simulated time: it does one thing at a time, and what comes meanwhile queues up.

Messages that have arrived go before turns that are due. While a node handles a message or takes a turn nothing else
reaches it, so what it decides at the end of a turn is what it would have decided at the start.

A node that goes down in the middle of a turn or of handling a message keeps its state: the work is suspended, and
resumed when the node is up again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.clock.clock import DELIVERY, TIMER, TURN
from coband.simulator.core.nodes.message import Message, returned
from coband.simulator.core.nodes.node import Address, Agent, BatchAgent, Client, Later, Node, Outbox
from coband.simulator.core.nodes.outbox import NobodyThere, Silence, Timer, refuse_outbox
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import Draws
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.run_context import RunContext


@dataclass(slots=True)
class Outstanding:
    """A pull whose reward has not come.

    Attributes:
        choice: the event of the choice.
        kept: what the agent knew of the turn (``Agent.kept``).
    """

    arms: ArmSet
    arm: int
    reward: float
    choice: int
    kept: dict[str, Any]


def kept_of(agent: Agent) -> dict[str, Any]:
    """What an agent has to know of its turn when the reward comes."""
    return {name: getattr(agent, name) for name in agent.kept}


def observe_late(agent: Agent, pull: Outstanding) -> Outbox:
    """Have an agent learn from a pull of an earlier turn; what it sends."""
    now = kept_of(agent)
    vars(agent).update(pull.kept)
    outbox: Outbox = agent.observe(pull.arms, pull.arm, pull.reward)
    vars(agent).update(now)
    return outbox


Send = Callable[[Address, Any, Any, int], None]


class Inspector(Protocol):
    """Looks at what nodes do, after each message and turn, when its messages are on their way."""

    def handled(self, node: Node, packet: Packet, outbox: Outbox, cause: int) -> None:
        """A node has handled a packet: a message, a timer of its own, or that its message was given up."""

    def ignored(self, node: Node, timer: Message, cause: int) -> None:
        """A node has no use for a timer any more."""

    def heard(self, node: Agent, messages: Sequence[tuple[Address, Message]], outbox: Outbox, cause: int) -> None:
        """An agent has handled LOCAL messages that reached it at one moment."""

    def pulled(self, node: Agent, arms: ArmSet, arm: int, reward: float, outbox: Outbox, cause: int) -> None:
        """An agent has taken a turn."""

    def chose(self, node: Agent, arms: ArmSet, arm: int, cause: int) -> None:
        """An agent has pulled an arm, and will be told the reward later."""

    def rewarded(self, node: Agent, pull: Outstanding, outbox: Outbox, cause: int) -> None:
        """An agent was told the reward of an earlier pull."""

    def pulled_batch(self, node: BatchAgent, counts: IntArray, means: FloatArray, outbox: Outbox, cause: int) -> None:
        """A batch agent has ended a phase."""


class Host:
    """Wraps one node.

    Args:
        handling: draws the time that handling a message takes; None for none.
        send: puts a message on the network: (source, recipient, message, cause).
        check: looks at every message and turn with ``checks: full``, else None.
    """

    def __init__(
        self, node: Node, run: RunContext, handling: Draws | None, send: Send, check: Inspector | None
    ) -> None:
        self.node, self.address = node, node.context.index
        self._clock, self._trace, self._down, self._energy = run.clock, run.trace, run.down, run.energy
        self._handling, self._send, self._check = handling, send, check
        self.busy = False  # in the middle of a turn or of handling a message
        self._inbox: deque[tuple[Packet, int]] | tuple[()] = ()  # until something queues up
        self._model = -1
        # While it is down: since when, work that would have ended meanwhile, timers and messages that expired. After
        # that: for how long the work at hand was suspended.
        self._down_since = self._suspended = 0.0
        self._postponed: tuple[float, int, Callable[[Any], None], object] | None = None
        self._unnoticed: Sequence[tuple[Packet, int]] = ()

    def arrives(self, packet: Packet) -> int:
        """Note that a packet has reached this host, whatever the node hears of it; the number of that event."""
        return self._trace.record_copy(self._clock.now, tr.DELIVER, self.address, packet.source, packet)

    def on_packet(self, packet: Packet) -> None:
        seq = self.arrives(packet)
        if self.busy or self._handling is not None:
            self._take(packet, seq)
        else:
            self._handle(packet, seq)

    def on_expiry(self, packet: Packet, seq: int) -> None:
        """The transport has given up a message that this node sent."""
        if self.address not in self._down.gone:
            self._notice(packet, seq)

    def on_silence(self, source: Address, cause: int) -> None:
        """The transport has given up a message to this node, which notices it after a while: by a timer, as everybody.

        On real sockets this is a connection whose other end is not heard of in time.
        """
        if self.address not in self._down.gone:
            self._set_timer(
                self.node.context.recovery.timeout, Silence(about=source, final=source in self._down.gone), cause
            )

    def _take(self, packet: Packet, seq: int) -> None:
        """Handle a packet now or, when busy, later."""
        if self.busy:
            self.queue(packet, seq)
        elif self._handling is None:
            self._handle(packet, seq)
        else:
            self._start_handling(packet, seq)

    def queue(self, packet: Packet, seq: int) -> None:
        """Handle a packet later."""
        if not self._inbox:
            self._inbox = deque()
        self._inbox.append((packet, seq))

    def _start_handling(self, packet: Packet, seq: int) -> None:
        assert self._handling is not None
        self.busy = True
        end = self._clock.now + self._handling()
        self._clock.at(end, DELIVERY, self.address, self._end_handling, (packet, seq))

    def _end_handling(self, due: tuple[Packet, int]) -> None:
        if self._is_suspended(DELIVERY, self._end_handling, due):
            return
        self.busy = False
        self._handle(*due)
        self._next()

    def _handle(self, packet: Packet, seq: int) -> int:
        """Give a packet to the node; returns the event that what it does is due to."""
        if packet.timer:
            outbox = self.node.on_timer(packet.message)
            if outbox is None:
                if self._check is not None:
                    self._check.ignored(self.node, packet.message, seq)
                return seq
            seq = self._record_timer(packet.message, seq)
        elif packet.expired:
            outbox = self.node.undelivered(packet.message.original, packet.destination)
        else:
            flood = packet.flood
            outbox = self.node.receive(packet.message, packet.source if flood is None else flood.origin)
        self._carry_out(outbox, seq, packet)
        if self._check is not None:
            self._check.handled(self.node, packet, outbox, seq)
        return seq

    def _record_timer(self, message: Message, cause: int) -> int:
        """A timer that matters rings; its cause is the event due to which it was set."""
        about = message.about if isinstance(message, Timer) else None
        return self._trace.record(
            self._clock.now,
            tr.TIMER,
            self.address,
            tr.NOBODY if about is None else about,
            cause=cause,
            kind=self._trace.names[message.kind],
            round=message.round,
            version=message.version,
        )

    def _carry_out(self, outbox: Outbox, cause: int, after: Packet | str) -> None:
        """Record the node's notes and send its messages; ``after``: the packet that it has handled, or its method."""
        node = self.node
        if self.address in self._down:
            raise InvariantViolation(f"node {self.address} acted while it was down", cause)
        if node.notes:
            trace, now, me = self._trace, self._clock.now, self.address
            for note in node.notes:
                event, version = tr.CODES[note.event], note.version
                if event == tr.MODEL:
                    if version < self._model:
                        text = f"node {me} went back from model version {self._model} to {version}"
                        raise InvariantViolation(text, cause)
                    self._model = version
                # A number from the mathematics stays out of the fingerprint: its last bits depend on shared work.
                value = f"{note.value:.9g}" if trace.kept else None
                seq = trace.record(now, event, me, cause=cause, round=note.round, version=version, detail=value)
                if event == tr.TRIGGER:
                    cause = seq
            node.notes = ()
        try:
            if not isinstance(outbox, list):
                raise TypeError
            for recipient, message in outbox:
                if type(recipient) is Later:
                    self._set_timer(recipient.delay, message, cause)
                else:
                    self._send(self.address, recipient, message, cause)
        except (TypeError, ValueError, AttributeError) as error:
            method = after if isinstance(after, str) else self._handler(after)
            refuse_outbox(outbox, node, method)
            if isinstance(error, NobodyThere):
                raise returned(node, method, outbox, str(error)) from None
            raise

    def _handler(self, packet: Packet) -> str:
        """The method of the node that has handled a packet."""
        if packet.timer or packet.expired:
            return "on_timer" if packet.timer else "undelivered"
        return self.node.handled_by(packet.message)

    def _set_timer(self, delay: float, message: Message, cause: int) -> None:
        packet = Packet(message, source=self.address, destination=self.address, send=cause, timer=True)
        self._clock.at(self._clock.now + delay, TIMER, self.address, self._on_timer, packet)

    def _on_timer(self, packet: Packet) -> None:
        self._notice(packet, packet.send)

    def _notice(self, packet: Packet, seq: int) -> None:
        """Handle what no link has brought, as soon as the node is up."""
        if self.address in self._down:
            self._unnoticed = (*self._unnoticed, (packet, seq))
        else:
            self._take(packet, seq)

    # --- going down and coming up

    def go_down(self, since: float) -> None:
        """Work is suspended from a time on."""
        self._down_since = since

    def come_up(self, cause: int, since: float) -> None:
        """Go on, from a time on; it is now unless nothing was put off."""
        if self.busy:
            self._suspended += since - self._down_since
        if self._postponed is not None:
            (time, *work), self._postponed = self._postponed, None
            self._clock.at(time + self._suspended, work[0], self.address, work[1], work[2])  # type: ignore[arg-type]
            self._suspended = 0.0
        unnoticed, self._unnoticed = self._unnoticed, ()
        for packet, seq in unnoticed:
            self._take(packet, seq)
        self._wake(cause)

    def _wake(self, cause: int) -> None:
        """Start what became due while the node was down."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to do once it is up."""
        return self._postponed is not None or bool(self._unnoticed)

    def _is_suspended(self, kind: int, callback: Callable[[Any], None], value: object) -> bool:
        """Whether work that was to end now ends later, since the node is or was down; then it is put off."""
        if self.address in self._down:
            self._postponed = (self._clock.now, kind, callback, value)
            return True
        if self._suspended:
            end, self._suspended = self._clock.now + self._suspended, 0.0
            self._clock.at(end, kind, self.address, callback, value)
            return True
        return False

    def _next(self) -> None:
        """Free again: handle what has queued up."""
        while self._inbox and not self.busy:
            packet, seq = self._inbox.popleft()
            if self._handling is None:
                self._handle(packet, seq)
            else:
                self._start_handling(packet, seq)


class ClientHost(Host):
    """Wraps one client, and records when it starts and stops waiting for the protocol.

    Attributes:
        waited: whether it waits, as far as the trace has said.
    """

    node: Client
    waited = False
    _resumption = tr.NONE

    def _handle(self, packet: Packet, seq: int) -> int:
        seq = Host._handle(self, packet, seq)
        if self.node.waiting != self.waited:
            self._note_waiting(seq)
        return seq

    def _note_waiting(self, cause: int) -> None:
        waiting = self.node.waiting
        if waiting != self.waited:
            self.waited = waiting
            event = tr.WAIT if waiting else tr.RESUME
            seq = self._trace.record(self._clock.now, event, self.address, cause=cause)
            self._resumption = tr.NONE if waiting else seq

    @property
    def left(self) -> bool:
        """Whether it is not a member any more, or never was."""
        return self.address in self._down.left

    @property
    def unfinished(self) -> int:
        """1 in the middle of a turn when it has gone down, else 0."""
        return int(self._postponed is not None and self._postponed[1] == TURN)

    @property
    def due(self) -> int:
        """Turns that the schedule has allowed and the client has not started."""
        raise NotImplementedError
