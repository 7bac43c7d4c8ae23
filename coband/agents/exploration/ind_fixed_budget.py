"""IndPeaceFB and IndUniformFB: every agent spends its budget alone; baselines of Du et al. 2023, appendix A.
As printed: `tests/oracles/cope_alone.py`. Next: `pure_exploration.py`.

IndPeaceFB is fixed-budget Peace (Katz-Samuels, Jain, Karnin, Jamieson 2020, "An Empirical Process Approach to the Union
Bound: Practical Algorithms for Combinatorial and Linear Bandits"): a number R of rounds known beforehand, floor(T/R)
samples each; after each the arms are sorted by least squares and the longest prefix is kept whose complexity is at most
half. The defaults are the logic of the authors' public code:

* complexity: gamma, the square of the Gaussian width (``maths.exploration.pairs``), and the design that makes
  it small; R = ceil(max(log2 gamma, 2));
* pooled: estimates use the samples of all rounds;
* halving: rounded_up, the prefix is one of at most max(ceil(gamma/2), 1), and shorter than what there was;
* leftover: spend, all rounds take place: two arms at least stay until the last, when the estimate decides.

With ``complexity: max_norm`` it is min_lambda max ||phi - phi'||^2_{A^-1} instead, the principle dimension of
Du et al. 2023; R = ceil(log2 omega). With all four options at their other values this is CoKernelFB (Du et al. 2023,
Algorithm 2) for one agent without regularisation. Ours: gamma by fixed points instead of 1,000 random draws, and its
design to a stated accuracy instead of 500 steps of a stochastic gradient method; T - R floor(T/R) samples stay unspent,
as in the code.

IndUniformFB pulls all arms equally often, once, and answers with the largest estimate: by least squares over all
samples, as in the same public code, or by the arms' own means (``estimator: means``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from coband.agents.exploration.ind_rage import NEEDS
from coband.agents.exploration.pure_exploration import (
    PURE_EXPLORATION,
    FixedBudgetConfig,
    PureExplorationAgent,
    affordable,
    rounds_of,
)
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm
from coband.simulator.core.nodes.node import NodeContext, Outbox, UnsupportedScenario
from coband.simulator.maths.exploration.design import Design, apportion
from coband.simulator.maths.exploration.pairs import EQUAL


class IndPeaceConfig(FixedBudgetConfig):
    """Parameters of fixed-budget Peace."""

    complexity: Literal["gaussian_width", "max_norm"] = "gaussian_width"
    """gaussian_width: gamma, as Katz-Samuels et al. have it; max_norm: omega, as in Du et al. 2023's Algorithm 2."""
    pooled: bool = True
    """Whether estimates use the samples of all rounds so far, or those of the last one alone."""
    halving: Literal["rounded_up", "exact"] = "rounded_up"
    """Complexity of what is kept: at most half, rounded up to a whole number as in the authors' code, or exactly."""
    leftover: Literal["spend", "keep"] = "spend"
    """spend: two arms at least stay until the last round, so that all rounds take place; keep: the agent stops when one
    arm is left."""


class IndPeaceFB(PureExplorationAgent):
    """One agent's fixed-budget Peace."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: IndPeaceConfig = context.config
        self._own = self.pairs.of(self.index)
        self.alive = np.ones((1, self._own.arms), dtype=np.bool_)
        self.planned = self._rounds()
        self._counts = np.zeros(self._own.arms, dtype=np.int64)
        self._sums = np.zeros(self._own.arms)
        affordable(self.config.budget, self.request)

    @property
    def _by_width(self) -> bool:
        return self.config.complexity == "gaussian_width"

    def _rounds(self) -> int:
        complexity = self._complexity(list(range(self._own.arms)))
        if self._by_width:
            return math.ceil(max(math.log2(complexity), 2.0)) if complexity > 0 else 2
        return rounds_of(complexity, EQUAL)

    def _complexity(self, arms: list[int]) -> float:
        arms = sorted(arms)
        return self._own.gaussian_width(arms).value if self._by_width else self._own.omega(arms, 0.0)

    def _design(self) -> Design:
        if self._by_width:
            return self._own.gaussian_width(np.flatnonzero(self.alive[0]).tolist())
        return self._own.design(self.alive, 0.0)

    def request(self) -> IntArray:
        """The design for the arms that are alive."""
        total = self.config.budget // self.planned
        counts: IntArray = self._own.allot(self._design(), total, self.alive, 0.0, self.config.epsilon)[0]
        return counts

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Sort by least squares and keep the longest prefix of at most half the complexity."""
        self.pulled(counts)
        kept = np.flatnonzero(self.alive[0])
        ordered = [int(arm) for arm in kept[np.argsort(-self._estimates(counts, means)[kept], kind="stable")]]
        ordered = ordered[: self._prefix(ordered)]
        self.alive[0] = False
        self.alive[0, ordered] = True
        if self.round == self.planned or len(ordered) == 1:
            self.stop(ordered[0])
        self.round += 1
        return []

    def _estimates(self, counts: IntArray, means: FloatArray) -> FloatArray:
        """Least squares over this round or, pooled, over all rounds."""
        if self.config.pooled:
            self._counts = self._counts + counts
            self._sums = self._sums + counts * means
            counts, means = self._counts, self._sums / np.maximum(self._counts, 1)
        found: FloatArray = self._own.least_squares(counts[None], means[None])[0]
        return found

    def _prefix(self, ordered: list[int]) -> int:
        fewest = 2 if self.config.leftover == "spend" and self.round < self.planned else 1
        if len(ordered) <= fewest:
            return len(ordered)
        limit = 0.5 * self._complexity(ordered)
        if self.config.halving == "rounded_up":
            limit = max(math.ceil(limit * (1.0 - EQUAL)), 1)
        length = len(ordered) - 1
        while length > fewest and self._complexity(ordered[:length]) > limit * (1.0 + EQUAL):
            length -= 1
        return length


class IndUniformConfig(FixedBudgetConfig):
    """Parameters of uniform sampling."""

    estimator: Literal["least_squares", "means"] = "least_squares"
    """least_squares: over all samples, as in the public code of Katz-Samuels et al.; means: each arm's own mean."""


class IndUniformFB(PureExplorationAgent):
    """One agent that pulls all its arms equally often."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        if context.config.budget < self.pairs.arms:
            raise UnsupportedScenario(
                f"budget(={context.config.budget}) is too small for one pull of each of {self.pairs.arms} arms."
            )

    def request(self) -> IntArray:
        """The whole budget at once."""
        n = self.pairs.arms
        return apportion(np.full(n, 1.0 / n), self.context.config.budget)

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """The arm with the largest estimate."""
        self.pulled(counts)
        estimates = means
        if self.context.config.estimator == "least_squares":
            estimates = self.pairs.of(self.index).least_squares(counts[None], means[None])[0]
        self.stop(self.best(estimates))
        return []


PEACE = Algorithm(
    name="ind_peace_fb",
    agent=IndPeaceFB,
    server=None,
    config=IndPeaceConfig,
    summary="Every agent spends its budget alone, halving the complexity of what is left in each round.",
    reference="Katz-Samuels et al. 2020, fixed-budget Peace; baseline IndPeaceFB of Du et al. 2023",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("katzsamuels2020empirical", "du2023collaborative"),
)

UNIFORM = replace(
    PEACE,
    name="ind_uniform_fb",
    agent=IndUniformFB,
    config=IndUniformConfig,
    summary="Every agent spreads its budget evenly over its arms and takes the one of the best estimate.",
    reference="baseline IndUniformFB of Du et al. 2023",
    cites=("du2023collaborative",),
)
