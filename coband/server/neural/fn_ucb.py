"""The server of FN-UCB (Dai et al. 2023, algorithm 2): sums statistics, averages networks or picks one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.neural import NeuralModel, NeuralUpload
from coband.server.common.sums import SquaresCheck, sum_mismatch
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.linalg.gram import Gram, GrowingGram, MeanInverse


class FnUcbServer(SynchronousServer):
    """Waits for the uploads of all agents or of a quorum, then broadcasts; line numbers refer to algorithm 2."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        self._late: list[NeuralUpload] = []
        p = self.config.network(context.dimension).size
        self._gram = GrowingGram(p)
        self._diagonal = np.zeros(p)
        self._mean = MeanInverse()
        self.B = np.zeros(p)
        self._growth = SquaresCheck(lam=self.config.lam)

    @property
    def statistics(self) -> Gram | FloatArray:
        """W_sync, or its diagonal."""
        return self._diagonal if self.config.diagonal else self._gram.matrix

    async def synchronise(self) -> bool:
        """Lines 2 to 6: ask all agents for their uploads, and broadcast the new model."""
        uploads = list((await self.asked(NeuralUpload)).values())  # lines 2-3
        if not uploads:
            return False
        theta, alpha = self._theta(uploads), min(upload.alpha for upload in uploads)  # line 4
        inverses = self._inverses(uploads)
        self._add_up([*self._late, *uploads])  # line 5
        self._late = []
        self.conclude()
        versions = {"version": self.version, "round": self.round}
        model = NeuralModel(W=self.statistics, B=self.B, theta=theta, alpha=alpha, inverses=inverses, **versions)
        self.tell(ALL_AGENTS, model)  # line 6
        return True

    @late(NeuralUpload)
    def keep(self, upload: NeuralUpload, agent: Address) -> None:
        """Its W_new and B_new, and nothing else of it, join the next synchronisation."""
        self._late.append(upload)

    def _theta(self, uploads: list[NeuralUpload]) -> FloatArray:
        """The mean of all weights; ``average: best``: those of the smallest loss, of the first agent among equals."""
        if self.config.average == "best":
            return min(uploads, key=lambda upload: math.inf if upload.loss is None else upload.loss).theta
        return sum((upload.theta for upload in uploads[1:]), start=uploads[0].theta) / len(uploads)

    def _add_up(self, uploads: list[NeuralUpload]) -> None:
        """Line 5: add W_new and B_new."""
        for upload in uploads:
            if isinstance(upload.W, Gram):
                self._gram.add_matrix(upload.W)
            else:
                self._diagonal = self._diagonal + upload.W
        self.B = sum((upload.B for upload in uploads), start=self.B)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W_sync and B_sync are the sums over all uploads except those that wait for the next synchronisation."""
        taken = self.taken_in(uploads, NeuralUpload, self._late)
        B = sum((upload.B for upload in taken), start=np.zeros_like(self.B))
        W = sum((_dense(upload.W) for upload in taken), start=np.zeros_like(_dense(self.statistics)))
        for name, actual, expected in (("W_sync", _dense(self.statistics), W), ("B_sync", self.B, B)):
            yield from sum_mismatch(name, actual, expected, len(taken))

    def _inverses(self, uploads: list[NeuralUpload]) -> tuple[Gram | FloatArray, ...]:
        """The inverses of all V_local, or their average (section 3.4)."""
        inverses = [upload.inverse for upload in uploads]
        if not self.config.less_comm:
            return tuple(inverses)
        full = [inverse for inverse in inverses if isinstance(inverse, Gram)]
        if full:
            return (self._mean.follow(full),)
        return (np.mean([inverse for inverse in inverses if isinstance(inverse, np.ndarray)], axis=0),)

    def broken_invariants(self) -> Iterator[str]:
        """W_sync is symmetric and positive semidefinite; log det(I + W_sync / lam) never falls."""
        return self._growth.violations(self.statistics, self.version)


def _dense(W: Gram | FloatArray) -> FloatArray:
    return W.dense() if isinstance(W, Gram) else W
