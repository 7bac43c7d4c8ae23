"""A server that from time to time hears all agents: starts a synchronisation on request and waits for everyone."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from agents.messages import SyncRequest, SyncStart
from simulator.core.message import Message
from simulator.core.node import ALL_AGENTS, Address, Outbox, Server, Setting

M = TypeVar("M", bound=Message)


class SynchronousServer(Server):
    """Ignores requests that the synchronisation under way answers anyway.

    Attributes:
        version: number of finished synchronisations.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.version = 0
        self.synchronising = False

    def receive(self, message: Message, source: Address) -> Outbox:
        """A request starts a synchronisation; everything else belongs to the one under way."""
        if not isinstance(message, SyncRequest):
            return self.collect(message, source)
        if self.synchronising or message.version != self.version:
            return []
        self.synchronising = True
        return [(ALL_AGENTS, SyncStart(round=self.version + 1, version=self.version))]

    @abstractmethod
    def collect(self, message: Message, source: Address) -> Outbox:
        """An agent's part of the synchronisation under way."""

    def finish(self) -> None:
        """The synchronisation under way is over."""
        self.version += 1
        self.rounds = self.version
        self.synchronising = False
        self.note("apply", version=self.version, round=self.version, value=self.applied)


class Gathering(Generic[M]):
    """One message from each agent.

    Args:
        agents: how many to wait for.
    """

    def __init__(self, agents: int) -> None:
        self._agents = agents
        self._messages: dict[Address, M] = {}

    def add(self, source: Address, message: M) -> bool:
        """Keep an agent's message; True when all have come."""
        self._messages[source] = message
        return len(self._messages) == self._agents

    def take(self) -> list[M]:
        """All messages by index of their agents; the gathering starts anew."""
        messages = [message for _, message in sorted(self._messages.items())]
        self._messages = {}
        return messages
