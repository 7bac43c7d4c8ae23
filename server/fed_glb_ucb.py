"""The server of FedGLB-UCB (Li and Wang 2022): sums what agents have seen, then descends on gradients they send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages import Gradient, Iterate, PointsUpload, RegressionModel
from coband.server.sums import LinearSums
from coband.server.synchronisation import Gathering, SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox, Recipient
from coband.simulator.maths.logistic import AcceleratedGradient


class FedGlbUCBServer(SynchronousServer):
    """Waits for everyone's news, then for everyone's gradient as often as it takes.

    There is no quorum: gradients of changing groups of agents are those of changing losses, on which accelerated
    descent need not converge; and if the group of the news were kept, any one of it could still hold up the rest.

    Attributes:
        theta: estimate of the last synchronisation.
        count: n, pulls taken in.
        gradient_rounds: of all synchronisations.
        unconverged: synchronisations that ``max_rounds`` ended.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        self._uploads: Gathering[PointsUpload] = Gathering(context.agents)
        self._gradients: Gathering[Gradient] = Gathering(context.agents)
        self.sums = LinearSums(context.dimension, self.config.lam / self.config.curvature)
        self.theta: FloatArray = np.zeros(context.dimension)
        self.count = self.gradient_rounds = self.unconverged = 0

    def collect(self, message: Message, source: Address) -> Outbox:
        """An agent's news or its gradient."""
        if isinstance(message, PointsUpload):
            self.applied += message.pulls
            return self._begin() if self._uploads.add(source, message) else []
        assert isinstance(message, Gradient)
        return self._descend() if self._gradients.add(source, message) else []

    def _begin(self) -> Outbox:
        """All news are here: A is known, and the first gradient is wanted."""
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
        """All gradients of a round are here."""
        gradients = self._gradients.take()
        self._descent.descend(sum((item.gradient for item in gradients[1:]), start=gradients[0].gradient))
        self.gradient_rounds += 1
        if not self._descent.done:
            return [self._ask()]
        self.theta = self._descent.iterate
        self.unconverged += not self._descent.converged
        self.finish()
        return [
            (
                ALL_AGENTS,
                RegressionModel(
                    W=self.sums.gram, theta=self.theta, count=self.count, version=self.version, round=self.version
                ),
            )
        ]

    def report(self) -> dict[str, float | int]:
        """Gradient rounds in all, and synchronisations that ended before their gradient was small enough."""
        return {"gradient_rounds": self.gradient_rounds, "unconverged": self.unconverged}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The sum of x x^T is that of all uploads but those that wait for the others', and n counts their pulls."""
        waiting = self._uploads.kept
        taken = [upload for _, upload in uploads if isinstance(upload, PointsUpload) and upload not in waiting]
        yield from self.sums.discrepancies(taken)
        if self.count != sum(upload.count for upload in taken):
            yield f"the model is said to be of {self.count} pulls, which {len(taken)} uploads did not bring"

    def broken_invariants(self) -> Iterator[str]:
        """The sum of x x^T is that of real vectors and only grows."""
        return self.sums.broken_invariants(self.version)
