"""IndRAGE and IndRAGE/V: every agent runs RAGE alone (Fiez, Jain, Jamieson, Ratliff 2019, "Sequential Experimental
Design for Transductive Linear Bandits", Algorithm 1); baselines of paper 003, section 6.

Rounds of an XY-optimal design over the agent's own arms, Pukelsheim rounding, ordinary least squares, elimination.
Simplified: samples per round and elimination are those of paper 003, Algorithm 1 (32 (2^r)^2 (1 + epsilon)^2 rho
log(2 n^2 V/delta_r) samples; an arm goes when its estimated gap is 2^-r or more), so that the comparison with
CoKernelFC shows the cooperation and not the constants; the confidence delta is shared out over the V agents. Fiez et
al. print 8 (2^t)^2 rho (1 + epsilon) log(|Z|^2/delta_t) with delta_t = delta/t^2 (their public code starts with 2^0),
and eliminate by the confidence width. A kernel enters through features with the same inner products, and there must be
fewer of them than samples.

IndRAGE/V is a yardstick and no algorithm: the same runs, with ``samples_per_agent`` divided by V.
"""

from __future__ import annotations

import numpy as np

from coband.agents.metrics import PURE_EXPLORATION
from coband.agents.pure_exploration import FixedConfidenceConfig, PureExplorationAgent, confident_samples
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.node import NodeContext, Outbox
from coband.simulator.maths.exploration.design import fewest_samples

NEEDS = Needs(reliable=False, problems=("pure_exploration",), schedules=("phases",))


class IndRage(PureExplorationAgent):
    """One agent's RAGE."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FixedConfidenceConfig = context.config
        self._own = self.pairs.of(self.index)
        self.alive = np.ones((1, self._own.arms), dtype=np.bool_)
        self._start: FloatArray | None = None

    def request(self) -> IntArray:
        """The design for the arms that are alive, and its samples."""
        design = self._own.design(self.alive, 0.0, self._start)
        self._start = design.weights
        delta, epsilon, arms = self.config.delta, self.config.epsilon, self._own.arms
        wanted = confident_samples(self.round, design.value, arms, self.context.agents, delta, epsilon)
        total = max(wanted, fewest_samples(design.weights, epsilon))
        counts: IntArray = self._own.allot(design, total, self.alive, 0.0, epsilon)[0]
        return counts

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Least squares, and elimination of arms with an estimated gap of 2^-r or more."""
        self.pulled(counts)
        estimates = self._own.least_squares(counts[None], means[None])[0]
        alive = self.alive[0]
        alive &= ~(estimates[alive].max() - estimates >= 2.0**-self.round)
        if alive.sum() == 1:
            self.stop(int(np.flatnonzero(alive)[0]))
        self.round += 1
        return []


class IndRageOverV(IndRage):
    """IndRage whose samples are divided by V."""

    def samples_used(self) -> float:
        """Samples divided by V."""
        return self.pulls / self.context.agents


ALGORITHM = Algorithm(
    name="ind_rage",
    agent=IndRage,
    server=None,
    config=FixedConfidenceConfig,
    summary="Every agent finds its best arm alone, with XY-optimal designs and least squares.",
    reference="Fiez et al. 2019, Algorithm 1 (RAGE); baseline IndRAGE of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("fiez2019sequential", "du2023collaborative"),
)

OVER_V = Algorithm(
    name="ind_rage_over_v",
    agent=IndRageOverV,
    server=None,
    config=FixedConfidenceConfig,
    summary="A yardstick: the samples of ind_rage divided by the number of agents.",
    reference="baseline IndRAGE/V of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("fiez2019sequential", "du2023collaborative"),
)
