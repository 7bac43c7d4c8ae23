"""The server of DisLinUCB (Wang et al. 2020): sums the statistics of all agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.server.sums import LinearSums
from coband.server.synchronisation import MessageBuffer, SynchronousServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox


class DisLinUCBServer(SynchronousServer):
    """Waits for the uploads of all agents or of a quorum, then broadcasts the sums."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._uploads: MessageBuffer[LinearUpload] = MessageBuffer(context.agents)
        self.sums = LinearSums(context.dimension, context.config.lam)

    def collect(self, message: Message, source: Address) -> Outbox:
        """Store an agent's upload; an upload that arrives late joins the next synchronisation."""
        assert isinstance(message, LinearUpload)
        return self.buffer_upload(self._uploads, source, message)

    def end_phase(self) -> Outbox:
        """Add the uploads in the order of the agents, so that the sums do not depend on the order of arrival."""
        for upload in [*self._uploads.take_late(), *self._uploads.take()]:
            self.sums.add(upload.W, upload.b)
        self.finish_synchronisation()
        sums, known = self.sums, self.applied
        model = LinearModel(W=sums.gram, b=sums.b, version=self.version, round=self.round, known=known)
        return [(ALL_AGENTS, model)]

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads except those that wait for the next synchronisation."""
        waiting = self._uploads.stored
        taken = [upload for _, upload in uploads if isinstance(upload, LinearUpload) and upload not in waiting]
        return self.sums.discrepancies(taken)

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.version)
