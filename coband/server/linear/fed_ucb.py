"""The server of FedUCB (Dubey and Pentland 2020): adds up the newest private sums of all agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.linear import PrivateModel, PrivateSums
from coband.server.common.sums import SquaresCheck, sum_mismatch
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext


class FedUcbServer(SynchronousServer):
    """Waits for the sums of all agents or of a quorum, then broadcasts the total."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        shift = context.config.calibration(context).shift * np.eye(context.dimension)
        self._silent = PrivateSums(W=shift, b=np.zeros(context.dimension))
        self._newest = [self._silent] * context.agents
        self._check = SquaresCheck()
        self._W = np.zeros_like(shift)

    async def synchronise(self) -> bool:
        """Every agent's newest sums, rho_min I of one that has not been heard."""
        uploads = await self.asked(PrivateSums)
        if not uploads:
            return False
        for agent, upload in uploads.items():
            self._newest[agent] = upload
        self.conclude()
        self._W, b = self._total(self._newest)
        model = PrivateModel(W=self._W, b=b, version=self.version, round=self.round, known=self.applied)
        self.tell(ALL_AGENTS, model)
        return True

    @staticmethod
    def _total(sums: Sequence[PrivateSums]) -> tuple[FloatArray, FloatArray]:
        return np.sum([one.W for one in sums], axis=0), np.sum([one.b for one in sums], axis=0)

    @late(PrivateSums)
    def keep(self, upload: PrivateSums, agent: Address) -> None:
        """It counts from the next synchronisation on."""
        if upload.round > self._newest[agent].round:
            self._newest[agent] = upload

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """What it has of each agent is the newest that it was sent."""
        collected = {upload.talk for upload in self.collected}
        newest = [self._silent] * len(self._newest)
        taken = [(a, one) for a, one in uploads if isinstance(one, PrivateSums) and one.talk not in collected]
        for agent, upload in sorted(taken, key=lambda pair: pair[1].round):
            newest[agent] = upload
        for name, kept, total in zip("Wb", self._total(self._newest), self._total(newest), strict=True):
            yield from sum_mismatch(name, kept, total, len(taken))

    def broken_invariants(self) -> Iterator[str]:
        """The shift makes W positive."""
        return self._check.violations(self._W, self.version)
