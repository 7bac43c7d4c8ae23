"""The server of FedGLB-UCB (Li and Wang 2022): sums statistics, then runs distributed gradient descent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.linear import Gradient, Iterate, PointsUpload, RegressionModel
from coband.server.common.sums import LinearSums
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
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

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        self._late: list[PointsUpload] = []
        self.sums = LinearSums(context.dimension, self.config.lam / self.config.curvature)
        self.theta: FloatArray = np.zeros(context.dimension)
        self.count = self.gradient_rounds = self.unconverged = 0

    async def synchronise(self) -> bool:
        """Sum the uploads, descend from the estimate of the last synchronisation, and broadcast the new model."""
        uploads = await self.asked(PointsUpload)
        if not uploads:
            return False
        for upload in [*self._late, *uploads.values()]:
            self.sums.add(upload.W)
            self.count += upload.count
        self._late = []
        converged = not self.count or (not uploads.left and await self._descend())  # without pulls theta = 0 is best
        self.unconverged += not converged
        self.conclude()
        W, theta, count = self.sums.gram, self.theta, self.count
        versions = {"version": self.version, "round": self.round, "known": count}
        self.tell(ALL_AGENTS, RegressionModel(W=W, theta=theta, count=count, **versions))
        return True

    async def _descend(self) -> bool:
        """Accelerated gradient descent on the loss of all agents; whether its gradient became small enough."""
        config = self.config
        descent = AcceleratedGradient(
            self.theta, self.sums.gram.dense(), self.count, config.lam, config.smoothness, config.max_rounds
        )
        while not descent.done:
            step, theta = descent.rounds + 1, descent.iterate
            iterate = Iterate(theta=theta, step=step, version=self.version, round=self.round)
            answers = await self.gather(iterate, reply=Gradient)
            if answers.left or not answers:  # nobody is asked where all agents have left
                break
            first, *others = (answer.gradient for answer in answers.values())
            descent.descend(sum(others, start=first))
            self.gradient_rounds += 1
        self.theta = descent.iterate
        return descent.converged

    @late(PointsUpload)
    def keep(self, upload: PointsUpload, agent: Address) -> None:
        """It joins the next synchronisation."""
        self._late.append(upload)

    def report(self) -> dict[str, float | int]:
        """Gradient rounds in total, and synchronisations that ended before their gradient was small enough."""
        return {"gradient_rounds": self.gradient_rounds, "unconverged": self.unconverged}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W is the sum over all uploads except those of an unfinished synchronisation, and n counts their pulls."""
        taken = self.taken_in(uploads, PointsUpload, self._late)
        yield from self.sums.discrepancies(taken)
        if self.count != sum(upload.count for upload in taken):
            yield f"the model counts {self.count} pulls, but its {len(taken)} uploads contain another number"

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.version)
