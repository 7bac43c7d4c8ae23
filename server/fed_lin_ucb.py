"""The server of FedLinUCB (He et al. 2022): adds each upload and answers with the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.server.sums import LinearSums
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, NodeContext, Outbox, Server


class FedLinUCBServer(Server):
    """Sums the statistics of all agents; every upload is one communication round."""

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls of the upload"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.sums = LinearSums(context.dimension, context.config.lam)
        self._answers: dict[Address, LinearModel] = {}

    def receive(self, message: Message, source: Address) -> Outbox:
        """Add an upload and answer with the sums; an upload made with an older model is added in the same way."""
        assert isinstance(message, LinearUpload)
        self.sums.add(message.W, message.b)
        self.rounds += 1
        self.applied += message.pulls
        self.note("apply", version=self.rounds, round=self.rounds, value=message.pulls)
        sums, version = self.sums, self.rounds
        answer = LinearModel(W=sums.gram, b=sums.b, version=version, round=version, known=self.applied)
        self._answers[source] = answer
        return [(source, answer)]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send the answer again: the agent waits for it."""
        return self.again(message, recipient)

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """An answer is wanted as long as there is no newer one for this agent."""
        return self._answers[recipient] is message

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads."""
        return self.sums.discrepancies([upload for _, upload in uploads if isinstance(upload, LinearUpload)])

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.rounds)
