"""An agent that is synchronised with all others from time to time, and asks for it; ``server.synchronisation`` is its
counterpart.

When the transport gives a message up, nobody waits for ever: an answer is sent again a number of times, and an agent
whose answer does not get through, or which has noticed a silence and waited in vain, goes on with the model that it
has. The statistics of an answer that did not get through are its news again, and go with the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from coband.agents.messages.synchronisation import SyncAbandoned, SyncRequest
from coband.simulator.core.algorithm import MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Agent, Outbox, OutOfPatience

ABANDONED = MessageSize(SyncAbandoned, "down", "0", "to all, when a synchronisation has to be given up")


class SynchronousAgent(Agent):
    """What the agents of synchronous algorithms have in common.

    ``_version`` is that of the agent's model; ``_requested`` is true while it waits for a synchronisation it asked for;
    ``_round`` is the synchronisation that it last took part in; ``_unsent`` is its answer while that was given up and
    is to be sent again; ``_behind`` is the number of pulls in the model of the last synchronisation.
    """

    noted: ClassVar[Mapping[str, str]] = {"trigger": "gain since the last synchronisation, above the threshold"}

    _version = 0
    _requested = False
    _round = 0
    _behind = 0
    _unsent: Message | None = None

    @property
    def newest(self) -> int:
        """Version of the newest model that the server has told this agent."""
        return self._version

    def request(self, gain: float) -> Outbox:
        """Ask for a synchronisation, since ``gain`` exceeds the threshold."""
        self._requested = True
        self.note("trigger", version=self._version, value=gain)
        return [(SERVER, SyncRequest(version=self.newest))]

    def take_part(self, message: Message) -> None:
        """Wait for the end of the synchronisation that the server's ``message`` belongs to."""
        self._reclaim()
        self._round, self.waiting = message.round, True

    def resume(self) -> None:
        """Wait no longer; another synchronisation may be asked for."""
        self._reclaim()
        self._requested = self.waiting = False
        self.heard_from(SERVER)

    def take_back(self, message: Message) -> None:
        """What an answer took along that did not get through is the agent's news again."""

    # --- after messages that were given up

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """A request may be made again; an answer is sent again, or is too late and taken back."""
        if isinstance(message, SyncRequest):
            self._requested = False
            return []
        if self.waiting and message.round == self._round:
            self._unsent = message
            return self.again(message, recipient)
        self.unshared += message.pulls
        self.take_back(message)
        return []

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """An answer is wanted as long as its synchronisation goes on."""
        return message is self._unsent

    def resend(self, message: Message, recipient: Address) -> Outbox:
        """Answer once more."""
        self._unsent = None
        return super().resend(message, recipient)

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        """Go on with the model at hand; the server concludes without this agent."""
        self.resume()
        return []

    def missed(self, source: Address) -> Outbox | None:
        """Something from the server does not come: wait for it a while, if this agent waits for anything."""
        return self.be_patient(source, round=self._round) if self.waiting or self._requested else None

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """It has not come: go on with the model at hand, and ask again at the next trigger."""
        self.resume()
        return []

    def _reclaim(self) -> None:
        if self._unsent is not None:
            self.take_back(self._unsent)
            self._unsent = None
