"""IndALBA and IndPolyALBA: every agent runs ALBA (Tao, Blanco, Zhou 2018, "Best Arm Identification in Linear Bandits
with Linear Dimension Dependency") or PolyALBA (Du, Kuroki, Chen 2021, "Combinatorial Pure Exploration with Full-Bandit
or Partial Linear Feedback") alone; baselines of paper 003, section 6.

ALBA eliminates in stages q = 0, 1, ...: stage q, with confidence 6 delta / (pi^2 (q + 1)^2), ends when at most
floor(d/2^q) arms are left (at least one), so that the dimension halves. Round r of a stage, with the share
6 / (pi^2 r^2) of its confidence, estimates all arms that are left to within e = 2^-r / 2 from

    n = ceil(c_0 (2 + (6 + e/2) d') / e^2 ln(5 |S| / delta_r))

samples of a G-optimal design, d' the dimension of their span, and drops those that seem 2^-r or more below the best.
PolyALBA has another stage 0: it looks for the d arms that seem best, by rounds that end when the best is 2^-r or more
ahead of number d + 1.

Stages, shares of delta, c_0 = max(4 L^2, 3) for rewards theta . x with |theta| <= L, and the numbers 2, 6 and 5 agree
with the public code of Fiez et al. 2019 for ALBA; the summand e/2, worth 6 % of the samples at most, and PolyALBA's
rule are from our reading alone. Simplified: designs are rounded instead of sampled from, with ordinary least squares,
for which c_0 need not grow with L (``norm`` brings the printed one back); PolyALBA's stage 0 uses the same design,
since n arms can be listed here. delta is shared out over the V agents.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from coband.agents.ind_rage import NEEDS
from coband.agents.metrics import PURE_EXPLORATION
from coband.agents.pure_exploration import FixedConfidenceConfig, PureExplorationAgent
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm
from coband.simulator.core.node import NodeContext, Outbox
from coband.simulator.maths.exploration.design import apportion, fewest_samples
from coband.simulator.maths.exploration.pairs import pairs_of


class AlbaConfig(FixedConfidenceConfig):
    """Parameters of ALBA and PolyALBA."""

    norm: float = Field(default=0.0, ge=0)
    """L, a bound of the norm of the reward's parameter; c_0 = max(4 L^2, 3). Least squares need none."""


class IndAlba(PureExplorationAgent):
    """One agent's ALBA."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: AlbaConfig = context.config
        self._own = self.pairs.of(self.index)
        self._dimension = self._own.features.shape[1]
        self._left = list(range(self._own.arms))
        self._stage, self._step = 0, 1
        self._end_stages()

    def request(self) -> IntArray:
        """A G-optimal design over the arms that are left."""
        design = self._own.g_optimal(self._left)
        dimension = round(design.value)  # the optimal value is the dimension of the span (Kiefer, Wolfowitz 1960)
        e = 0.5 * 2.0**-self._step
        c_0 = max(4.0 * self.config.norm**2, 3.0)
        wanted = c_0 * (2 + (6 + 0.5 * e) * dimension) / e**2 * math.log(5 * len(self._left) / self._delta())
        total = max(math.ceil(wanted), fewest_samples(design.weights, self.config.epsilon))
        counts = np.zeros(self._own.arms, dtype=np.int64)
        counts[self._left] = apportion(design.weights, total)
        return counts

    def _delta(self) -> float:
        """Confidence of this round: shares 6 / (pi^2 k^2) add up to 1 over k = 1, 2, ..."""
        shares = (6 / math.pi**2) ** 2 / ((self._stage + 1) * self._step) ** 2
        return self.config.delta / self.context.agents * shares

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Least squares within the span of the arms that are left; drop, and move to the next stage when it is time."""
        self.pulled(counts)
        left = pairs_of(self._own.gram[np.ix_(self._left, self._left)], 1)
        estimates = left.least_squares(counts[None, self._left], means[None, self._left])[0]
        self._left = [self._left[place] for place in self._kept(estimates)]
        self._step += 1
        self._end_stages()
        if len(self._left) == 1:
            self.stop(self._left[0])
        self.round += 1
        return []

    def _end_stages(self) -> None:
        while 1 < len(self._left) <= max(1, int(self._dimension) >> self._stage):
            self._stage, self._step = self._stage + 1, 1

    def _kept(self, estimates: FloatArray) -> list[int]:
        return [int(place) for place in np.flatnonzero(estimates.max() - estimates < 2.0**-self._step)]


class IndPolyAlba(IndAlba):
    """One agent's PolyALBA: stage 0 looks for d arms."""

    def _kept(self, estimates: FloatArray) -> list[int]:
        if self._stage > 0:
            return super()._kept(estimates)
        order = np.argsort(-estimates, kind="stable")
        ahead = estimates[order[0]] - estimates[order[self._dimension]] >= 2.0**-self._step
        return sorted(order[: self._dimension].tolist()) if ahead else list(range(len(estimates)))


ALGORITHM = Algorithm(
    name="ind_alba",
    agent=IndAlba,
    server=None,
    config=AlbaConfig,
    summary="Every agent finds its best arm alone, with G-optimal designs that halve the dimension.",
    reference="Tao et al. 2018, ALBA; baseline IndALBA of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("tao2018best", "du2023collaborative"),
)

POLY = Algorithm(
    name="ind_poly_alba",
    agent=IndPolyAlba,
    server=None,
    config=AlbaConfig,
    summary="Every agent finds d good arms alone, then the best of them by ALBA.",
    reference="Du et al. 2021, PolyALBA; baseline IndPolyALBA of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("du2021combinatorial", "du2023collaborative"),
)
