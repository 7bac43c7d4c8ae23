"""An agent that asks for synchronisations with all others; the server is in `server.common.synchronisation`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from coband.agents.messages.synchronisation import SyncAbandoned, SyncRequest, SyncStart
from coband.simulator.core.algorithm import MessageSize
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, Agent, Outbox

OPENING = MessageSize(SyncRequest, "up", "0"), MessageSize(SyncStart, "down", "0", "to all")
ABANDONED = MessageSize(SyncAbandoned, "down", "0", "to all, when a synchronisation has to be given up")


class SynchronousAgent(Talks, Agent):
    """What the agents of synchronous algorithms have in common.

    An agent that is not heard, or hears nothing, goes on with the model that it has; what its upload took along is its
    news again.

    Attributes:
        model: the message that ends a synchronisation.
    """

    noted: ClassVar[Mapping[str, str]] = {"trigger": "gain since the last synchronisation"}
    ignores: ClassVar[tuple[type[Message], ...]] = (SyncAbandoned,)
    model: ClassVar[type[Message]]

    _version = 0  # of the agent's model
    _newest = 0  # version of the newest one that it was told
    _requested = False  # it has asked for a synchronisation
    _behind = 0  # pulls in the model of the last synchronisation

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._handlers = {**cls._handlers, ("late", cls.model): ("take_in", False)}

    def request(self, gain: float) -> Outbox:
        """Ask for a synchronisation, since ``gain`` exceeds the threshold."""
        return self.begin(self._request(gain))

    async def _request(self, gain: float) -> None:
        self._requested = True
        self.note("trigger", version=self._version, value=gain)
        request = SyncRequest(version=self._version)
        await self.ask(SERVER, request, reply=(self.model, SyncAbandoned), public=True, attempts=0)
        self._requested = False

    @on(SyncStart, blocking=True)
    async def take_part(self, start: SyncStart, server: Address) -> None:
        """Send the news, and wait for everybody's."""
        upload = self.upload(start)
        model = await self.ask(SERVER, upload, reply=(self.model, SyncAbandoned), undo=self.take_back)
        if isinstance(model, self.model):
            self.take_in(model, server)

    @abstractmethod
    def upload(self, start: SyncStart) -> Message:
        """What this agent contributes to a synchronisation."""

    def take_back(self, upload: Any) -> None:
        """What an upload took along that did not get through is the agent's news again."""

    def take_in(self, model: Any, server: Address) -> None:
        """Adopt the result of a synchronisation, waited for or not, unless that of a later one has come before."""
        if model.version >= self._newest:
            self._newest = model.version
            self.adopt(model)

    @abstractmethod
    def adopt(self, model: Any) -> None:
        """Go on from the result of a synchronisation."""
