"""Batched pure exploration (BPE): "Gaussian Process Bandit Optimization with Few Batches" (Li and Scarlett 2022),
Algorithm 1; the centralised method that papers like Pavlovic et al. 2024 measure themselves against.
As printed: `tests/oracles/bpe.py`. Next: `common/ends_together.py`, `messages/epochs.py`, `server/kernel/bpe.py`.

In a batch each point is that of the largest posterior variance given the batch's points before it; after it, points
that cannot be the best by the batch's own data are dropped: those with mu + beta sigma < max(mu - beta sigma).

``share: nothing`` is the published algorithm, every agent by itself. ``share: rewards`` (ours) is what Pavlovic et al.
2024's section 1 calls linear in N and T: the batches of all agents are one of N N_i points. Variances do not depend on
rewards, so every node works out the whole batch, and agent n pulls its points n, n + N, n + 2N, ...; no point travels.
At the end of its part an agent sends its N_i rewards; when the server has all of them it broadcasts the sum of rewards
of each distinct point of the batch, from which every node finds means, deviations and the new active set.

Further:

* the domain is a finite set of points, the same at all nodes;
* T and N_i = ceil(sqrt(T N_(i-1))), N_0 = 1, are counted per agent, so that all agents act in parallel; nothing is sent
  in the last batch, which is cut at T, and an agent with more turns goes on in its sequence;
* of variances that are equal but for rounding the point of the lowest number is taken: all nodes must find one batch;
* deviations are not divided by lambda (Pavlovic et al. 2024, eq. 4), so that ``beta`` is on the scale of DUETS and
  GP-UCB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from coband.agents.common.ends_together import IN_EPOCHS, PARTING, InStepClient
from coband.agents.common.parameters import AnyKernel, known_turns, needed_domain
from coband.agents.messages.epochs import BatchRewards, RewardSums
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import IndexArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import SERVER, Agent, NodeContext, Outbox
from coband.simulator.maths.exploration.bpe import Batch, batch_lengths
from coband.simulator.maths.exploration.duets import theoretical_width
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.metrics import Metric


class BpeConfig(Config):
    """Parameters of batched pure exploration."""

    kernel: AnyKernel = Gaussian(length_scale=1.0)
    """The kernel k(x, y)."""
    beta: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Points are kept by mu +- beta * sigma; theory: B + R sqrt(2/lam log(2/delta')) (Pavlovic et al. 2024, lemma
    2.5)."""
    lam: float = Field(default=0.2, gt=0)
    """Ridge parameter lambda."""
    share: Literal["rewards", "nothing"] = "rewards"
    """rewards: the agents explore one batch together; nothing: every agent alone."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure, for ``beta: theory``: delta' = delta / (|U| batches)."""
    B: float = Field(default=1.0, ge=0)
    """Bound on the norm of f in the kernel's Hilbert space, for ``beta: theory``."""
    R: Annotated[float, REWARD] = Field(default=0.2, ge=0)
    """The noise is R-sub-Gaussian, for ``beta: theory``."""
    horizon: int | None = Field(default=None, ge=1)
    """T, turns of each agent; null: those that the schedule gives every agent at least."""

    def lengths(self, context: NodeContext) -> tuple[int, ...]:
        """Pulls of an agent in each batch."""
        return batch_lengths(known_turns(self.horizon, context))

    def width(self, points: int, batches: int) -> float:
        """beta, a number or from the numbers of points and batches that the bound must hold for."""
        if self.beta != "theory":
            return self.beta
        return theoretical_width(self.B, self.R, self.lam, self.delta / (points * batches))


class Bpe(InStepClient, Agent):
    """The client's side.

    Attributes:
        active: numbers of the points that are still in the running, ascending.
        batch: number of the batch under way, from 0.
    """

    ignores = (RewardSums,)
    noted: ClassVar[Mapping[str, str]] = {
        "trigger": "points in the active set",
        "eliminate": "points left in the active set",
    }

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: BpeConfig = context.config
        self._domain = needed_domain(context)
        self._together = self.config.share == "rewards"
        self._members = context.agents if self._together else 1
        self._place = context.index if self._together else 0
        self._shared: VersionCache[Batch] = context.sharing.get("batches", lambda: VersionCache(2))
        self._lengths = self.config.lengths(context)
        self._beta = self.config.width(len(self._domain.points), len(self._lengths))
        self.active = np.arange(len(self._domain.points))
        self.batch = 0
        self._start()

    def choose(self, arms: ArmSet) -> int:
        """Place n + N k of the batch: the largest variance given the batch's points before it."""
        return self._points.arm(self._place + self._members * len(self._rewards))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Keep the reward; at the end of a batch that is not the last one tell the server, or trim alone."""
        self._rewards.append(reward)
        self.unshared += 1
        if self.alone or self.batch == len(self._lengths) - 1 or len(self._rewards) < self._lengths[self.batch]:
            return []
        rewards = np.array(self._rewards)
        if not self._together:
            self._trim(self._points.kept(len(rewards), self._points.sums(rewards), self._beta))
            return []
        sent = BatchRewards(rewards=rewards, pulls=len(rewards), round=self.batch + 1)
        return self.begin(self._end_batch(sent), blocking=True)

    async def _end_batch(self, rewards: BatchRewards) -> None:
        """Send the rewards; the sums of all agents' trim the active set."""
        self.note("trigger", round=rewards.round, value=len(self.active))
        found = await self.ask(SERVER, rewards, reply=RewardSums, public=True)
        if isinstance(found, RewardSums):
            pulls = self._members * self._lengths[self.batch]
            self._trim(self._points.kept(pulls, found.sums, self._beta))
        else:
            self.part()

    def _trim(self, active: IndexArray) -> None:
        """What cannot be the best is dropped: mu + beta sigma < max(mu - beta sigma). The next batch begins."""
        self.active = active
        self.batch += 1
        self.note("eliminate", round=self.batch, version=self.batch, value=len(active))
        self._start()

    def _start(self) -> None:
        shared = self._together or self.batch == 0
        self._points = self._shared.get(self.batch, self._fresh) if shared else self._fresh()
        self._rewards: list[float] = []

    def _fresh(self) -> Batch:
        return Batch(self._domain, self.active, self.config.lam)

    def leave(self) -> None:
        """Without the others: go on in the sequence of the batch, in which no point is eliminated any more."""
        self.tell(SERVER, SyncAbandoned(round=self.batch + 1))

    def report(self) -> dict[str, float | int]:
        """Number of batches, and of points that are left."""
        return {"batches": self.batch + 1, "points_left": len(self.active)}


ALGORITHM = Algorithm(
    name="bpe",
    agent=Bpe,
    server="coband.server.kernel.bpe:BpeServer",
    config=BpeConfig,
    summary="Batched pure exploration: points of the largest variance, then elimination, few batches.",
    reference="Li and Scarlett 2022, Algorithm 1; related work of Pavlovic et al. 2024",
    needs=replace(IN_EPOCHS, exact=("RewardSums",)),
    messages=(
        MessageSize(BatchRewards, "up", "n", "from each agent", due=True),
        MessageSize(RewardSums, "down", "p", "to all", due=True),
        *PARTING,
    ),
    counts=(
        ClosedForm("scalars", "0", "share == 'nothing'"),
        ClosedForm("uplink_scalars", "N*shared_pulls", "uploads == N*rounds"),
        ClosedForm("downlink_scalars", "N*shared_points"),
        ClosedForm("scalars_per_agent", "shared_pulls + shared_points", "uploads == N*rounds"),
        ClosedForm("messages", "uploads + N*rounds"),
    ),
    metrics=(
        Metric("batches", "batches", "batches begun; nothing is sent in the last one", aggregate="max"),
        Metric("points_left", "points", "points of the domain that an average agent has left", aggregate="mean"),
        Metric("shared_pulls", "pulls", "pulls of each agent whose rewards the server has had"),
        Metric("shared_points", "points", "sum over shared batches of their distinct points"),
    ),
    rate="regret Õ(√(T γ_T)) (Li and Scarlett 2022, abstract)",
    cites=("li2022gaussian",),
)
