"""The server of FedGLB-UCB (Li and Wang 2022): sums statistics, then runs distributed gradient descent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.linear import Gradient, Iterate, PointsUpload, RegressionModel
from coband.agents.messages.synchronisation import SyncStart
from coband.server.sums import LinearSums
from coband.server.synchronisation import MessageBuffer, SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.message import Message
from coband.simulator.core.node import ALL_AGENTS, Address, NodeContext, Outbox
from coband.simulator.maths.logistic import AcceleratedGradient


class FedGlbUCBServer(SynchronousServer):
    """Waits for the uploads of all agents, then asks all agents for gradients until the descent converges.

    When an agent cannot be reached (the transport has given messages up), the descent ends with the estimate of the
    moment, since the loss of the others is another one: before the first step that is the last synchronisation's.

    There is no quorum. If the group of answering agents changed between rounds, the loss would change, and accelerated
    descent need not converge. If the group stayed fixed, each of its members could still delay the others.

    Attributes:
        theta: the estimate of the last synchronisation.
        count: n, the number of pulls in the uploads received.
        gradient_rounds: gradient rounds of all synchronisations.
        unconverged: synchronisations that stopped at ``max_rounds``, or without some agent.
    """

    asking: ClassVar[tuple[type[Message], ...]] = (SyncStart, Iterate)

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
            return self.buffer_upload(self._uploads, source, message)
        assert isinstance(message, Gradient)
        if self.is_late(message) or message.step != self.phase - 1:
            return []
        self._gradients.add(source, message)
        return self.end_phase() if self.record_answer(source) else []

    def is_current(self, message: Message) -> bool:
        """Iterate number k belongs to phase k + 1."""
        if isinstance(message, Iterate) and message.step != self.phase - 1:
            return False
        return super().is_current(message)

    def end_phase(self) -> Outbox:
        """All uploads, or all gradients of a round have arrived; or those that can be had."""
        if self.phase == 1:
            return self._begin()
        return self._descend() if self.everyone_answered else self._conclude(self._descent.iterate)

    def _begin(self) -> Outbox:
        """All uploads have arrived: compute A, start the descent and ask for the first gradients."""
        for upload in [*self._uploads.take_late(), *self._uploads.take()]:
            self.sums.add(upload.W)
            self.count += upload.count
        if not self.everyone_answered:
            return self._conclude(self.theta)
        config = self.config
        self._descent = AcceleratedGradient(
            self.theta, self.sums.gram.dense(), self.count, config.lam, config.smoothness, config.max_rounds
        )
        return self._ask()

    def _ask(self) -> Outbox:
        step = self._descent.rounds + 1
        iterate = Iterate(theta=self._descent.iterate, step=step, version=self.version, round=self.round)
        return [(ALL_AGENTS, iterate), *self.begin_phase(step + 1)]

    def _descend(self) -> Outbox:
        """All gradients of a round have arrived: take one step, and ask again or broadcast the model."""
        gradients = self._gradients.take()
        self._descent.descend(sum((item.gradient for item in gradients[1:]), start=gradients[0].gradient))
        self.gradient_rounds += 1
        if not self._descent.done:
            return self._ask()
        return self._conclude(self._descent.iterate, self._descent.converged)

    def abandon(self) -> Outbox:
        """The uploads are taken in: a synchronisation of which nobody is left ends with the estimate of the moment."""
        return super().abandon() if self.phase == 1 else self._conclude(self._descent.iterate)

    def _conclude(self, theta: FloatArray, converged: bool = False) -> Outbox:
        """Broadcast the model with the estimate ``theta``."""
        self._gradients.take()
        self.theta = theta
        self.unconverged += not converged
        self.finish_synchronisation()
        return [
            (
                ALL_AGENTS,
                RegressionModel(
                    W=self.sums.gram,
                    theta=self.theta,
                    count=self.count,
                    version=self.version,
                    round=self.round,
                    known=self.count,
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
