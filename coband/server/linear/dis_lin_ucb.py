"""The server of DisLinUCB (Wang et al. 2020): sums the statistics of all agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.server.common.sums import LinearSums
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext


class DisLinUCBServer(SynchronousServer):
    """Waits for the uploads of all agents or of a quorum, then broadcasts the sums."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._late: list[LinearUpload] = []
        self.sums = LinearSums(context.dimension, context.config.lam)

    async def synchronise(self) -> bool:
        """W_sync += sum W_new, b_sync += sum b_new.

        In the order of the agents, so that the sums do not depend on the order of arrival.
        """
        uploads = await self.asked(LinearUpload)
        if not uploads:
            return False
        for upload in [*self._late, *uploads.values()]:
            self.sums.add(upload.W, upload.b)
        self._late = []
        self.conclude()
        sums, known = self.sums, self.applied
        self.tell(ALL_AGENTS, LinearModel(W=sums.gram, b=sums.b, version=self.version, round=self.round, known=known))
        return True

    @late(LinearUpload)
    def keep(self, upload: LinearUpload, agent: Address) -> None:
        """It joins the next synchronisation."""
        self._late.append(upload)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads except those that wait for the next synchronisation."""
        return self.sums.discrepancies(self.taken_in(uploads, LinearUpload, self._late))

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.version)
