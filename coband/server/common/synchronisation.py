"""Servers of synchronous algorithms: one synchronisation after the other, at the request of any agent.

With ``wait: {quorum: q, timeout: t}`` (ours) a phase of a synchronisation ends once the time t has passed and a share q
of the agents that are there has answered. Data that arrive after their synchronisation has ended are late; they enter
the next one, exactly once. Agents that cannot be reached, or are silent for long, are left out; without any answer a
synchronisation is abandoned, and all agents go on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypedDict, TypeVar

from coband.agents.messages.synchronisation import SyncAbandoned, SyncRequest, SyncStart
from coband.simulator.core.conversations import Answers, Talks
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext, Server

M = TypeVar("M", bound=Message)


class Wait(TypedDict, total=False):
    """Whose answers a phase waits for, as ``gather`` takes it."""

    quorum: int
    timeout: float


class SynchronousServer(Talks, Server):
    """Runs one synchronisation at a time; it ignores requests that the current synchronisation answers anyway.

    Attributes:
        version: number of finished synchronisations.
        round: number of synchronisations begun; more than ``version`` by those that were abandoned.
        synchronising: whether a synchronisation is in progress.
        partly: whether the answers of a quorum are enough.
    """

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls taken in so far"}
    ignores: ClassVar[tuple[type[Message], ...]] = (SyncRequest,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.version = self.round = 0
        self.synchronising = False
        self._quorum: Any = getattr(context.config, "wait", "all")
        self.partly = self._quorum != "all"

    @property
    def wait(self) -> Wait:
        """Quorum, of the agents that are there, and timeout of a phase; empty: all agents."""
        if not self.partly:
            return {}
        there = sum(map(self.context.is_there, range(self.context.agents)))
        # rounded, since 0.28 * 25 is a little more than 7 in floating point
        return {"quorum": math.ceil(round(self._quorum.quorum * there, 9)), "timeout": self._quorum.timeout}

    async def main(self) -> None:
        """A synchronisation whenever an agent asks for one that knows the newest model."""
        while True:
            await self.hear(SyncRequest, where=lambda request: request.version == self.version)
            self.round += 1
            self.synchronising = True
            finished = await self.synchronise()
            self.synchronising = False
            if not finished:
                self.tell(ALL_AGENTS, SyncAbandoned(round=self.round, version=self.version))

    @abstractmethod
    async def synchronise(self) -> bool:
        """One synchronisation; False if nothing came of it."""

    def asked(self, kind: type[M]) -> Awaitable[Answers[M]]:
        """Ask for what a synchronisation is of, and wait for it as the scenario says; to be awaited."""
        return self.gather(SyncStart(round=self.round, version=self.version), reply=kind, **self.wait)

    def taken_in(self, uploads: Sequence[tuple[Address, Message]], kind: type[M], late: Iterable[M]) -> list[M]:
        """The uploads of a kind that are in the model: neither ``late`` nor of an unfinished synchronisation."""
        waiting = {upload.talk for upload in late} | {upload.talk for upload in self.collected}
        return [upload for _, upload in uploads if isinstance(upload, kind) and upload.talk not in waiting]

    def conclude(self) -> None:
        """A synchronisation has a result."""
        self.version += 1
        self.rounds = self.version
        self.note("apply", version=self.version, round=self.version, value=self.applied)
