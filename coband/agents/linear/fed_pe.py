"""Fed-PE: federated linear bandits by phased elimination (Huang et al. 2021, Algorithms 1 and 2).
As printed: `tests/oracles/fed_pe.py`. Next: `common/ends_together.py`, `messages/phases.py`, `server/linear/fed_pe.py`.

Every agent has K arms of its own; arm a of agent i has the mean x_(i,a) . theta_a (``parameters: per_arm``) or
x_(i,a) . theta. Phase 0 pulls every arm once, phase p has f^p + K pulls with f^p = growth^p. The server spreads f^p
over the arms that each agent has left, by the multi-client G-optimal design; what is left of a phase goes to the best
arm so far. An agent sends x ybar / ||x||^2 for each arm that was dealt pulls, from which the server sees the direction
e of x alone (ours: also of an arm with ybar = 0 in phase 0, for which 1e-100 is sent):

    V_a = sum f e e^T,   theta_a = V_a^+ sum f x ybar / ||x||^2,   r = x . theta_a,   u = sigma alpha ||x||_(V_a^+) / l

Arms stay with r + u >= r* - u* for the arm * of the largest r. ``enhanced`` keeps all phases, r = sum f^p r_p / n with
n = sum f^p and u = sigma sqrt(S (2 log(NK/delta) + log(S N/(d K)))) / n, S = d K/N + sum (f^p ||x||_(V^+) / l)^2.
``collaborative`` does so with x itself in place of e (and no l), which the agents disclose by sending ||x||.

The constants of the variants are those of the authors' program, which differs otherwise: it ends phases after the dealt
pulls, takes sqrt(2 log(2 N K H / delta)) as the second part of alpha, and compares with arms that are eliminated.
The bounds are those of the abstract, which gives their growth in T alone. Salgia and Zhao's program has lower regret
(67.1k, not 102k to 106k): its 2^p pulls of a design are those of all agents together, so that it explores less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from coband.agents.common.ends_together import ARMS_LEFT, DEALT, IN_PHASES, PARTING, PhasedAgent
from coband.agents.common.parameters import known_turns
from coband.agents.messages.phases import ActiveArms, Allotment, PhaseEstimates, PhaseModel
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import SERVER, NodeContext
from coband.simulator.metrics import Metric

HARDLY = 1e-100
"""A mean of 0 in phase 0: with 0 itself the direction of the arm would be lost."""


class FedPEConfig(Config):
    """Parameters of Fed-PE."""

    variant: Literal["fed_pe", "enhanced", "collaborative"] = "fed_pe"
    """fed_pe: each phase by itself; enhanced: with all phases before; collaborative: so, and agents disclose arms."""
    parameters: Literal["per_arm", "shared"] = "per_arm"
    """per_arm: a parameter for each number of an arm, common to all agents; shared: one for all arms."""
    alpha: Annotated[float, Field(ge=0)] | Literal["theory"] = "theory"
    """Width of intervals; theory: min{sqrt(2 log(KH/delta) + d log(k e)), sqrt(2 log(NKH/delta))} for H phases."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability of failure."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=1.0, gt=0)
    """sigma: the noise is sigma-sub-Gaussian."""
    shortest: float | None = Field(default=None, gt=0)
    """l: no arm of any agent is shorter; null: each agent takes its own shortest arm."""
    growth: int = Field(default=2, ge=2)
    """f^p = growth^p pulls are dealt out in phase p."""
    gap: float = Field(default=0.1, gt=0)
    """Designs are as near to the optimum: G(pi) <= sum of ranks + gap."""
    horizon: int | None = Field(default=None, ge=1)
    """T, turns of each agent, for alpha: theory; null: those that the schedule gives every agent at least."""

    def width(self, context: NodeContext, arms: int) -> float:
        """alpha, a number or by theory; k is the least with k d >= 2 log(KH/delta) + d log(k e)."""
        if self.alpha != "theory":
            return self.alpha
        turns, phases = known_turns(self.horizon, context) - arms, 1
        while turns > 0:
            turns, phases = turns - arms - self.growth**phases, phases + 1
        one, d, k = 2.0 * math.log(arms * phases / self.delta), context.dimension, 1.0
        for _ in range(1000):
            k = 1.0 + math.log(k) + one / d
        return math.sqrt(min(d * k, 2.0 * math.log(context.agents * arms * phases / self.delta)))


class FedPE(PhasedAgent):
    """The client's side, Algorithm 1.

    Attributes:
        active: arms that are left, ascending.
        phase: number of the phase under way.
    """

    ignores = (PhaseModel,)
    noted: ClassVar[Mapping[str, str]] = {"trigger": "arms left in the phase", "eliminate": "arms left"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedPEConfig = context.config
        self.phase = self._best = self._dealt = self._estimates = 0
        self.active = np.zeros(0, dtype=np.int64)

    def choose(self, arms: ArmSet) -> int:
        """The next of the dealt pulls, then the best arm so far."""
        if not len(self.active):
            self._meet(arms.features)
        return super().choose(arms)

    def _meet(self, X: FloatArray) -> None:
        """Phase 0: every arm once."""
        self._X, self._squares, K = X, np.vecdot(X, X), len(X)
        self._alpha = self.config.width(self.context, K)
        own = math.sqrt(float(self._squares.min(where=self._squares > 0.0, initial=math.inf)))
        self._shortest = 1.0 if self.config.variant == "collaborative" else self.config.shortest or own
        self._weighted, self._spread = np.zeros(K), np.full(K, self.context.dimension * K / self.context.agents)
        self.active = np.arange(K)
        self._begin(np.ones(K, dtype=np.int64), K)

    def _begin(self, counts: IntArray, length: int) -> None:
        """Begin a phase; ``counts``: pulls of the arms that are left."""
        arms, counts = self.active[counts > 0], counts[counts > 0]
        self._informative, rest = len(arms), length - int(counts.sum())
        if rest:
            arms, counts = np.append(arms, self._best), np.append(counts, rest)
        self.start(arms, counts)

    async def end_phase(self) -> None:
        """Send estimates, eliminate by the model, tell which arms are left, begin with what is dealt out."""
        n, number = self._informative, self.phase + 1
        arms, means = self._arms[:n], self._sums[:n] / self._counts[:n]
        self.note("trigger", round=number, value=len(self.active))
        self._estimates += n
        if not self.phase:
            means[means == 0.0] = HARDLY
        squares = np.maximum(self._squares[arms], np.finfo(float).tiny)
        estimates, norms = self._X[arms] * (means / squares)[:, None], np.sqrt(squares)
        upload = PhaseEstimates(
            estimates=estimates,
            norms=norms if self.config.variant == "collaborative" else None,
            pulls=self._place,
            round=number,
        )
        model = await self.ask(SERVER, upload, reply=PhaseModel, public=True)
        if not isinstance(model, PhaseModel):
            self.part()
            return
        self._eliminate(model)
        dealt = await self.ask(SERVER, ActiveArms(arms=self.active, round=number), reply=Allotment)
        if not isinstance(dealt, Allotment):
            self.part()
            return
        self.phase = number
        self._begin(dealt.counts, self.config.growth**number + len(self._X))

    def _eliminate(self, model: PhaseModel) -> None:
        """Keep the arms with r + u >= r* - u*."""
        X, active, c = self._X[self.active], self.active, self.config
        at = np.zeros(len(active), dtype=np.int64) if model.arms is None else np.searchsorted(model.arms, active)
        at = np.minimum(at, len(model.theta) - 1)  # an arm that is not in the model has features of 0, and needs none
        mean, square = np.vecdot(X, model.theta[at]), np.einsum("ij,ijk,ik->i", X, model.inverse[at], X)
        width = self._alpha * np.sqrt(np.maximum(square, 0.0)) / self._shortest
        if c.variant != "fed_pe":
            pulls, M, K, d = c.growth**self.phase, self.context.agents, len(self._X), self.context.dimension
            self._weighted[active] += pulls * mean
            self._spread[active] += square * (pulls / self._shortest) ** 2
            self._dealt += pulls
            S = self._spread[active]
            logs = 2.0 * math.log(M * K / c.delta) + np.log(S * M / (d * K))
            mean, width = self._weighted[active] / self._dealt, np.sqrt(S * logs) / self._dealt
        best = int(mean.argmax())
        self._best = int(active[best])
        self.active = active[mean + c.sub_gaussian * width >= mean[best] - c.sub_gaussian * width[best]]
        self.note("eliminate", round=model.round, version=model.round, value=len(self.active))

    def leave(self) -> None:
        """Without the others: stay with the best arm so far, in phase 0 that of the highest reward."""
        if not self.phase and len(self.active):
            self._best = int(self._sums[: max(1, self._place)].argmax())
        self.tell(SERVER, SyncAbandoned(round=self.phase + 1))

    def report(self) -> dict[str, float | int]:
        return {"arms_left": len(self.active), "estimates_sent": self._estimates}


ALGORITHM = Algorithm(
    name="fed_pe",
    agent=FedPE,
    server="coband.server.linear.fed_pe:FedPEServer",
    config=FedPEConfig,
    summary="Federated linear bandit: agents with arms of their own, phased elimination by a common optimal design.",
    reference="Huang et al. 2021, Algorithms 1 and 2",
    needs=replace(IN_PHASES, horizon=True),
    messages=(
        MessageSize(PhaseEstimates, "up", "n*(d + (variant == 'collaborative'))", "from each agent"),
        MessageSize(PhaseModel, "down", "b*(d^2 + d + (parameters == 'per_arm'))", "to all"),
        MessageSize(ActiveArms, "up", "a", "from each agent"),
        MessageSize(Allotment, "down", "a", "to each agent"),
        *PARTING,
    ),
    counts=(
        ClosedForm("uplink_scalars", "estimates_sent*(d + (variant == 'collaborative')) + active_sent"),
        ClosedForm("downlink_scalars", "N*models_sent*(d^2 + d + (parameters == 'per_arm')) + active_sent"),
        ClosedForm("messages", "uploads + 2*N*rounds"),
    ),
    metrics=(
        ARMS_LEFT,
        Metric("estimates_sent", "estimates", "arms with dealt pulls, over agents and phases"),
        Metric("active_sent", "arms", "arms that agents had left, over agents and phases"),
        Metric("models_sent", "models", "parameters of which something was learnt, over phases"),
    ),
    rate="regret Õ(√T) with O(log T) scalars for given agents, arms and dimension (Huang et al. 2021, abstract)",
    cites=("huang2021federated",),
    undefended=DEALT,
    search={"growth": "2..8"},
)
