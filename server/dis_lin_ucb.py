"""The server of DisLinUCB (Wang et al. 2020): sums the statistics of all agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.agents.messages import LinearModel, LinearUpload
from coband.server.sums import LinearSums
from coband.server.synchronisation import Gathering, SynchronousServer
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox


class DisLinUCBServer(SynchronousServer):
    """Waits for everyone's news, or for a quorum's, then sends the sums to all."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._uploads: Gathering[LinearUpload] = Gathering(context.agents)
        self.sums = LinearSums(context.dimension, context.config.lam)

    def collect(self, message: Message, source: Address) -> Outbox:
        """Keep an agent's news; those that come late go into the next synchronisation."""
        assert isinstance(message, LinearUpload)
        return self.gather(self._uploads, source, message)

    def go_on(self) -> Outbox:
        """Add up in the order of the agents, whatever the order of arrival."""
        for upload in [*self._uploads.take_late(), *self._uploads.take()]:
            self.sums.add(upload.W, upload.b)
        self.finish()
        model = LinearModel(W=self.sums.gram, b=self.sums.b, version=self.version, round=self.version)
        return [(ALL_AGENTS, model)]

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads but those that wait for the next synchronisation."""
        waiting = self._uploads.kept
        taken = [upload for _, upload in uploads if isinstance(upload, LinearUpload) and upload not in waiting]
        return self.sums.discrepancies(taken)

    def broken_invariants(self) -> Iterator[str]:
        """The sums are those of real vectors, and only grow."""
        return self.sums.broken_invariants(self.version)
