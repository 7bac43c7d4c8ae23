"""The server of FedLinUCB (He et al. 2022): adds each upload and answers with the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.server.common.sums import LinearSums
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext, Server


class FedLinUCBServer(Talks, Server):
    """Sums the statistics of all agents; every upload is one communication round."""

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls of the upload"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.sums = LinearSums(context.dimension, context.config.lam)

    @on(LinearUpload)
    def add(self, upload: LinearUpload, agent: Address) -> LinearModel:
        """V += V_loc, b += b_loc; answer with both. An upload made with an older model is added in the same way."""
        self.sums.add(upload.W, upload.b)
        self.rounds += 1
        self.note("apply", version=self.rounds, round=self.rounds, value=upload.pulls)
        sums, version = self.sums, self.rounds
        return LinearModel(W=sums.gram, b=sums.b, version=version, round=version, known=self.applied)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads."""
        return self.sums.discrepancies([upload for _, upload in uploads if isinstance(upload, LinearUpload)])

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.rounds)
