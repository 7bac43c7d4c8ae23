"""Agents whose epochs or rounds end for all of them together or not at all; ``server.in_step`` is the server's side.

Elimination needs the numbers of all agents. When the transport gives a message up, it is sent again a number of times.
If that is in vain, or if nothing comes where something is missing, exchanging ends for good and for everybody: each
agent goes on alone with what it knows.
"""

from __future__ import annotations

from abc import abstractmethod

from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.core.algorithm import MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Client, Outbox, OutOfPatience

PARTING = (
    MessageSize(SyncAbandoned, "up", "0", "from an agent that has to go on alone"),
    MessageSize(SyncAbandoned, "down", "0", "to all, when exchanging has to end"),
)


class InStepClient(Client):
    """What such agents have in common.

    Attributes:
        alone: exchanging has ended for good.
    """

    alone: bool = False

    def part(self) -> Outbox:
        """Go on alone, unless that is so already."""
        if self.alone or self.done:
            return []
        self.alone = True
        return self.leave()

    @abstractmethod
    def leave(self) -> Outbox:
        """Wait for the others no longer; answer with what they are to be told."""

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """The others wait for this message: send it again."""
        if not self.alone and not isinstance(message, SyncAbandoned):
            return self.again(message, recipient)
        self.unshared += message.pulls
        return []

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """As long as the agents exchange anything."""
        return not self.alone

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        """Go on alone."""
        return self.part()

    def missed(self, source: Address) -> Outbox | None:
        """Something does not come: wait for it a while."""
        return None if self.alone or self.done else self.be_patient(source)

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """It has not come: go on alone."""
        return None if self.alone or self.done else self.part()
