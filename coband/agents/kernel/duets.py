"""DUETS: "Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared Randomness" (Pavlovic
et al. 2024), Algorithm 1.
As printed: `tests/oracles/duets.py`. Next: `common/ends_together.py`, `messages/epochs.py`, `server/kernel/duets.py`.

Deviations from the printed text:

* the domain is a finite set of points, the same at all nodes; the active region is a subset of them;
* line 6 prints X_(j-1) where X_j is meant;
* an agent tells the server that its epoch has ended (a signal), since the server has no clock; the server broadcasts
  the inducing set, which depends on coins alone, at the first such signal of an epoch;
* an inducing set holds a point once, however often it was drawn: that leaves eq. 5 as it is;
* an agent with more turns than T goes on drawing from the last active set;
* the active set counts as one region, as in the paper's description; ``regions: separate`` is its footnote 3: T_j
  points of each connected region, so that an epoch of r regions takes r T_j turns. What connects points of a finite
  domain is ours (``maths.exploration.duets``);
* delta' divides by the number of epochs of lemma 4.4, log log max(N, T) + 4; beside eq. 9 stands log(log N log T) + 4,
  in lemma 4.2 and its proof log log NT + 4, larger for 3 agents and more;
* ``p0: theory`` is 72 log(4NT/delta'), as in section 3 and lemma A.3; theorem 4.1 prints 72 log(4N/delta);
* ``inducing: rate`` and ``elimination: ucb`` are those of the authors' public code; for the latter the server sends
  Z^T Z besides, since an agent does not know the others' points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coband.agents.common.ends_together import IN_EPOCHS, PARTING, InStepClient
from coband.agents.common.parameters import SKIPPED_POINTS, AnyKernel, known_turns, needed_domain
from coband.agents.messages.epochs import EpochEnd, EpochModel, InducingSet, Projection
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import IndexArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import SERVER, Agent, NodeContext, Outbox
from coband.simulator.maths.exploration.duets import (
    Epochs,
    Induced,
    Regions,
    drawn,
    most_epochs,
    theoretical_rate,
    theoretical_width,
)
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.metrics import Metric


class DuetsConfig(Config):
    """Parameters of DUETS."""

    kernel: AnyKernel = Gaussian(length_scale=1.0)
    """The kernel k(x, y)."""
    T1: int = Field(default=2, ge=1)
    """Pulls of each agent in the first epoch."""
    p0: Annotated[float, Field(ge=0)] | Literal["theory"] = 10.0
    """Sampling: a point is induced with probability min(1, p0 * sigma_max^2); theory: p0 = 72 log(4NT/delta')."""
    beta: Annotated[float, Field(ge=0)] | Literal["theory"] = 1.0
    """Points are kept within 2 * beta * sigma_max of the best mean; theory: B + R sqrt(2/lam log(2/delta'))."""
    lam: float = Field(default=0.2, gt=0)
    """Ridge parameter lambda (not printed in the paper; 0.2 is that of its public code)."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure, for ``theory``: delta' = delta / (2 |U| (log log max(N, T) + 4))."""
    B: float = Field(default=1.0, ge=0)
    """Bound on the norm of f in the kernel's Hilbert space, for ``beta: theory``."""
    R: Annotated[float, REWARD] = Field(default=0.2, ge=0)
    """The noise is R-sub-Gaussian, for ``beta: theory``."""
    inducing: Literal["variance", "rate"] = "variance"
    """variance: as in the paper; rate: probability p0 log(n)/n for the n points of an epoch (public code)."""
    elimination: Literal["mean", "ucb"] = "mean"
    """mean: equation 9; ucb: keep x if mu + beta sigma >= max(mu - beta sigma) (public code)."""
    regions: Literal["together", "separate"] = "together"
    """together: T_j points of the whole active set; separate: T_j of each of its connected regions (footnote 3)."""
    horizon: int | None = Field(default=None, ge=1)
    """The paper's T, turns of each agent; null: those that the schedule gives every agent at least."""

    @model_validator(mode="after")
    def _theory_is_about_variances(self) -> Self:
        if self.p0 == "theory" and self.inducing == "rate":
            raise ValueError(
                "p0: theory is a factor of sigma_max^2 and has no meaning with inducing: rate, whose probability is "
                "p0 log(n)/n; write inducing: variance, or p0 as a number."
            )
        return self

    def turns(self, context: NodeContext) -> int:
        """T: what every agent is sure to get, or less if ``horizon`` says so.

        Raises:
            UnsupportedScenario: neither the schedule nor ``horizon`` says.
        """
        return known_turns(self.horizon, context)

    def epochs(self, context: NodeContext) -> Epochs:
        """The epochs of every agent."""
        return Epochs(self.turns(context), self.T1)

    def split(self, context: NodeContext, active: IndexArray) -> tuple[IndexArray, ...]:
        """The regions that are explored each by itself."""
        if self.regions == "together":
            return (active,)
        domain = context.domain
        assert domain is not None
        regions: Regions = context.sharing.get("regions", lambda: Regions(domain.features))
        return regions.of(active)

    def width(self, points: int, agents: int, horizon: int) -> float:
        """beta, a number or computed from the size of the domain, N and T."""
        if self.beta != "theory":
            return self.beta
        return theoretical_width(self.B, self.R, self.lam, self._failure(points, agents, horizon))

    def rate(self, points: int, agents: int, horizon: int) -> float:
        """p0, a number or computed from the size of the domain, N and T."""
        if self.p0 != "theory":
            return self.p0
        return theoretical_rate(agents, horizon, self._failure(points, agents, horizon))

    def _failure(self, points: int, agents: int, horizon: int) -> float:
        """delta' of equation 9, with the epochs of lemma 4.4."""
        return self.delta / (2.0 * points * most_epochs(horizon, agents))


class Duets(InStepClient, Agent):
    """The client's side.

    Attributes:
        active: numbers of the points that are still in the running, ascending.
        epoch: number of the epoch under way, from 0.
    """

    keeps = (InducingSet,)
    ignores = (EpochModel,)
    noted: ClassVar[Mapping[str, str]] = {
        "trigger": "points in the active set",
        "eliminate": "points left in the active set",
    }

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: DuetsConfig = context.config
        self._domain = needed_domain(context)
        self._shared: VersionCache[Induced] = context.sharing.get("induced", lambda: VersionCache(2))
        self._epochs = self.config.epochs(context)
        self._beta = self.config.width(len(self._domain.points), context.agents, self.config.turns(context))
        # Line 2: X_1 = X.
        self.active = np.arange(len(self._domain.points))
        self.epoch = 0
        self._start()

    def _start(self) -> None:
        """Lines 4 and 6: draw the epoch's points with the coin."""
        self._plan = self._epochs.begin(self.config.split(self.context, self.active))
        self._arms = self._plan.draw(self.context.rng)
        self._rewards: list[float] = []

    def choose(self, arms: ArmSet) -> int:
        """Line 6: the next of the drawn points."""
        if len(self._rewards) == len(self._arms):  # more turns than T
            self._arms = np.append(self._arms, drawn(self.active, self.context.rng, 1))
        return int(self._arms[len(self._rewards)])

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 7-12: keep the pull; at the end of an epoch that is not the last one wait for the server."""
        self._rewards.append(reward)
        self.unshared += 1
        if self._plan.last or self.alone or len(self._rewards) < len(self._arms):
            return []
        return self.begin(self._end_epoch(), blocking=True)

    async def _end_epoch(self) -> None:
        """Lines 13-19: hear of the epoch's inducing set, send the rewards on it, trim the active set by the model."""
        number = self.epoch + 1
        self.note("trigger", round=number, value=len(self.active))
        end, this = EpochEnd(round=number), lambda found: found.round == number
        inducing = await self.ask(SERVER, end, reply=InducingSet, public=True, where=this)  # line 13
        if isinstance(inducing, InducingSet):
            model = await self.ask(SERVER, self._project(inducing), reply=EpochModel)  # lines 14-15
            if isinstance(model, EpochModel):
                self._trim(model)  # lines 16-19
                return
        self.part()

    def leave(self) -> None:
        """Without the others: points of the active set are drawn until the end, and none is eliminated."""
        self.tell(SERVER, SyncAbandoned(round=self.epoch + 1))

    def _project(self, inducing: InducingSet) -> Projection:
        """Line 14: v = Z^T Y."""
        points, number = inducing.points, inducing.round
        self._induced = self._shared.get(number, lambda: Induced(self._domain, self.active, points))
        v = self._induced.projection(self._arms, np.array(self._rewards))
        return Projection(v=v, pulls=len(self._rewards), round=number)

    def _trim(self, message: EpochModel) -> None:
        """Lines 16-19, equation 9."""
        if message.gram is None:
            self.active = self._induced.kept_by_mean(message.vbar, 2.0 * self._beta * message.sigma_max)
        else:
            self.active = self._induced.kept_by_bounds(message.vbar, message.gram, self.config.lam, self._beta)
        self.note("eliminate", round=message.round, version=message.round, value=len(self.active))
        self.epoch += 1
        self._start()


ENDED = "uploads == 2*N*rounds"
"""The run does not end within a round."""
BY_MEANS = f"elimination == 'mean' and {ENDED}"

ALGORITHM = Algorithm(
    name="duets",
    agent=Duets,
    server="coband.server.kernel.duets:DuetsServer",
    config=DuetsConfig,
    summary="Uniform exploration of a shrinking domain in epochs; the server replays the agents' coins.",
    reference="Pavlovic et al. 2024 (Order-Optimal Regret in Distributed Kernel Bandits), Algorithms 1 and 2",
    needs=replace(IN_EPOCHS, exact=("InducingSet", "EpochModel")),
    messages=(
        MessageSize(EpochEnd, "up", "0"),
        MessageSize(InducingSet, "down", "d*m", "to all", due=True),
        MessageSize(Projection, "up", "m", "from each agent", due=True),
        MessageSize(EpochModel, "down", "m + 1", "to all", "elimination == 'mean'", due=True),
        MessageSize(EpochModel, "down", "m^2 + m + 1", "to all", "elimination == 'ucb'", due=True),
        *PARTING,
    ),
    counts=(
        ClosedForm("uplink_scalars", "N*inducing_points", ENDED),
        ClosedForm("downlink_scalars", "N*((d + 1)*inducing_points + rounds)", BY_MEANS),
        ClosedForm("uplink_scalars_per_agent", "inducing_points", ENDED),
        ClosedForm("scalars_per_agent", "(d + 2)*inducing_points + rounds", BY_MEANS),
        ClosedForm("scalars_broadcast_once", "(N + d + 1)*inducing_points + rounds", BY_MEANS),
    ),
    metrics=(
        Metric("epochs", "epochs", "epochs begun; nothing is sent in the last one"),
        Metric("active_points", "points", "points of the domain that are left"),
        Metric("inducing_points", "points", "sum over epochs of the size of the inducing set"),
        SKIPPED_POINTS,
    ),
    cites=("pavlovic2024order",),
    rate="regret Õ(√(T γ_T) log(T/(N δ))) with Õ(N γ_T) scalars (Pavlovic et al. 2024, theorem 4.1)",
)
