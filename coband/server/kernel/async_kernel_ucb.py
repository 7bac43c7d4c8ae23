"""The server of Async-KernelUCB (Li et al. 2023, Algorithm 1): one running total instead of N stored statistics.

With nested dictionaries and the Cholesky root, equation 5 is zero padding, so that

    A(D_k; S_k) = pad(A(D_(k-1); S_(k-1))) + A(dD_k; S_k),    and likewise for b.

With interleaved exchanges (ours, the default where there are delays) an upload computed with an older dictionary is
re-expressed over the newest one. In the newest dictionary, points that other agents added meanwhile come before the
points of the upload; with ``repeats: drop`` those of the upload that are among them stand once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.asynchronous import NewModel, Request, ServerModel, Upload
from coband.server.common.sums import SquaresCheck, sum_mismatch
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.core.conversations import Line, Talks, late, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, NodeContext, Server
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import first_appearances


class AsyncKernelUCBServer(Talks, Server):
    """Answers requests with its model and adds uploads to it.

    Attributes:
        version: k, the number of uploads added.
    """

    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls of the upload"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        exchanges = self.config.server.exchanges
        self._serial = exchanges == "serial" or (exchanges == "auto" and not context.delays)
        self.version = 0
        self.statistics = Statistics.zero(0)
        self._points: FloatArray = np.empty((0, context.dimension))
        self._rewards: FloatArray = np.empty(0)
        self._sizes = [0]  # of the dictionary, by version
        self._exchanges = 0
        self._line = Line(1 if self._serial else None)
        self._growth = SquaresCheck("statistics A", self.config.lam)

    @on(Request)
    async def exchange(self, request: Request, agent: Address) -> None:
        """Lines 8-13: send the model, add what the agent uploads, and send the result."""
        await self.enter(self._line)
        upload = await self.ask(agent, self._model(request), reply=Upload)  # lines 8-11
        if isinstance(upload, Upload):
            self.tell(agent, self.add(upload, agent))  # lines 12-13

    def _model(self, request: Request) -> ServerModel:
        """Line 8: the dictionary and the statistics."""
        self._exchanges += 1
        delta = self.config.transfer == "delta"
        start = self._sizes[request.version] if delta else 0
        unchanged = delta and request.version == self.version
        A, b = (None, None) if unchanged else (self.statistics.A, self.statistics.b)
        return ServerModel(
            points=self._points[start:],
            rewards=self._rewards[start:],
            A=A,
            b=b,
            version=self.version,
            round=self._exchanges,
        )

    @late(Upload)
    def add(self, upload: Upload, agent: Address) -> NewModel:
        """Lines 12-13: S_k = S_(k-1) and dS_k, equation 5, send the new statistics."""
        known = self._sizes[upload.version]
        between = slice(known, len(self._points))
        missing, missing_rewards = self._points[between], self._rewards[between]
        intervened = upload.version != self.version
        new_statistics = Statistics(upload.A, upload.b)
        added = self._added(upload, self._points)
        if len(missing):
            new_statistics = self._reexpressed(new_statistics, known, upload.points, upload.points[added])
        self._points = np.concatenate([self._points, upload.points[added]])
        self._rewards = np.concatenate([self._rewards, upload.rewards[added]])
        self.statistics = self._with(new_statistics.padded(len(self._points)), agent)
        self.version += 1
        self.rounds = self.version
        self._sizes.append(len(self._points))
        self.note("apply", version=self.version, round=upload.round, value=upload.pulls)
        spare = self.config.transfer == "delta" and not intervened and self.defence is None
        A, b = (None, None) if spare else (self.statistics.A, self.statistics.b)
        return NewModel(
            points=missing,
            rewards=missing_rewards,
            A=A,
            b=b,
            version=self.version,
            round=upload.round,
            known=self.applied,
        )

    def _with(self, new: Statistics, agent: Address) -> Statistics:
        """Line 12, over the newest dictionary; with a defence, n times the robust mean of the agents' statistics."""
        if self.defence is None:
            return self.statistics.padded(new.size) + new
        return Statistics(self.defence.total("A", agent, new.A, True), self.defence.total("b", agent, new.b))

    def _added(self, upload: Upload, dictionary: FloatArray) -> BoolArray:
        """Which points of an upload a dictionary (m, d) is continued by: all, or those that it lacks."""
        if self.config.repeats == "keep":
            return np.ones(len(upload.points), dtype=np.bool_)
        return first_appearances(upload.points, dictionary)

    def _reexpressed(self, new: Statistics, known: int, uploaded: FloatArray, added: FloatArray) -> Statistics:
        """Statistics over (old dictionary, uploaded) in the coordinates of (newest dictionary, added)."""
        old = Dictionary(self.config.kernel).appended(self._points[:known])
        return new.reexpressed(old.appended(uploaded), old.appended(self._points[known:]).appended(added))

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The dictionary consists of the uploads' points; the statistics are their sum over the newest dictionary."""
        taken = [(agent, upload) for agent, upload in uploads if isinstance(upload, Upload)]
        points = np.empty((0, self.context.dimension))
        for _, upload in taken:
            points = np.concatenate([points, upload.points[self._added(upload, points)]])
        if not np.array_equal(points, self._points):
            yield f"the dictionary's {len(self._points)} points are not those of the {len(taken)} uploads in order"
        A, b = self._resummed(taken)
        yield from sum_mismatch("the server's A", self.statistics.A, A, len(taken))
        yield from sum_mismatch("the server's b", self.statistics.b, b, len(taken))

    def _resummed(self, uploads: Sequence[tuple[Address, Upload]]) -> tuple[FloatArray, FloatArray]:
        """Re-express each upload directly from its own dictionary over the newest one (equation 5), and add them."""
        final, before = Dictionary(self.config.kernel).appended(self._points), [0]
        sums: dict[Address, Statistics] = {}  # with a defence, of each agent
        for agent, upload in uploads:
            known, new_statistics = before[upload.version], Statistics(upload.A, upload.b)
            if upload.version == len(before) - 1:
                found = new_statistics.padded(len(self._points))
            else:
                own = Dictionary(self.config.kernel).appended(self._points[:known]).appended(upload.points)
                found = new_statistics.reexpressed(own, final)
            whose = SERVER if self.defence is None else agent
            sums[whose] = sums.get(whose, Statistics.zero(len(self._points))) + found
            before.append(before[-1] + int(self._added(upload, self._points[: before[-1]]).sum()))
        of_agents = [sums[agent] for agent in sorted(sums)] or [Statistics.zero(len(self._points))]
        A, b = [own.A for own in of_agents], [own.b for own in of_agents]
        return (A[0], b[0]) if self.defence is None else (self.defence.robust(A, True), self.defence.robust(b))

    def warnings(self) -> Iterator[str]:
        """With delays, one exchange at a time lets the slowest agent hold up all others."""
        if self._serial and self.context.delays:
            yield (
                "server.exchanges: serial finishes one exchange before it answers the next, so that with delays all "
                "agents wait for the slowest and the threshold hardly matters; use interleaved"
            )

    def report(self) -> dict[str, float | int]:
        """Size of the dictionary, and how many of its points lie in the span of the others."""
        dictionary = Dictionary(self.config.kernel).appended(self._points)
        return {"dictionary_size": len(self._points), "skipped_points": dictionary.skipped}

    def broken_invariants(self) -> Iterator[str]:
        """A is symmetric and positive semidefinite; log det(A + lambda I) - m log(lambda) never falls."""
        return self._growth.violations(self.statistics.A, self.version)
