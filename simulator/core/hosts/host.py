"""A node in simulated time: it does one thing at a time, and what comes meanwhile queues up.

Messages that have arrived go before turns that are due. While a node handles a message or takes a turn nothing else
reaches it, so what it decides at the end of a turn is what it would have decided at the start.

A node that goes down in the middle of a turn or of handling a message keeps what it has: the work rests, and takes as
long as was left of it when the node is up again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.audit.trace import Trace
from coband.simulator.core.clock.clock import DELIVERY, TIMER, Clock
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Client, Later, Node, Outbox
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import Draws

Send = Callable[[Address, Any, Any, int], None]
Inspect = Callable[[Node, Packet | None, int], None]


class Host:
    """Wraps one node.

    Args:
        node: the agent or server.
        handling: draws the time that handling a message takes; None for none.
        send: puts a message on the network: (source, recipient, message, cause).
        check: called after every message and turn with ``checks: full``, else None.
    """

    def __init__(
        self, node: Node, clock: Clock, trace: Trace, handling: Draws | None, send: Send, check: Inspect | None
    ) -> None:
        self.node, self.address = node, node.context.index
        self._clock, self._trace, self._handling, self._send, self._check = clock, trace, handling, send, check
        self._busy = False
        self._inbox: deque[tuple[Packet, int]] = deque()
        self._model = -1
        # While it is down: since when, work whose time came, and timers that rang. Then: for how long work has rested.
        self.down = False
        self._down_since = self._rested = 0.0
        self._resting: tuple[float, int, Callable[[Any], None], object] | None = None
        self._rang: list[Packet] = []

    def on_packet(self, packet: Packet) -> None:
        """A message has reached this node."""
        message = packet.message
        seq = self._trace.record(
            self._clock.now,
            tr.DELIVER,
            self.address,
            packet.source,
            packet.id,
            packet.send,
            packet.kind,
            packet.scalars,
            packet.hop,
            message.round,
            message.version,
            packet.attempts,
        )
        self._take(packet, seq)

    def on_expiry(self, packet: Packet, seq: int) -> None:
        """A message of this node's was given up."""
        self._take(packet, seq)

    def _take(self, packet: Packet, seq: int) -> None:
        """Handle something now or, when busy, later."""
        if self._busy:
            self._inbox.append((packet, seq))
        elif self._handling is None:
            self._handle(packet, seq)
        else:
            self._start_handling(packet, seq)

    def _start_handling(self, packet: Packet, seq: int) -> None:
        assert self._handling is not None
        self._busy = True
        end = self._clock.now + self._handling()
        self._clock.at(end, DELIVERY, self.address, self._end_handling, (packet, seq))

    def _end_handling(self, event: Any) -> None:
        if self._rests(DELIVERY, self._end_handling, event):
            return
        self._busy = False
        self._handle(*event.value)
        self._next()

    def _handle(self, packet: Packet, seq: int) -> None:
        if packet.expired:
            outbox = self.node.undelivered(packet.message, packet.destination)
        else:
            outbox = self.node.receive(packet.message, packet.origin)
        self._carry_out(outbox, seq)
        if self._check is not None:
            self._check(self.node, packet, seq)

    def _carry_out(self, outbox: Outbox, cause: int) -> None:
        """Record the node's notes and send its messages."""
        node = self.node
        if self.down:
            raise InvariantViolation(f"node {self.address} acted while it was down", cause)
        if node.notes:
            for note in node.notes:
                if note.event == "model":
                    self._follow_model(note.version, cause)
                # A number from the mathematics stays out of the fingerprint: its last bits depend on shared work.
                seq = self._trace.record(
                    self._clock.now,
                    tr.CODES[note.event],
                    self.address,
                    cause=cause,
                    round=note.round,
                    version=note.version,
                    detail=f"{note.value:.9g}",
                )
                if note.event == "trigger":
                    cause = seq
            node.notes.clear()
        for recipient, message in outbox:
            if type(recipient) is Later:
                self._set_timer(recipient.delay, message, cause)
            else:
                self._send(self.address, recipient, message, cause)

    def _follow_model(self, version: int, cause: int) -> None:
        if version < self._model:
            text = f"node {self.address} went back from model version {self._model} to {version}"
            raise InvariantViolation(text, cause)
        self._model = version

    def _set_timer(self, delay: float, message: Message, cause: int) -> None:
        packet = Packet(message, -1, self.address, self.address, 0, cause, tr.NONE, 0)
        self._clock.at(self._clock.now + delay, TIMER, self.address, self._ring, packet)

    def _ring(self, event: Any) -> None:
        packet: Packet = event.value
        if self.down:
            self._rang.append(packet)
        else:
            self._take(packet, packet.send)

    # --- going down and coming up

    def go_down(self) -> None:
        """Rest from now on."""
        self.down, self._down_since = True, self._clock.now

    def come_up(self, cause: int) -> None:
        """Go on."""
        self.down = False
        if self._busy:
            self._rested += self._clock.now - self._down_since
        if self._resting is not None:
            (time, *work), self._resting = self._resting, None
            self._clock.at(time + self._rested, work[0], self.address, work[1], work[2])  # type: ignore[arg-type]
            self._rested = 0.0
        rang, self._rang = self._rang, []
        for packet in rang:
            self._take(packet, packet.send)
        self._wake(cause)

    def _wake(self, cause: int) -> None:
        """Up again: look for work."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to do once it is up."""
        return self._resting is not None or bool(self._rang)

    def _rests(self, kind: int, callback: Callable[[Any], None], event: Any) -> bool:
        """Whether work that was to end now ends later, since the node is or was down."""
        if self.down:
            self._resting = (self._clock.now, kind, callback, event.value)
            return True
        if self._rested:
            end, self._rested = self._clock.now + self._rested, 0.0
            self._clock.at(end, kind, self.address, callback, event.value)
            return True
        return False

    def _next(self) -> None:
        """Free again: take up what has been waiting."""
        while self._inbox and not self._busy:
            packet, seq = self._inbox.popleft()
            if self._handling is None:
                self._handle(packet, seq)
            else:
                self._start_handling(packet, seq)


class ClientHost(Host):
    """Wraps one client and notes when it waits for the protocol."""

    node: Client
    _waited = False
    _resumption = tr.NONE

    def _handle(self, packet: Packet, seq: int) -> None:
        super()._handle(packet, seq)
        self._note_waiting(seq)

    def _note_waiting(self, cause: int) -> None:
        waiting = self.node.waiting
        if waiting != self._waited:
            self._waited = waiting
            seq = self._trace.record(self._clock.now, tr.WAIT if waiting else tr.RESUME, self.address, cause=cause)
            self._resumption = tr.NONE if waiting else seq

    @property
    def due(self) -> int:
        """Turns that the schedule has allowed and the client has not started."""
        raise NotImplementedError
