"""Servers of agents whose epochs or rounds end for all together or not at all; see `agents.common.ends_together`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from coband.agents.messages.synchronisation import SyncAbandoned
from coband.server.common.sums import sum_mismatch
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext, Server
from coband.simulator.maths.posteriors.finite_domain import Domain

M = TypeVar("M", bound=Message)


class InStepServer(Talks, Server):
    """What such servers have in common.

    Attributes:
        closed: exchanging has ended for good, since an agent could not be reached or was silent for long.
    """

    closed: bool = False
    hears: ClassVar[tuple[type[Message], ...]] = ()
    """What agents send by themselves; after the end that is answered with the end."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._handlers = {**cls._handlers, **{("on", kind): ("after_the_end", False) for kind in cls.hears}}

    async def main(self) -> None:
        """One epoch after the other, as long as all agents take part."""
        while await self.step():
            pass
        self.close()

    async def step(self) -> bool:
        """One epoch: it is over when the first kind of ``hears`` is here from all; False if an agent is missing."""
        found = await self.gather(None, reply=self.hears[0], together=True)
        if found.left:
            return False
        self.conclude(found)
        return True

    def conclude(self, found: Any) -> None:
        """What follows from the messages of all agents, by agent."""
        raise NotImplementedError

    def close(self) -> None:
        """End the exchange for good: tell all agents."""
        self.closed = True
        self.tell(ALL_AGENTS, self._end())

    @on(SyncAbandoned)
    def abandoned(self, message: SyncAbandoned, agent: Address) -> None:
        """An agent goes on alone."""
        if not self.closed:
            self.end()
            self.close()

    def after_the_end(self, message: Message, agent: Address) -> SyncAbandoned | None:
        """There is nothing to wait for."""
        return self._end() if self.closed else None

    def resummed(
        self,
        name: str,
        kept: FloatArray,
        uploads: Sequence[tuple[Address, Message]],
        kind: type[M],
        part: Callable[[Address, M], Any],
    ) -> Iterator[str]:
        """Yield a sentence unless what is kept is the sum of the parts of the last round's uploads of a kind."""
        last = [part(agent, one) for agent, one in uploads if isinstance(one, kind) and one.round == self.rounds]
        total: Any = np.sum(last, axis=0, dtype=np.float64) if last else np.zeros_like(kept)
        return sum_mismatch(name, kept, total, len(last))

    def _end(self) -> SyncAbandoned:
        return SyncAbandoned(round=self.rounds + 1, version=self.rounds)


class TrimmingServer(InStepServer):
    """A server that eliminates points of the domain, as its agents do.

    Attributes:
        active: numbers of the points that are not eliminated, ascending.
    """

    noted: ClassVar[Mapping[str, str]] = {"apply": "points left in the active set"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = config = context.config
        points = context.domain
        assert points is not None
        self._domain = context.sharing.get("domain", lambda: Domain(config.kernel, points))
        self.active: IndexArray = np.arange(len(points))
        self._before = len(points)

    def note_left(self) -> None:
        """Tell the trace how many points are left."""
        self.note("apply", version=self.rounds, round=self.rounds, value=len(self.active))

    def broken_invariants(self) -> Iterator[str]:
        """The active set never becomes empty and never grows."""
        if not 0 < len(self.active) <= self._before:
            yield f"{len(self.active)} points of {self._before} are left in version {self.rounds}"
        self._before = len(self.active)
