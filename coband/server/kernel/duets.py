"""The server of DUETS (Pavlovic et al. 2024, Algorithm 2): it replays the agents' random draws, so agents send no query
points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.epochs import EpochEnd, EpochModel, InducingSet, Projection
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.server.common.ends_together import TrimmingServer
from coband.server.common.sums import SquaresCheck
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.conversations import late, on
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.exploration.duets import Induced, ridge_solve
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.maths.posteriors.finite_domain import exact_variance


class DuetsServer(TrimmingServer):
    """Samples the inducing set of an epoch, adds up projected rewards, and trims the active set as the agents do.

    Attributes:
        sizes: sizes of the inducing sets so far.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config, points = self.config, len(self.active)
        self._shared: VersionCache[Induced] = context.sharing.get("induced", lambda: VersionCache(2))
        horizon = config.turns(context)
        self._epochs = config.epochs(context)
        self._beta = config.width(points, context.agents, horizon)
        self._p0 = config.rate(points, context.agents, horizon)
        self._coins = [context.open_coin(agent) for agent in range(context.agents)]
        self._plan = self._epochs.begin(config.split(context, self.active))
        self.sizes: list[int] = []
        self._skipped = 0
        self._gram, self._vbar = np.zeros((0, 0)), np.zeros(0)
        self._check = SquaresCheck("Z^T Z")

    async def step(self) -> bool:
        """An epoch: when the first agent has ended it, ask all for their rewards on its inducing set."""
        await self.hear(EpochEnd, where=lambda end: end.round == self.rounds + 1)
        projections = await self.gather(self._announce(), reply=Projection, together=True)  # lines 4-9
        if projections.left:
            return False
        self.tell(ALL_AGENTS, self._conclude(list(projections.values())))  # lines 10-15
        return True

    @on(EpochEnd)
    @late(Projection)
    def after_the_end(self, message: Message, agent: Address) -> SyncAbandoned | None:
        """As for all such servers; the ends of other agents' epochs need no answer."""
        return super().after_the_end(message, agent)

    def _announce(self) -> InducingSet:
        """Lines 4-8: replay the agents' draws, compute sigma_max, sample and broadcast the inducing set."""
        self._arms = np.concatenate([self._plan.draw(coin) for coin in self._coins])
        entries = self._domain.number(self._arms)
        counts = np.bincount(entries, minlength=self._domain.size)
        seen = np.flatnonzero(counts)
        variance = exact_variance(
            self._domain.kernel,
            self.config.lam,
            self._domain.distinct[seen],
            counts[seen],
            self._domain.points[self.active],
        )
        self._sigma_max = math.sqrt(float(variance.max()))
        points = self._domain.distinct[self._sampled(entries)]
        self._induced = self._shared.get(self.rounds + 1, lambda: Induced(self._domain, self.active, points))
        self.sizes.append(len(points))
        self._skipped += self._induced.skipped
        return InducingSet(points=points, round=self.rounds + 1, version=self.rounds)

    def _sampled(self, entries: IndexArray) -> IndexArray:
        """Line 7: take each point with probability p_j by the server's own random stream; drop duplicates."""
        n = len(entries)
        p = self._p0 * (self._sigma_max**2 if self.config.inducing == "variance" else math.log(n) / n)
        taken = entries[self.context.rng.random(n) < min(1.0, p)]
        return np.array(list(dict.fromkeys(taken.tolist())), dtype=np.intp)

    def _conclude(self, projections: list[Projection]) -> EpochModel:
        """Lines 10-15: compute vbar = (lam I + Z^T Z)^(-1) sum v, broadcast it, and trim the active set."""
        v: FloatArray = np.sum([message.v for message in projections], axis=0)
        gram, lam = self._induced.gram(self._arms), self.config.lam
        vbar = ridge_solve(gram, lam, v)
        self._gram, self._vbar = gram, vbar
        by_mean = self.config.elimination == "mean"
        if by_mean:
            self.active = self._induced.kept_by_mean(vbar, 2.0 * self._beta * self._sigma_max)
        else:
            self.active = self._induced.kept_by_bounds(vbar, gram, lam, self._beta)
        self.rounds += 1
        self._plan = self._epochs.begin(self.config.split(self.context, self.active))
        self.note_left()
        return EpochModel(
            vbar=vbar, sigma_max=self._sigma_max, gram=None if by_mean else gram, version=self.rounds, round=self.rounds
        )

    def broken_invariants(self) -> Iterator[str]:
        """Z^T Z is symmetric and positive semidefinite; the active set never becomes empty and never grows."""
        yield from self._check.violations(self._gram, self.rounds)
        yield from super().broken_invariants()

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """(lam I + Z^T Z) vbar is the sum of the projections of the last finished epoch."""
        kept = self.config.lam * self._vbar + self._gram @ self._vbar
        return self.resummed("(lam I + Z^T Z) vbar", kept, uploads, Projection, lambda agent, one: one.v)

    def report(self) -> dict[str, float | int]:
        """Number of epochs, active points, inducing points in total, and inducing points in the span of the others."""
        return {
            "epochs": self.rounds + 1,
            "active_points": len(self.active),
            "inducing_points": sum(self.sizes),
            "skipped_points": self._skipped,
        }
