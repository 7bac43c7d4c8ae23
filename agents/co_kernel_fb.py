"""CoKernelFB: "Collaborative Pure Exploration in Kernel Bandit" (paper 003), Algorithm 2 (appendix C.4), fixed budget.

Deviations from the printed text: solver and ROUND as in ``agents.co_kernel_fc``; where arms are left after the R
rounds (the paper's conditions exclude it) the one with the largest last estimate is the answer. With ``allocation:
individual`` (CoKernelFB-IndAlloc) each agent spreads floor(T/R) samples over its own arms; R and the elimination stay.
"""

from __future__ import annotations

import numpy as np

from coband.agents.co_kernel import COUNTS, MESSAGES, CoKernelAgent, CoKernelConfig
from coband.agents.metrics import PURE_EXPLORATION
from coband.agents.pure_exploration import FixedBudgetConfig, affordable, rounds_of
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.node import NodeContext
from coband.simulator.maths.exploration.design import Design
from coband.simulator.maths.exploration.pairs import EQUAL


class CoKernelFBConfig(FixedBudgetConfig, CoKernelConfig):
    """Parameters of Algorithm 2."""


class CoKernelFB(CoKernelAgent):
    """A number of rounds known beforehand, each of which halves the dimension of what is left."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: CoKernelFBConfig = context.config
        # Line 2: R = ceil(log2 omega(xi, X)), N = floor(T V / R).
        self.planned = rounds_of(self._omega(range(len(self.pairs.gram))), EQUAL)
        whose = 1 if config.allocation == "individual" else context.agents
        self._samples = config.budget * whose // self.planned
        self._answer = 0
        affordable(config.budget, lambda: self._allocation(self.alive[:1] if self._apart else self.alive))

    def _omega(self, arms: range | list[int]) -> float:
        key = ("omega", tuple(arms))
        return self.context.sharing.get(key, lambda: self.pairs.omega(arms, self.shared.xi))

    def samples(self, design: Design) -> int:
        """The same number in every round."""
        return self._samples

    def eliminate(self, estimates: FloatArray) -> None:
        """Lines 11-13: of the arms sorted by estimate, the longest prefix with omega <= omega(B_v)/2."""
        for agent, (alive, estimated) in enumerate(zip(self.alive, estimates, strict=True)):
            kept = np.flatnonzero(alive)
            kept = kept[np.argsort(-estimated[kept], kind="stable")]
            if agent == self.index:
                self._answer = int(kept[0])
            if len(kept) > 1:
                alive[kept[self._prefix([agent * self.pairs.arms + int(arm) for arm in kept]) :]] = False

    def _prefix(self, ordered: list[int]) -> int:
        """Length of the longest prefix with omega <= omega(all)/2; omega grows with the set, so it is bisected."""
        limit = 0.5 * self._omega(sorted(ordered)) * (1.0 + EQUAL)
        low, high = 1, len(ordered)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._omega(sorted(ordered[:middle])) <= limit else (low, middle)
        return low

    def finished(self) -> bool:
        """Line 3: all rounds are over, or nobody has more than one arm left."""
        return self.round >= self.planned or not (self.alive.sum(axis=1) > 1).any()

    def chosen(self) -> int:
        """The first of the sorted arms."""
        return self._answer


ALGORITHM = Algorithm(
    name="co_kernel_fb",
    agent=CoKernelFB,
    server="coband.server.co_kernel:CoKernelServer",
    config=CoKernelFBConfig,
    summary="Agents with related tasks find their best arms within a budget of samples, exchanging means of arms.",
    reference="paper 003 (Collaborative Pure Exploration in Kernel Bandit), Algorithm 2",
    needs=Needs(problems=("pure_exploration",), schedules=("phases",)),
    messages=MESSAGES,
    counts=COUNTS,
    metrics=PURE_EXPLORATION,
    cites=("du2023collaborative",),
)
