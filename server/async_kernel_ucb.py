"""The server of Async-KernelUCB (paper 000, Algorithm 1): one running total instead of N stored statistics.

With nested dictionaries and the Cholesky root, equation 5 is zero padding, so that

    A(D_k; S_k) = pad(A(D_(k-1); S_(k-1))) + A(dD_k; S_k),    b alike.

``exchanges: interleaved`` (ours): uploads computed against an older dictionary are re-expressed in the newest one, in
which the points that came in between stand before those of the upload.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages import NewModel, Request, ServerModel, Upload
from coband.server.sums import GrowthCheck, different
from coband.simulator.arrays import FloatArray
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, NodeContext, Outbox, Server
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.statistics import Statistics


class AsyncKernelUCBServer(Server):
    """Answers requests, takes in uploads.

    Attributes:
        version: k, the number of uploads taken in.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config = context.config
        self.version = 0
        self.statistics = Statistics.zero(0)
        self._points: FloatArray = np.empty((0, context.dimension))
        self._rewards: FloatArray = np.empty(0)
        self._sizes = [0]  # of the dictionary, by version
        self._queue: deque[tuple[Address, Request]] = deque()
        self._engaged: Address | None = None
        self._requests: dict[Address, Request] = {}  # the last one of each agent
        self._started = 0
        self._growth = GrowthCheck(self.config.lam, "statistics A")

    def receive(self, message: Message, source: Address) -> Outbox:
        """Messages 1 and 3 of an exchange."""
        if isinstance(message, Request):
            # An agent that asks again while the server is engaged with it has given up its exchange.
            if self.config.server.exchanges == "serial" and self._engaged not in (None, source):
                self._queue.append((source, message))
                return []
            return [self._answer(source, message)]
        assert isinstance(message, Upload)
        outbox: Outbox = [self._take_in(source, message)]
        if self._queue:
            outbox.append(self._answer(*self._queue.popleft()))
        return outbox

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """An agent that has not got the model will not upload: on to the next one, and back to this one later."""
        if not isinstance(message, ServerModel):
            return self.again(message, recipient)
        if self._engaged == recipient:
            self._engaged = None
        request = self._requests[recipient]
        if self.has_chance(request, recipient):
            self._queue.append((recipient, request))
        return [self._answer(*self._queue.popleft())] if self._queue else []

    def _answer(self, agent: Address, request: Request) -> tuple[Address, ServerModel]:
        """Line 8: send the dictionary and the statistics."""
        self._engaged, self._requests[agent] = agent, request
        self._started += 1
        delta = self.config.transfer == "delta"
        start = self._sizes[request.version] if delta else 0
        unchanged = delta and request.version == self.version
        A, b = (None, None) if unchanged else (self.statistics.A, self.statistics.b)
        return agent, ServerModel(
            points=self._points[start:],
            rewards=self._rewards[start:],
            A=A,
            b=b,
            start=start,
            version=self.version,
            round=self._started,
        )

    def _take_in(self, agent: Address, upload: Upload) -> tuple[Address, NewModel]:
        """Lines 12-13: S_k = S_(k-1) and dS_k, equation 5, send the new statistics."""
        known = self._sizes[upload.version]
        between = slice(known, len(self._points))
        missing, missing_rewards = self._points[between], self._rewards[between]
        intervened = upload.version != self.version
        news = Statistics(upload.A, upload.b)
        if len(missing):
            news = self._reexpressed(news, known, upload.points)
        self._points = np.concatenate([self._points, upload.points])
        self._rewards = np.concatenate([self._rewards, upload.rewards])
        self.statistics = self.statistics.padded(len(self._points)) + news.padded(len(self._points))
        self.version += 1
        self.rounds = self.version
        self.applied += upload.pulls
        self._sizes.append(len(self._points))
        self._engaged = None
        self.note("apply", version=self.version, round=upload.round, value=upload.pulls)
        spare = self.config.transfer == "delta" and not intervened
        A, b = (None, None) if spare else (self.statistics.A, self.statistics.b)
        return agent, NewModel(
            points=missing, rewards=missing_rewards, A=A, b=b, version=self.version, round=upload.round
        )

    def _reexpressed(self, news: Statistics, known: int, added: FloatArray) -> Statistics:
        """Statistics over (old dictionary, added) in the coordinates of (newest dictionary, added)."""
        empty = Dictionary(self.config.kernel)
        common = empty.appended(self._points[:known])
        old = common.appended(added)
        new = common.appended(self._points[known:]).appended(added)
        return news.reexpressed(old, new)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The dictionary is that of the uploads, the statistics are their sum, over the newest dictionary."""
        taken = [upload for _, upload in uploads if isinstance(upload, Upload)]
        points = np.concatenate([np.empty((0, self.context.dimension)), *(upload.points for upload in taken)])
        if not np.array_equal(points, self._points):
            yield f"the dictionary's {len(self._points)} points are not those of the {len(taken)} uploads in order"
        A, b = self._resummed(taken)
        yield from different("the server's A", self.statistics.A, A, len(taken))
        yield from different("the server's b", self.statistics.b, b, len(taken))

    def _resummed(self, uploads: Sequence[Upload]) -> tuple[FloatArray, FloatArray]:
        """Equation 5 at once: each upload from the dictionary that it was made with to the newest one."""
        final, before = Dictionary(self.config.kernel).appended(self._points), [0]
        total = Statistics.zero(len(self._points))
        for upload in uploads:
            known, news = before[upload.version], Statistics(upload.A, upload.b)
            if upload.version == len(before) - 1:
                total = total + news.padded(len(self._points))
            else:
                own = Dictionary(self.config.kernel).appended(self._points[:known]).appended(upload.points)
                total = total + news.reexpressed(own, final)
            before.append(before[-1] + len(upload.points))
        return total.A, total.b

    def report(self) -> dict[str, float | int]:
        """Size of the dictionary and number of its points that add nothing to its span."""
        dictionary = Dictionary(self.config.kernel).appended(self._points)
        return {"dictionary_size": len(self._points), "skipped_points": dictionary.skipped}

    def broken_invariants(self) -> Iterator[str]:
        """A symmetric and positive semidefinite; log det(A + lambda I) - m log(lambda) never falls."""
        return self._growth.violations(self.statistics.A, self.version)
