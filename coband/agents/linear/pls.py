"""PLS: progressive learning and sharing, a linear bandit at few bits (Salgia and Zhao 2022).
As printed: `tests/oracles/pls.py`. Next: `common/ends_together.py`, `messages/phases.py`, `server/linear/pls.py`.

All agents have one parameter and arms that stay, the same or their own. In epoch k = 1, 2, ... an agent spreads d s_k
pulls, s_k = ceil(C 4^k d ln(N log2 T)), over its arms by a G-optimal design. Of its estimate theta_i it
sends the difference to what all know, theta; the server adds the mean of what arrives, and sends the change of theta.
Both are rounded at random to a grid, up within R_k + B_k to alpha_k = alpha_0 sigma sqrt(d / s_k), down within
B_k + tau_k to beta_k = beta_0 tau_k, and sent in a unary code, where

    tau_k = 2^(1 - k) / (4 sqrt(N)),   R_k = 2^(-k),   B_1 = 3/2,   B_k = 5 tau_k.

The norm is known well once ||theta|| >= 4 tau_k; it is mu then. From that epoch on, each agent exploits alone for
N s_k^2 mu^2 pulls after each exploration: by LinUCB from theta, of the arms within 2 tau_k of the best by theta.

The text of the paper was not at hand: constants and stages are those of the authors' program, and the bounds are those
of the abstract. alpha_0 = 1/2 is that of an older version, which sends about the published bits where arms are few
(decision 42); elsewhere it sends 3.2 times the bits of the newest, which has 2, fits the published numbers, and lets
rounding cost twice the noise of an estimate. Ours: a design in place of
d + 2 arms in equal parts, unbiased rounding, and a norm that agents know without a message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from coband.agents.common.ends_together import IN_PHASES, PARTING, PhasedAgent
from coband.agents.common.parameters import known_turns
from coband.agents.messages.phases import EstimateLevels, ModelLevels
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import SERVER, NodeContext, Outbox
from coband.simulator.maths.exploration.design import check_countable
from coband.simulator.maths.exploration.g_optimal import WHOLE, core
from coband.simulator.metrics import Metric


@dataclass(frozen=True)
class Grid:
    """Multiples m of a step in [-radius, radius], |m| <= ceil(radius sqrt(d) / error).

    A vector of ``dimension`` d numbers within the radius is rounded without bias, and by at most ``error`` in norm.
    """

    dimension: int
    radius: float
    error: float

    @property
    def step(self) -> float:
        """Between neighbours."""
        return self.radius / math.ceil(self.radius * math.sqrt(self.dimension) / self.error)

    def levels(self, values: FloatArray, rng: np.random.Generator) -> IntArray:
        """m of each number, (d,); what is outside of the radius is rounded to its end. One coin for each is drawn."""
        places = np.clip(values, -self.radius, self.radius) / self.step
        low = np.floor(places)
        return (low + (rng.random(len(values)) < places - low)).astype(np.int64)


class Epoch(NamedTuple):
    """s_k, tau_k, and the grids of what is sent."""

    s: int
    tau: float
    up: Grid
    down: Grid


class PlsConfig(Config):
    """Parameters of PLS."""

    C: float = Field(default=0.5, gt=0)
    """Factor of the pulls of an exploration."""
    alpha_0: float = Field(default=0.5, gt=0)
    """Uploads are rounded by at most alpha_0 sigma sqrt(d / s_k)."""
    beta_0: float = Field(default=1.0, gt=0)
    """Downloads are rounded by at most beta_0 tau_k."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=1.0, gt=0)
    """sigma: the noise is sigma-sub-Gaussian."""
    gamma: float = Field(default=3.0, ge=0)
    """LinUCB chooses by x^T theta + gamma ||x||_(V^-1)."""
    gap: float = Field(default=1.0, gt=0)
    """Designs are as near to the optimum: max ||x||^2_(V^+) <= d + gap."""
    horizon: int | None = Field(default=None, ge=1)
    """T, turns of each agent; null: those that the schedule gives every agent at least."""

    def epoch(self, context: NodeContext, k: int) -> Epoch:
        """The numbers of epoch k."""
        d, N, turns = context.dimension, context.agents, known_turns(self.horizon, context)
        s = max(1, math.ceil(self.C * 4.0**k * d * math.log(max(2.0, N * math.log2(max(turns, 2))))))
        check_countable(d * s)
        tau = 2.0 ** (1 - k) / (4.0 * math.sqrt(N))
        B, alpha = 5.0 * tau if k > 1 else 1.5, self.alpha_0 * self.sub_gaussian * math.sqrt(d / s)
        return Epoch(s, tau, Grid(d, 2.0**-k + B, alpha), Grid(d, B + tau, self.beta_0 * tau))


class Pls(PhasedAgent):
    """The client's side.

    Attributes:
        theta: what all know.
        phase: k, from 1.
    """

    ignores = (ModelLevels,)
    noted: ClassVar[Mapping[str, str]] = {"trigger": "pulls of the exploration", "eliminate": "arms left to exploit"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: PlsConfig = context.config
        self.theta, self.phase, self._mu, self._left = np.zeros(context.dimension), 0, 0.0, 0.0
        self._sent = self._signs = 0

    def choose(self, arms: ArmSet) -> int:
        """The next of the design's pulls; while it exploits, the arm with the largest bound."""
        if not self.phase:
            self._X, shared = arms.features, self.context.domain is not None
            key = "design" if shared else self.context.index
            self._design = self.context.sharing.get(key, lambda: core(self._X, self.config.gap).weights)
            self._explore()
            if self.alone:
                self._exploit(math.inf)
        if not self._left:
            return super().choose(arms)
        return int(self._arms[self.best(self._means + self.config.gamma * np.sqrt(self._variances))])

    def warnings(self) -> Iterator[str]:
        """A first exploration that never ends."""
        first = self.phase <= 1 and self.config.epoch(self.context, 1).s
        return self.never_ending(first * self.context.dimension)

    def _explore(self) -> None:
        self.phase += 1
        self._now = self.config.epoch(self.context, self.phase)
        ends = np.floor(np.cumsum(self._design) * (self.context.dimension * self._now.s) + WHOLE).astype(np.int64)
        counts = np.diff(ends, prepend=0)
        self.start(counts.nonzero()[0], counts[counts > 0])

    def _exploit(self, pulls: float) -> None:
        """Begin to choose by LinUCB, from theta, among the arms that are near the best."""
        means = self._X @ self.theta
        self._left, self._arms = pulls, (means >= means.max() - 2.0 * self._now.tau).nonzero()[0]
        self._rows, self._means = self._X[self._arms], means[self._arms]
        self._inverse, self._variances = np.eye(self.context.dimension), np.vecdot(self._rows, self._rows)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Learn; at the end of an exploration share the estimate."""
        if not self._left:
            return super().observe(arms, arm, reward)
        self.unshared += 1
        self._learn(int(self._arms.searchsorted(arm)), reward)
        self._left -= 1
        if not self._left:
            self._explore()
        return []

    def _learn(self, place: int, reward: float) -> None:
        """V += x x^T, and what follows for V^(-1), means and variances of the arms (Sherman and Morrison)."""
        z = self._inverse @ self._rows[place]
        covariances = self._rows @ z
        gains = covariances / (1.0 + covariances[place])
        self._means += gains * (reward - self._means[place])
        self._variances = np.maximum(self._variances - gains * covariances, 0.0)
        self._inverse -= z[:, None] * z / (1.0 + covariances[place])

    async def end_phase(self) -> None:
        """Send the estimate's difference to theta, hear how theta changes; exploit, or begin the next epoch."""
        self.note("trigger", round=self.phase, value=self._place)
        levels = self._now.up.levels(self.least_squares(self._X) - self.theta, self.context.rng)
        self._sent, self._signs = self._sent + int(abs(levels).sum()), self._signs + int(np.count_nonzero(levels))
        upload = EstimateLevels(levels=levels, pulls=self._place, round=self.phase)
        model = await self.ask(SERVER, upload, reply=ModelLevels, public=True)
        if not isinstance(model, ModelLevels):
            self.part()
            return
        self.theta = self.theta + model.levels * self._now.down.step
        norm = float(np.linalg.norm(self.theta))
        self._mu = self._mu or (norm if norm >= 4.0 * self._now.tau else 0.0)
        pulls = math.floor(self.context.agents * float(self._now.s) ** 2 * self._mu**2)
        self._exploit(pulls)
        self.note("eliminate", round=self.phase, version=self.phase, value=len(self._arms))
        if not pulls:
            self._explore()

    def leave(self) -> None:
        """Without the others: exploit, or go on with it, to the end."""
        if self._left:
            self._left = math.inf
        elif self.phase:
            self._exploit(math.inf)
        self.tell(SERVER, SyncAbandoned(round=self.phase))

    def report(self) -> dict[str, float | int]:
        return {"levels_up": self._sent, "signs_up": self._signs}


ALGORITHM = Algorithm(
    name="pls",
    agent=Pls,
    server="coband.server.linear.pls:PlsServer",
    config=PlsConfig,
    summary="Progressive learning and sharing: linear bandits that send changes of estimates in about d bits an epoch.",
    reference="Salgia and Zhao 2022, PLS",
    needs=replace(IN_PHASES, horizon=True, waits_for_all=""),
    messages=(
        MessageSize(EstimateLevels, "up", "d", "from each agent"),
        MessageSize(ModelLevels, "down", "d", "to all"),
        *PARTING,
    ),
    counts=(
        ClosedForm("uplink_scalars", "d*uploads"),
        ClosedForm("downlink_scalars", "N*d*rounds"),
        ClosedForm("bits", "d*(uploads + N*rounds) + levels_up + signs_up + N*(levels_down + signs_down)"),
        ClosedForm("messages", "uploads + N*rounds"),
    ),
    metrics=(
        Metric("levels_up", "steps", "sum of the absolute levels that were sent up"),
        Metric("signs_up", "signs", "levels other than 0 that were sent up"),
        Metric("levels_down", "steps", "sum of the absolute levels of the server's changes"),
        Metric("signs_down", "signs", "levels other than 0 of the server's changes"),
    ),
    rate="regret Õ(d √T) with O(N d (log T + log N)) bits (Salgia and Zhao 2022, abstract and main result)",
    cites=("salgia2023distributed",),
    undefended={
        "1": "it sums whole numbers of steps of a grid, and n times a robust mean is in general no whole number"
    },
    search={"C": "0.001..10", "alpha_0": "0.1..4", "beta_0": "0.25..4"},
)
