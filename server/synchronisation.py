"""A server that from time to time hears all agents: starts a synchronisation on request and waits for everyone.

With ``wait: {quorum: q, timeout: t}`` (ours) it goes on once t has passed in a phase of a synchronisation and a share q
of the agents has answered. What an agent sends for a synchronisation that is over goes into the next one, once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from coband.agents.messages import Overdue, SyncRequest, SyncStart
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, Later, NodeContext, Outbox, Server

M = TypeVar("M", bound=Message)


class SynchronousServer(Server):
    """Ignores requests that the synchronisation under way answers anyway.

    Attributes:
        version: number of finished synchronisations.
        phase: of the synchronisation under way, from 1.
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
        """Whether nobody can be late."""
        return self._timeout is None

    def receive(self, message: Message, source: Address) -> Outbox:
        """A request starts a synchronisation; everything else belongs to the one under way."""
        if isinstance(message, Overdue):
            if not self.synchronising or (message.round, message.phase) != (self.version + 1, self.phase):
                return []
            self._overdue = True
            return self.go_on() if self._may_go_on() else []
        if not isinstance(message, SyncRequest):
            return self.collect(message, source)
        if self.synchronising or message.version != self.version:
            return []
        self.synchronising = True
        return [(ALL_AGENTS, SyncStart(round=self.version + 1, version=self.version)), *self.begin(1)]

    @abstractmethod
    def collect(self, message: Message, source: Address) -> Outbox:
        """An agent's part of the synchronisation under way."""

    def go_on(self) -> Outbox:
        """End the phase under way with the answers that have come."""
        raise AssertionError(f"{type(self).__name__} waits for everyone")

    def begin(self, phase: int) -> Outbox:
        """Wait for the answers of a phase."""
        self.phase, self._answered, self._overdue = phase, set(), False
        if self._timeout is None:
            return []
        return [(Later(self._timeout), Overdue(round=self.version + 1, phase=phase))]

    def is_late(self, message: Message) -> bool:
        """Whether an answer belongs to a synchronisation that is over."""
        return not self.synchronising or message.round != self.version + 1

    def answered(self, source: Address) -> bool:
        """An agent has answered in the phase under way; True when it is time to go on."""
        self._answered.add(source)
        return self._may_go_on()

    def _may_go_on(self) -> bool:
        answers = len(self._answered)
        return answers == self.context.agents or (self._overdue and answers >= self._needed)

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send again what the synchronisation under way needs, or the newest model: its receiver waits for it."""
        over = message.version != self.version or (isinstance(message, SyncStart) and self.phase > 1)
        return [] if over else self.again(message, recipient)

    def gather(self, uploads: Gathering[M], source: Address, message: M) -> Outbox:
        """Keep an agent's only upload of a synchronisation; one that comes late goes into the next."""
        self.applied += message.pulls
        if self.is_late(message):
            uploads.add_late(message)
            return []
        uploads.add(source, message)
        return self.go_on() if self.answered(source) else []

    def has_answered(self, agent: Address) -> bool:
        """Whether an agent has answered in the phase under way."""
        return agent in self._answered

    def finish(self) -> None:
        """The synchronisation under way is over."""
        self.version += 1
        self.rounds = self.version
        self.synchronising = False
        self.note("apply", version=self.version, round=self.version, value=self.applied)


class Gathering(Generic[M]):
    """One message from each agent, and apart from them those that have come late.

    Args:
        agents: how many to wait for.
    """

    def __init__(self, agents: int) -> None:
        self._agents = agents
        self._messages: dict[Address, M] = {}
        self._late: list[M] = []

    def add(self, source: Address, message: M) -> bool:
        """Keep an agent's message; True when all have come."""
        self._messages[source] = message
        return len(self._messages) == self._agents

    def add_late(self, message: M) -> None:
        """Keep a message that belongs to a gathering that is over."""
        self._late.append(message)

    @property
    def kept(self) -> list[M]:
        """The messages that nobody has taken yet, first the late ones."""
        return [*self._late, *(message for _, message in sorted(self._messages.items()))]

    def take_late(self) -> list[M]:
        """The late messages, in the order in which they have come."""
        messages, self._late = self._late, []
        return messages

    def take(self) -> list[M]:
        """The messages of this gathering by index of their agents; it starts anew."""
        messages, self._messages = [message for _, message in sorted(self._messages.items())], {}
        return messages
