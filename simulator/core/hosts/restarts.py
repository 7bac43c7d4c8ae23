"""Nodes that begin anew when an agent notices that its world has changed.

Any algorithm for a world that stays as it is, with something that notices changes, is one for a world that changes
from time to time (Gerogiannis et al. 2025). Here all nodes of a run begin anew together. The run has epochs: an agent
that notices a change begins the next one, and tells the server or its neighbours, who begin it too and pass it on.
Every message belongs to the epoch in which it was sent. One of an earlier epoch is thrown away, and its sender is told
which epoch it is; one of a later epoch begins that epoch. So a `Restart` may be lost.

What an agent had not shared, what the server had and what is thrown away is forgotten, and is in the account of pulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.age import NEVER
from coband.simulator.core.hosts.agent_host import AgentHost, Turn
from coband.simulator.core.hosts.detectors import BaseDetector
from coband.simulator.core.hosts.host import Host
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Client, Multicast, Node, Outbox, Recipient, Server
from coband.simulator.core.packet import Packet
from coband.simulator.core.run_context import RunContext


class Restart(Message):
    """Begin anew: ``round`` is the number of the epoch, from 1."""

    kind: ClassVar[str] = "restart"


def begin_anew(node: Node) -> None:
    """Make a node what it was when it was made; what it has drawn from its streams stays drawn."""
    context, kind = node.context, type(node)
    vars(node).clear()
    kind.__init__(node, context)


class RestartingHost(Host):
    """Wraps a node that begins anew when it is told to."""

    epoch = 0

    def __init__(self, *host: Any, **rest: Any) -> None:
        super().__init__(*host, **rest)
        run: RunContext = host[1]
        assert run.restarts is not None
        self._restarts = run.restarts

    def _handle(self, packet: Packet, seq: int) -> int:
        message = packet.message.original
        if message.epoch > self.epoch:
            self._begin_anew(message.epoch, seq, self._beyond(packet.source))
        outdated = message.epoch < self.epoch
        if not outdated and type(message) is not Restart:
            return super()._handle(packet, seq)
        if self._check is not None:
            self._check.outdated(self.node, packet, seq)
        if outdated and not (packet.timer or packet.expired):
            self._restarts.forgotten += message.pulls
            if packet.hop <= 1 and type(message) is not Restart:
                self._tell([(packet.source, Restart(round=self.epoch))], seq)
        return seq

    def _beyond(self, source: Address) -> Sequence[Recipient]:
        """Whom it tells of an epoch that it was told of by a node."""
        return ()

    def _carry_out(self, outbox: Outbox, cause: int, after: Packet | str) -> None:
        if isinstance(outbox, list):
            for _, message in outbox:
                message.__dict__["epoch"] = self.epoch
        super()._carry_out(outbox, cause, after)

    def _set_timer(self, delay: float, message: Message, cause: int) -> None:
        message.__dict__["epoch"] = self.epoch
        super()._set_timer(delay, message, cause)

    def _tell(self, outbox: Outbox, cause: int) -> None:
        self._carry_out(outbox, cause, "receive")
        if self._check is not None:
            self._check.told_epoch(self.node, outbox, cause)

    def _begin_anew(self, epoch: int, cause: int, tells: Sequence[Recipient]) -> None:
        """Begin an epoch because of an event, and tell others."""
        node, restarts = self.node, self._restarts
        assert isinstance(node, Client | Server)
        self.epoch, self._model = epoch, -1
        restarts.epochs = max(restarts.epochs, epoch)
        restarts.forgotten += node.applied if isinstance(node, Server) else node.unshared
        restarts.rounds[self.address] += node.rounds
        begin_anew(node)
        seq = self._trace.record(self._clock.now, tr.RESTART, self.address, cause=cause, round=epoch)
        if self._check is not None:
            self._check.restarted(node, seq)
        self._tell([(to, Restart(round=epoch)) for to in tells], seq)


class RestartingServer(RestartingHost):
    """A server tells all agents of a new epoch."""

    def _beyond(self, source: Address) -> Sequence[Recipient]:
        return (Multicast(excluding=source),)


class RestartingAgent(RestartingHost, AgentHost):
    """Wraps an agent that begins anew when it is told to, or when its rewards have changed.

    Args:
        detector: notices changes.
        tells: whom the agent tells of an epoch that it has begun by itself.
    """

    def __init__(self, *host: Any, detector: BaseDetector, tells: Sequence[Recipient], **rest: Any) -> None:
        super().__init__(*host, **rest)
        self._detector, self._tells = detector, tells
        self._watch = detector.watch(self.node.context.dimension)

    def _beyond(self, source: Address) -> Sequence[Recipient]:
        return () if source == SERVER else self._tells

    def _end(self, turn: Turn, seq: int) -> None:
        super()._end(turn, seq)
        if self._watch.changed(turn.arms.features[turn.arm], turn.reward):
            self._restarts.noticed += 1
            self._begin_anew(self.epoch + 1, seq, self._tells)

    def _begin_anew(self, epoch: int, cause: int, tells: Sequence[Recipient]) -> None:
        super()._begin_anew(epoch, cause, tells)
        self.newest, self._watch = NEVER, self._detector.watch(self.node.context.dimension)
        self._note_waiting(cause)
        self._go_on()
