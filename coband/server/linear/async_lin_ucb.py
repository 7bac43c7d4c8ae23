"""The server of Async-LinUCB (Li and Wang 2022): adds uploads, and sends each agent what it lacks once that is enough.

For every agent it keeps what that agent knows of the sum, in place of the paper's download buffer, which is the sum
without it. The determinant of what an agent knows changes with its own messages alone, so that an upload costs one
determinant and a comparison for each agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from coband.agents.messages.linear import CountedUpload, Download, PartialDownload, PartialUpload
from coband.server.common.sums import LinearSums
from coband.simulator.arrays import FloatArray
from coband.simulator.core.conversations import Talks, lost, on
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext, Server
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.synchronised_ridge import ROUNDING

Known = tuple[FloatArray, FloatArray, int]
"""Sums W and b, and the number of pulls in them."""


class AsyncLinUCBServer(Talks, Server):
    """Sums the statistics of all agents; every upload is one communication round."""

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls of the upload"}
    each = (Download, PartialDownload)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        d, agents = context.config.shared_features(context), context.agents
        self._download = PartialDownload if d < context.dimension else Download
        self.sums = LinearSums(d, context.config.lam)
        self.downloads = self._pulls = 0
        nothing: Known = np.zeros((d, d)), np.zeros(d), 0
        self._known = [nothing] * agents
        self._counts, self._log_dets = np.zeros(agents, dtype=np.int64), np.full(agents, self._log_det(nothing[0]))
        self._growth = math.log(context.config.gamma_d) + ROUNDING

    @on(CountedUpload)
    @on(PartialUpload)
    def add(self, upload: CountedUpload, agent: Address) -> None:
        """Add an upload; then send to every agent what it lacks if det(V) / det(V without that) > gamma_d."""
        self.sums.add(upload.W, upload.b)
        self.rounds += 1
        self._pulls += upload.count
        self.note("apply", version=self.rounds, round=self.rounds, value=upload.pulls)
        W, b, count = self._known[agent]
        self._set(agent, (W + upload.W.dense(), b + upload.b, count + upload.count))
        everything: Known = self.sums.gram.dense(), self.sums.b, self._pulls
        log_det = self._log_det(everything[0])
        lacks = (self._counts < self._pulls) & exceeds(log_det - self._log_dets, self._growth)
        lacking: dict[int, dict[str, Any]] = {}  # computed once for all agents that know the same
        for other in lacks.nonzero()[0].tolist():
            if not self.context.is_there(other):
                continue
            W, b, count = known = self._known[other]
            if (news := lacking.get(id(known))) is None:
                W_news = Gram(np.empty((0, len(b))), everything[0] - W)
                news = lacking[id(known)] = {"W": W_news, "b": everything[1] - b, "count": self._pulls - count}
            self.tell(other, self._download(**news, version=self.rounds, round=self.rounds))
            self.downloads += 1
            self._known[other], self._counts[other], self._log_dets[other] = everything, self._pulls, log_det

    @lost(Download)
    @lost(PartialDownload)
    def take_back(self, download: Download, agent: Address) -> None:
        """The agent lacks it again."""
        W, b, count = self._known[agent]
        self._set(agent, (W - download.W.dense(), b - download.b, count - download.count))

    def _set(self, agent: Address, known: Known) -> None:
        self._known[agent], self._counts[agent] = known, known[2]
        self._log_dets[agent] = self._log_det(known[0])

    def _log_det(self, W: FloatArray) -> float:
        return float(np.linalg.slogdet(W + self.context.config.lam * np.eye(len(W)))[1])

    def report(self) -> dict[str, float | int]:
        return {"downloads": self.downloads}

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W and b are the sums over all uploads, and n counts their pulls."""
        taken = [upload for _, upload in uploads if isinstance(upload, CountedUpload)]
        yield from self.sums.discrepancies(taken)
        if self._pulls != sum(upload.count for upload in taken):
            yield f"the sums count {self._pulls} pulls, but their {len(taken)} uploads contain another number"

    def broken_invariants(self) -> Iterator[str]:
        """W is a sum of squares of real vectors and only grows."""
        return self.sums.broken_invariants(self.rounds)
