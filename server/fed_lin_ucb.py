"""The server of FedLinUCB (He et al. 2022): adds an upload and answers with the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.agents.messages import LinearModel, LinearUpload
from coband.server.sums import LinearSums
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, NodeContext, Outbox, Server


class FedLinUCBServer(Server):
    """Every upload is one communication round."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.sums = LinearSums(context.dimension, context.config.lam)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Take in an upload, whichever model it was made with: sums do not depend on their order."""
        assert isinstance(message, LinearUpload)
        self.sums.add(message.W, message.b)
        self.rounds += 1
        self.applied += message.pulls
        self.note("apply", version=self.rounds, round=self.rounds, value=message.pulls)
        return [(source, LinearModel(W=self.sums.gram, b=self.sums.b, version=self.rounds, round=self.rounds))]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """The agent waits for the answer, and would not upload again before it."""
        return self.again(message, recipient)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads."""
        return self.sums.discrepancies([upload for _, upload in uploads if isinstance(upload, LinearUpload)])

    def broken_invariants(self) -> Iterator[str]:
        """The sums are those of real vectors, and only grow."""
        return self.sums.broken_invariants(self.rounds)
