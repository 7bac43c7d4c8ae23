"""The server of FedGLB-UCB (Li and Wang 2022): sums statistics, then runs distributed gradient descent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.linear import Gradient, Iterate, PointsUpload, RegressionModel
from coband.server.sums import LinearSums
from coband.server.synchronisation import MessageBuffer, SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox, Recipient
from coband.simulator.maths.logistic import AcceleratedGradient


class FedGlbUCBServer(SynchronousServer):
    """Waits for the uploads of all agents, then asks all agents for gradients until the descent converges.

    There is no quorum. If the group of answering agents changed between rounds, the loss would change, and accelerated
    descent need not converge. If the group stayed fixed, each of its members could still delay the others.

    Attributes:
        theta: the estimate of the last synchronisation.
        count: n, the number of pulls in the uploads received.
        gradient_rounds: gradient rounds of all synchronisations.
        unconverged: synchronisations that stopped at ``max_rounds``.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        self._uploads: MessageBuffer[PointsUpload] = MessageBuffer(context.agents)
        self._gradients: MessageBuffer[Gradient] = MessageBuffer(context.agents)
        self.sums = LinearSums(context.dimension, self.config.lam / self.config.curvature)
        self.theta: FloatArray = np.zeros(context.dimension)
        self.count = self.gradient_rounds = self.unconverged = 0

    def collect(self, message: Message, source: Address) -> Outbox:
        """Handle an agent's upload or its gradient."""
        if isinstance(message, PointsUpload):
            self.applied += message.pulls
            return self._begin() if self._uploads.add(source, message) else []
        assert isinstance(message, Gradient)
        return self._descend() if self._gradients.add(source, message) else []

    def _begin(self) -> Outbox:
        """All uploads have arrived: compute A, start the descent and ask for the first gradients."""
        for upload in self._uploads.take():
            self.sums.add(upload.W)
            self.count += upload.count
        config = self.config
        self._descent = AcceleratedGradient(
            self.theta, self.sums.gram.dense(), self.count, config.lam, config.smoothness, config.max_rounds
        )
        return [self._ask()]

    def _ask(self) -> tuple[Recipient, Message]:
        iterate = Iterate(
            theta=self._descent.iterate, step=self._descent.rounds + 1, version=self.version, round=self.version + 1
        )
        return ALL_AGENTS, iterate

    def _descend(self) -> Outbox:
        """All gradients of a round have arrived: take one step, and ask again or broadcast the model."""
        gradients = self._gradients.take()
        self._descent.descend(sum((item.gradient for item in gradients[1:]), start=gradients[0].gradient))
        self.gradient_rounds += 1
        if not self._descent.done:
            return [self._ask()]
        self.theta = self._descent.iterate
        self.unconverged += not self._descent.converged
        self.finish_synchronisation()
        return [
            (
                ALL_AGENTS,
                RegressionModel(
                    W=self.sums.gram, theta=self.theta, count=self.count, version=self.version, round=self.version
                ),
            )
        ]

    def report(self) -> dict[str, float | int]:
        """Gradient rounds in total, and synchronisations that ended before their gradient was small enough."""
        return {"gradient_rounds": self.gradient_rounds, "unconverged": self.unconverged}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W is the sum over all uploads except those of an unfinished synchronisation, and n counts their pulls."""
        waiting = self._uploads.stored
        taken = [upload for _, upload in uploads if isinstance(upload, PointsUpload) and upload not in waiting]
        yield from self.sums.discrepancies(taken)
        if self.count != sum(upload.count for upload in taken):
            yield f"the model counts {self.count} pulls, but its {len(taken)} uploads contain another number"

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.version)
