"""The server of discounted DisLinUCB: sums the statistics of all agents, which fade from round to round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.agents.messages.linear import DiscountedModel, DiscountedUpload
from coband.server.common.sums import SquaresCheck, sum_mismatch
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.posteriors.discounted import DiscountedSums


class DiscountedDisLinUCBServer(SynchronousServer):
    """Waits for the uploads of all agents or of a quorum, then broadcasts the sums."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._late: list[DiscountedUpload] = []
        self._none = self.sums = DiscountedSums.none(context.dimension)
        self._gamma: float = context.config.gamma
        self._clock = [0.0]  # rounds of pulls that had passed at the end of each synchronisation
        self._checks = SquaresCheck("W"), SquaresCheck("W~")

    async def synchronise(self) -> bool:
        """W_sync = gamma^n W_sync + sum W_new, b_sync likewise, W~_sync with gamma^(2n); n: mean pulls of an upload.

        In the order of the agents, so that the sums do not depend on the order of arrival.
        """
        uploads = await self.asked(DiscountedUpload)
        if not uploads:
            self._clock.append(self._clock[-1])
            return False
        news, self._late = [*self._late, *uploads.values()], []
        n = sum(upload.count for upload in news) / len(news)
        self._clock.append(self._clock[-1] + n)
        self.sums = sum(map(self._discounted, news), start=self.sums.discounted(self._gamma**n))
        self.conclude()
        sums, versions = self.sums, {"version": self.version, "round": self.round, "known": self.applied}
        self.tell(ALL_AGENTS, DiscountedModel(W=sums.W, W_tilde=sums.W_tilde, b=sums.b, **versions))
        return True

    def _discounted(self, upload: DiscountedUpload) -> DiscountedSums:
        """An upload with the weights of now, as if it had come in time."""
        sums = DiscountedSums(upload.W, upload.W_tilde, upload.b)
        return sums.discounted(self._gamma ** (self._clock[-1] - self._clock[upload.round]))

    @late(DiscountedUpload)
    def keep(self, upload: DiscountedUpload, agent: Address) -> None:
        """It joins the next synchronisation."""
        self._late.append(upload)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """W, W~ and b are the discounted sums over all uploads except those that wait for the next synchronisation."""
        taken = self.taken_in(uploads, DiscountedUpload, self._late)
        total = sum(map(self._discounted, taken), start=self._none)
        for name in ("W", "W_tilde", "b"):
            yield from sum_mismatch(name, getattr(self.sums, name), getattr(total, name), len(taken))

    def broken_invariants(self) -> Iterator[str]:
        """W and W~ are sums of squares of real vectors."""
        for check, matrix in zip(self._checks, (self.sums.W, self.sums.W_tilde), strict=True):
            yield from check.violations(matrix, self.version)
