"""An agent that is synchronised with all others from time to time, and asks for it; ``server.synchronisation`` is its
counterpart."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from coband.agents.messages.synchronisation import SyncRequest
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Agent, Outbox

T = TypeVar("T")


class SynchronousAgent(Agent):
    """What the agents of synchronous algorithms have in common.

    ``_version`` is that of the agent's model; ``_requested`` is true while it waits for a synchronisation it asked for.
    """

    _version = 0
    _requested = False

    def request(self, gain: float) -> Outbox:
        """Ask for a synchronisation, since ``gain`` exceeds the threshold."""
        self._requested = True
        self.note("trigger", version=self._version, value=gain)
        return [(SERVER, SyncRequest(version=self._version))]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """A request that did not come through may be made again; for anything else the server waits."""
        if not isinstance(message, SyncRequest):
            return self.again(message, recipient)
        self._requested = False
        return []

    def in_step(self, key: Hashable, build: Callable[[], T]) -> T:
        """One object for all agents where nobody acts on one model while somebody has the next; else one for each.

        That is where a synchronisation waits for everyone and every message comes in its turn: with a quorum some are
        late, and a model that was given up and sent again may come when others have the next one.
        """
        everyone = getattr(self.context.config, "wait", "all") == "all" and not self.context.lossy
        return self.context.sharing.get(key, build) if everyone else build()
