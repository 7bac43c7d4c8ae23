"""Servers of agents whose epochs or rounds end for all of them together or not at all; see ``agents.in_step``."""

from __future__ import annotations

from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, Outbox, OutOfPatience, Server


class InStepServer(Server):
    """What such servers have in common.

    Attributes:
        closed: exchanging has ended for good, since an agent could not be reached or was silent for long.
    """

    closed: bool = False

    def receive(self, message: Message, source: Address) -> Outbox:
        """Handle a message; after the end tell its sender that there is nothing to wait for."""
        self.heard_from(source)
        if not self.closed and not isinstance(message, SyncAbandoned):
            return self.collect(message, source)
        self.applied += message.pulls
        if not self.closed:
            return self.close()
        return [] if isinstance(message, SyncAbandoned) else [(source, self._end())]

    def collect(self, message: Message, source: Address) -> Outbox:
        """Handle a message before the end."""
        raise NotImplementedError

    def close(self) -> Outbox:
        """End the exchange for good: tell all agents."""
        self.closed = True
        return [(ALL_AGENTS, self._end())]

    def _end(self) -> SyncAbandoned:
        return SyncAbandoned(round=self.rounds + 1, version=self.rounds)

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """The agents wait for each other: send it again."""
        return [] if self.closed else self.again(message, recipient)

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """As long as anything is exchanged."""
        return not self.closed

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        """Without one of the agents there is no epoch."""
        return [] if self.closed else self.close()

    def missed(self, source: Address) -> Outbox | None:
        """Something from an agent does not come: wait for it a while."""
        return None if self.closed else self.be_patient(source)

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """It has not come."""
        return None if self.closed else self.close()
