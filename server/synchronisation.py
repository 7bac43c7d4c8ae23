"""Servers of synchronous algorithms: they start a synchronisation on request and wait for the answers of all agents.

With ``wait: {quorum: q, timeout: t}`` (ours) the server ends a phase of a synchronisation once the time t has passed
and a share q of the agents has answered. Data that arrive after their synchronisation has ended are late; they enter
the next synchronisation, exactly once.

When the transport gives messages up, a synchronisation ends without the agents that cannot be reached or that have not
answered for long: they are left out of it. Without any answer it is abandoned as a whole, and all agents go on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from coband.agents.messages.synchronisation import Overdue, SyncAbandoned, SyncRequest, SyncStart
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, Later, NodeContext, Outbox, OutOfPatience, Server

M = TypeVar("M", bound=Message)


class SynchronousServer(Server):
    """Runs one synchronisation at a time; it ignores requests that the current synchronisation answers anyway.

    Attributes:
        asking: messages that ask all agents for an answer.
        version: number of finished synchronisations.
        round: number of synchronisations begun; more than ``version`` by those that were abandoned.
        synchronising: whether a synchronisation is in progress.
        phase: phase of the current synchronisation, from 1.
    """

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls taken in so far"}

    asking: ClassVar[tuple[type[Message], ...]] = (SyncStart,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.version = self.round = 0
        self.synchronising = False
        wait: Any = getattr(context.config, "wait", "all")
        self._timeout = None if wait == "all" else wait.timeout
        self._needed = context.agents if wait == "all" else math.ceil(wait.quorum * context.agents)
        self.phase = 0
        self._answered: set[Address] = set()
        self._decided: set[Address] = set()  # those, and who is waited for no longer
        self._overdue = False
        self._lost: dict[Address, list[Message]] = {}  # models that could not be delivered, by agent

    @property
    def waits_for_all(self) -> bool:
        """Whether every phase waits for all agents, so that no message is late."""
        return self._timeout is None

    def receive(self, message: Message, source: Address) -> Outbox:
        """Start a synchronisation on request; pass other messages on to the current one."""
        if not isinstance(message, SyncRequest):
            return self.collect(message, source)
        if source in self._lost:
            return [(source, model) for model in self._lost.pop(source)]
        if self.synchronising or message.version != self.version:
            return []
        self.synchronising = True
        self.round += 1
        return [(ALL_AGENTS, SyncStart(round=self.round, version=self.version)), *self.begin_phase(1)]

    def on_timer(self, timer: Message) -> Outbox | None:
        """The timeout of a quorum has passed, or an agent has been silent for long."""
        if not isinstance(timer, Overdue):
            return super().on_timer(timer)
        if not self.synchronising or (timer.round, timer.phase) != (self.round, self.phase):
            return None
        self._overdue = True
        return self._conclude_phase()

    @abstractmethod
    def collect(self, message: Message, source: Address) -> Outbox:
        """Handle an agent's answer in the current synchronisation."""

    def end_phase(self) -> Outbox:
        """End the current phase with the answers received so far."""
        raise AssertionError(f"{type(self).__name__} waits for everyone")

    def begin_phase(self, phase: int) -> Outbox:
        """Start a phase, and its timer if there is a quorum."""
        self.phase, self._answered, self._decided, self._overdue = phase, set(), set(), False
        for agent in self._silences:
            self.heard_from(agent)
        if self._timeout is None:
            return []
        return [(Later(self._timeout), Overdue(round=self.round, phase=phase))]

    def is_late(self, message: Message) -> bool:
        """Whether an answer belongs to a synchronisation that has ended."""
        return not self.synchronising or message.round != self.round

    def record_answer(self, source: Address) -> bool:
        """Record that an agent has answered in the current phase; True if the phase can end."""
        self._answered.add(source)
        self._decided.add(source)
        return self._phase_can_end()

    def _phase_can_end(self) -> bool:
        return len(self._decided) == self.context.agents or (self._overdue and len(self._answered) >= self._needed)

    def _conclude_phase(self) -> Outbox:
        if not self._phase_can_end():
            return []
        return self.end_phase() if self._answered else self.abandon()

    @property
    def everyone_answered(self) -> bool:
        """Whether all agents have answered in the current phase."""
        return len(self._answered) == self.context.agents

    # --- after messages that were given up

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send again what the current phase asks for, or the newest model: its receiver waits for it."""
        return self.again(message, recipient) if self.is_wanted(message, recipient) else []

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """Whether a message asks for an answer that is still missing, or is the newest model."""
        if isinstance(message, self.asking):
            return self.is_current(message) and not self.has_answered(recipient)
        return message.version == self.version and not isinstance(message, SyncAbandoned)

    def is_current(self, message: Message) -> bool:
        """Whether a message that asks for an answer belongs to the current phase."""
        return (
            self.synchronising and message.round == self.round and (self.phase == 1) == isinstance(message, SyncStart)
        )

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        """Leave out an agent that cannot be asked; keep a model until the agent is heard of again."""
        if isinstance(message, self.asking):
            return self.leave_out(recipient)
        self._lost.setdefault(recipient, []).append(message)
        return []

    def missed(self, source: Address) -> Outbox | None:
        """An agent's answer, perhaps, does not come: wait for it a while."""
        pending = self.synchronising and source not in self._decided
        return self.be_patient(source, round=self.round) if pending else None

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """Leave out an agent that has not answered."""
        pending = self.synchronising and timer.round == self.round and not self.has_answered(source)
        return self.leave_out(source) if pending else None

    def leave_out(self, agent: Address) -> Outbox:
        """Wait for an agent no longer in the current phase."""
        self._decided.add(agent)
        return self._conclude_phase()

    def abandon(self) -> Outbox:
        """End the current synchronisation without a result: all agents go on with what they have."""
        self.synchronising = False
        return [(ALL_AGENTS, SyncAbandoned(round=self.round, version=self.version))]

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
        self._lost.clear()  # whoever lacks the last model is sent the new one
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
