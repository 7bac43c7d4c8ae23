"""Approx-DisKernelUCB: event-triggered synchronisation of embedded statistics (Li et al. 2022; baseline in Li et al.
2023 and Pavlovic et al. 2024).
As printed: `tests/oracles/approx_dis_kernel_ucb.py`. Next: `messages/synchronisation.py`,
`server/kernel/approx_dis_kernel_ucb.py`.

Between synchronisations an agent adds its own new points to its copy of the embedded statistics, the dictionary fixed.
Once it has answered in a synchronisation it waits for the new model.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import SKIPPED_POINTS, KernelBandit, Repeats, Synchronous, domain_of
from coband.agents.common.synchronisation import ABANDONED, OPENING, SynchronousAgent
from coband.agents.messages.synchronisation import (
    GlobalStatistics,
    LocalStatistics,
    Sample,
    SharedDictionary,
    SyncAbandoned,
    SyncStart,
)
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.conversations import on
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import SERVER, Address, NodeContext, Outbox
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import distinct
from coband.simulator.maths.posteriors.nystrom import NystromModel, NystromPosterior
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations
from coband.simulator.metrics import DICTIONARY_SIZE


class ApproxDisConfig(KernelBandit, Synchronous):
    """Parameters of Approx-DisKernelUCB."""

    q: float = Field(default=1.0, ge=0)
    """Sampling: a point enters the dictionary with probability min(1, q * sigma_last^2)."""
    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when the variances of an agent's new points add up to more."""
    repeats: Repeats = "keep"
    """keep: a point sampled several times stands as often in the dictionary; drop: once, which spans the same."""


class ApproxDisKernelUCB(SynchronousAgent):
    """The client's side."""

    model = GlobalStatistics
    kept = ("_base_variance",)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: ApproxDisConfig = context.config
        self._store: VersionCache[NystromModel] = context.sharing.get("posteriors", VersionCache)
        self._dictionaries: VersionCache[Dictionary] = context.sharing.get("dictionaries", VersionCache)
        self._domain = domain_of(context)
        self._dictionary, self._dictionary_round = Dictionary(self.config.kernel), 0
        self._data = GrowingObservations(context.dimension)
        self._begin_from(0, self._store.get(0, lambda: self._fit(Statistics.zero(0))))

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest mu + alpha * sigma; own new points count."""
        mean, variance = self.posterior.predict(arms)
        self._base_variance = self.posterior.base_variance
        return self.best(mean + self.config.alpha * np.sqrt(variance))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull; ask for a synchronisation when the sum of sigma_last^2 over the new points exceeds D."""
        self._new_variance += float(self._base_variance[arm])
        self.posterior.update(Observations.pull(arms, arm, reward))
        self._data.append(arms.features[arm], reward)
        self.unshared += 1
        self._own += 1
        if self._requested or not exceeds(self._new_variance, self.config.threshold):
            return []
        return self.request(self._new_variance)

    @on(SyncStart, blocking=True)
    async def take_part(self, start: SyncStart, server: Address) -> None:
        """Both phases of a synchronisation: the dictionary, and the statistics over it."""
        dictionary = await self.ask(SERVER, self._sample(start), reply=(SharedDictionary, SyncAbandoned))
        if isinstance(dictionary, SharedDictionary):
            await self.contribute(dictionary, server)

    def _sample(self, start: SyncStart) -> Sample:
        """Phase 1, the dictionary: sample from ALL local data with probability min(1, q * sigma_last^2)."""
        points = self._data.points
        probability = np.minimum(1.0, self.config.q * self.posterior.base_variance_of(points))
        sampled = self.context.rng.random(len(probability)) < probability
        chosen = points[sampled] if self.config.repeats == "keep" else distinct(points[sampled])[0]
        return Sample(points=chosen, version=start.version, round=start.round)

    @on(SharedDictionary, blocking=True)
    async def contribute(self, dictionary: SharedDictionary, server: Address) -> None:
        """Phase 2, the statistics, also for an agent that was left out of the dictionary phase."""
        statistics = self.upload(dictionary)
        total = await self.ask(SERVER, statistics, reply=(GlobalStatistics, SyncAbandoned))
        if isinstance(total, GlobalStatistics):
            self.take_in(total, server)

    def upload(self, start: Message) -> LocalStatistics:
        """A_i = sum z z^T and b_i = sum z y over ALL local data, z = z(x; S) with the new dictionary S."""
        assert isinstance(start, SharedDictionary)
        empty = Dictionary(self.config.kernel)
        self._dictionary_round = start.round
        self._dictionary = self._dictionaries.get(start.round, lambda: empty.appended(start.points))
        local = Statistics.of(self._dictionary.embed(self._data.points), self._data.rewards)
        return LocalStatistics(A=local.A, b=local.b, version=start.version, round=start.round, pulls=self.unshared)

    def adopt(self, message: GlobalStatistics) -> None:
        """Go on from sum A_i and sum b_i, unless their dictionary was given up: nothing can be known without it."""
        if message.round != self._dictionary_round:
            return
        statistics = Statistics(message.A, message.b)
        self._begin_from(message.version, self._store.get(message.version, lambda: self._fit(statistics)))
        self._behind = message.known
        self.note("model", version=message.version, round=message.round)

    # --- models

    def _begin_from(self, version: int, model: NystromModel) -> None:
        self.posterior = NystromPosterior(model, self._domain)
        self._version, self._new_variance = version, 0.0
        self._own = 0  # pulls since then

    def _fit(self, statistics: Statistics) -> NystromModel:
        return NystromModel.fit(self._dictionary, statistics, self.config.lam)

    @property
    def pulls_in_model(self) -> int:
        """Those of the last synchronisation, and its own since then."""
        return self._behind + self._own


ALGORITHM = Algorithm(
    name="approx_dis_kernel_ucb",
    agent=ApproxDisKernelUCB,
    server="coband.server.kernel.approx_dis_kernel_ucb:ApproxDisKernelUCBServer",
    config=ApproxDisConfig,
    summary="Synchronous kernel bandit: all agents rebuild a common dictionary and sum embedded statistics.",
    reference="Li et al. 2022, Approx-DisKernelUCB; baseline of Li et al. 2023 and Pavlovic et al. 2024",
    needs=Needs(waits_for_all="wait == 'all'"),
    messages=(
        *OPENING,
        MessageSize(Sample, "up", "d*n", "from each agent", due=True),
        MessageSize(SharedDictionary, "down", "d*m", "to all", due=True),
        MessageSize(LocalStatistics, "up", "m^2 + m", "from each agent", due=True),
        MessageSize(GlobalStatistics, "down", "m^2 + m", "to all", due=True),
        ABANDONED,
    ),
    counts=(
        ClosedForm("uplink_scalars", "d*m + N*(m^2 + m)", "wait == 'all' and repeats == 'keep'", each="round"),
        ClosedForm("downlink_scalars", "N*(d*m + m^2 + m)", "wait == 'all'", each="round"),
    ),
    metrics=(DICTIONARY_SIZE, SKIPPED_POINTS),
    cites=("li2022communication",),
    undefended={
        "wait != 'all'": "of agents that are late its server takes the last statistics, of which it has a change alone"
    },
    search={"threshold": "0.01..100", "q": "0.01..1"},
    always={"threshold": 0.0},
)
