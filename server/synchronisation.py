"""Servers of synchronous algorithms: they start a synchronisation on request and wait for the answers of all agents.

With ``wait: {quorum: q, timeout: t}`` (ours) the server ends a phase of a synchronisation once the time t has passed
and a share q of the agents has answered. Data that arrive after their synchronisation has ended are late; they enter
the next synchronisation, exactly once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from coband.agents.messages.synchronisation import Overdue, SyncRequest, SyncStart
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, Later, NodeContext, Outbox, Server

M = TypeVar("M", bound=Message)


class SynchronousServer(Server):
    """Runs one synchronisation at a time; it ignores requests that the current synchronisation answers anyway.

    Attributes:
        version: number of finished synchronisations.
        synchronising: whether a synchronisation is in progress.
        phase: phase of the current synchronisation, from 1.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.version = 0
        self.synchronising = False
        wait: Any = getattr(context.config, "wait", "all")
        self._timeout = None if wait == "all" else wait.timeout
        self._needed = context.agents if wait == "all" else math.ceil(wait.quorum * context.agents)
        self.phase = 0
        self._answered: set[Address] = set()
        self._overdue = False

    @property
    def waits_for_all(self) -> bool:
        """Whether every phase waits for all agents, so that no message is late."""
        return self._timeout is None

    def receive(self, message: Message, source: Address) -> Outbox:
        """Start a synchronisation on request; pass other messages on to the current one."""
        if isinstance(message, Overdue):
            if not self.synchronising or (message.round, message.phase) != (self.version + 1, self.phase):
                return []
            self._overdue = True
            return self.end_phase() if self._phase_can_end() else []
        if not isinstance(message, SyncRequest):
            return self.collect(message, source)
        if self.synchronising or message.version != self.version:
            return []
        self.synchronising = True
        return [(ALL_AGENTS, SyncStart(round=self.version + 1, version=self.version)), *self.begin_phase(1)]

    @abstractmethod
    def collect(self, message: Message, source: Address) -> Outbox:
        """Handle an agent's answer in the current synchronisation."""

    def end_phase(self) -> Outbox:
        """End the current phase with the answers received so far."""
        raise AssertionError(f"{type(self).__name__} waits for everyone")

    def begin_phase(self, phase: int) -> Outbox:
        """Start a phase, and its timer if there is a quorum."""
        self.phase, self._answered, self._overdue = phase, set(), False
        if self._timeout is None:
            return []
        return [(Later(self._timeout), Overdue(round=self.version + 1, phase=phase))]

    def is_late(self, message: Message) -> bool:
        """Whether an answer belongs to a synchronisation that has ended."""
        return not self.synchronising or message.round != self.version + 1

    def record_answer(self, source: Address) -> bool:
        """Record that an agent has answered in the current phase; True if the phase can end."""
        self._answered.add(source)
        return self._phase_can_end()

    def _phase_can_end(self) -> bool:
        answers = len(self._answered)
        return answers == self.context.agents or (self._overdue and answers >= self._needed)

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send again what the current synchronisation needs, or the newest model: its receiver waits for it."""
        obsolete = message.version != self.version or (isinstance(message, SyncStart) and self.phase > 1)
        return [] if obsolete else self.again(message, recipient)

    def buffer_upload(self, uploads: MessageBuffer[M], source: Address, message: M) -> Outbox:
        """Store an agent's upload in protocols with one upload per synchronisation; a late one joins the next."""
        self.applied += message.pulls
        if self.is_late(message):
            uploads.add_late(message)
            return []
        uploads.add(source, message)
        return self.end_phase() if self.record_answer(source) else []

    def has_answered(self, agent: Address) -> bool:
        """Whether an agent has answered in the current phase."""
        return agent in self._answered

    def finish_synchronisation(self) -> None:
        """End the current synchronisation."""
        self.version += 1
        self.rounds = self.version
        self.synchronising = False
        self.note("apply", version=self.version, round=self.version, value=self.applied)


class MessageBuffer(Generic[M]):
    """Collects one message from each agent, and separately the messages that arrive late.

    Args:
        agents: number of agents.
    """

    def __init__(self, agents: int) -> None:
        self._agents = agents
        self._messages: dict[Address, M] = {}
        self._late: list[M] = []

    def add(self, source: Address, message: M) -> bool:
        """Store an agent's message; True when all agents have sent one."""
        self._messages[source] = message
        return len(self._messages) == self._agents

    def add_late(self, message: M) -> None:
        """Store a message that belongs to an earlier synchronisation."""
        self._late.append(message)

    @property
    def stored(self) -> list[M]:
        """The stored messages, the late ones first."""
        return [*self._late, *(message for _, message in sorted(self._messages.items()))]

    def take_late(self) -> list[M]:
        """Remove and return the late messages, in their order of arrival."""
        messages, self._late = self._late, []
        return messages

    def take(self) -> list[M]:
        """Remove and return the messages that are not late, in the order of the agents."""
        messages, self._messages = [message for _, message in sorted(self._messages.items())], {}
        return messages
