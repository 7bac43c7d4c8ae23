"""IndPeaceFB and IndUniformFB: every agent spends its budget alone; baselines of paper 003, appendix A.

IndPeaceFB follows Katz-Samuels, Jain, Karnin, Jamieson 2020, "An Empirical Process Approach to the Union Bound:
Practical Algorithms for Combinatorial and Linear Bandits", fixed-budget Peace: a number of rounds known beforehand,
floor(T/R) samples each; after each the arms are sorted by least squares and the longest prefix is kept whose complexity
is at most half. Simplified: complexity and design are the max-norm ones, min_lambda max ||phi - phi'||^2_{A^-1},
in place of the expected supremum of a Gaussian process (which they bound it by, up to a logarithm of the arms). The
authors' public experiment plans two rounds at least, pools the samples of all rounds and drops nothing from two arms;
paper 003, whose Algorithm 2 is modelled on this one, does none of it, nor do we.

IndUniformFB pulls all arms equally often, once, and answers with the largest mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.agents.ind_rage import NEEDS
from coband.agents.metrics import PURE_EXPLORATION
from coband.agents.pure_exploration import FixedBudgetConfig, PureExplorationAgent, affordable, rounds_of
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import SILENT, Algorithm
from coband.simulator.core.node import NodeContext, Outbox, UnsupportedScenario
from coband.simulator.maths.exploration.design import apportion
from coband.simulator.maths.exploration.pairs import EQUAL


class IndPeaceFB(PureExplorationAgent):
    """One agent's fixed-budget Peace."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FixedBudgetConfig = context.config
        self._own = self.pairs.of(self.index)
        self.alive = np.ones((1, self._own.arms), dtype=np.bool_)
        self.planned = rounds_of(self._complexity(range(self._own.arms)), EQUAL)
        affordable(self.config.budget, self.request)

    def _complexity(self, arms: Sequence[int]) -> float:
        return self._own.omega(arms, 0.0)

    def request(self) -> IntArray:
        """The design for the arms that are alive."""
        design = self._own.design(self.alive, 0.0)
        total = self.config.budget // self.planned
        counts: IntArray = self._own.allot(design, total, self.alive, 0.0, self.config.epsilon)[0]
        return counts

    def observe_batch(self, counts: IntArray, means: FloatArray) -> Outbox:
        """Sort by least squares and keep the longest prefix of at most half the complexity."""
        self.pulled(counts)
        estimates = self._own.least_squares(counts[None], means[None])[0]
        kept = np.flatnonzero(self.alive[0])
        ordered = [int(arm) for arm in kept[np.argsort(-estimates[kept], kind="stable")]]
        limit = 0.5 * self._complexity(sorted(ordered)) * (1.0 + EQUAL)
        while len(ordered) > 1 and self._complexity(sorted(ordered)) > limit:
            ordered.pop()
        self.alive[0] = False
        self.alive[0, ordered] = True
        if len(ordered) == 1 or self.round == self.planned:
            self.stop(ordered[0])
        self.round += 1
        return []


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
        """The arm with the largest mean."""
        self.pulled(counts)
        self.stop(int(np.argmax(means)))
        return []


PEACE = Algorithm(
    name="ind_peace_fb",
    agent=IndPeaceFB,
    server=None,
    config=FixedBudgetConfig,
    summary="Every agent spends its budget alone, halving the complexity of what is left in each round.",
    reference="Katz-Samuels et al. 2020, fixed-budget Peace; baseline IndPeaceFB of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("katzsamuels2020empirical", "du2023collaborative"),
)

UNIFORM = Algorithm(
    name="ind_uniform_fb",
    agent=IndUniformFB,
    server=None,
    config=FixedBudgetConfig,
    summary="Every agent spreads its budget evenly over its arms and takes the best mean.",
    reference="baseline IndUniformFB of paper 003",
    needs=NEEDS,
    counts=SILENT,
    metrics=PURE_EXPLORATION,
    cites=("du2023collaborative",),
)
