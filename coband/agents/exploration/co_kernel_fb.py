"""CoKernelFB: "Collaborative Pure Exploration in Kernel Bandit" (Du et al. 2023), Algorithm 2, fixed budget.
As printed: `tests/oracles/cope.py`. Next: `co_kernel.py`, `messages/exploration.py`, `server/exploration/co_kernel.py`.

Deviations from the printed text: solver and ROUND as in `co_kernel_fc`; where arms are left after the R
rounds (the paper's conditions exclude it) the one with the largest last estimate is the answer. With ``allocation:
individual`` (CoKernelFB-IndAlloc) each agent spreads floor(T/R) samples over its own arms; R and the elimination stay.

As printed, R comes from omega over the pairs of all agents and the rounds end when every agent has one arm left. Where
tasks differ, omega over all is larger than over any agent's own pairs: more rounds are planned than take place, and
most of the budget is not spent. Two options, both ours, show what that costs: ``rounds: own_task`` plans for the
largest omega of any one agent's pairs, and ``leftover: spend`` keeps two arms at least until the last round, so that
all rounds take place. Means of former rounds are not used, as printed.

Theorem 2 has three conditions that depend on the hidden means: xi <= 1/(16 (1 + epsilon)^2 rho*(xi)^2 ||theta*||^2),
T >= max{rho*(xi), d(xi, lambda_1*)}/V log omega(xi, X), and omega(xi, {x*, x}) >= 1 for all suboptimal arms x. The
result says whether all held (``theorem_2_holds``, 1 or 0), with the largest xi and the smallest budget that they allow
(``theorem_2_largest_xi``, ``theorem_2_smallest_budget``).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from coband.agents.exploration.co_kernel import COUNTS, MESSAGES, NEEDS, CoKernelAgent, CoKernelConfig
from coband.agents.exploration.pure_exploration import (
    DIFFICULTY,
    PURE_EXPLORATION,
    FixedBudgetConfig,
    affordable,
    rounds_of,
)
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.exploration.conditions import Difficulty, theorem_2
from coband.simulator.maths.exploration.design import Design
from coband.simulator.maths.exploration.pairs import EQUAL
from coband.simulator.metrics import Metric


class CoKernelFBConfig(FixedBudgetConfig, CoKernelConfig):
    """Parameters of Algorithm 2."""

    rounds: Literal["all_pairs", "own_task"] = "all_pairs"
    """The number of rounds, log2 of omega: over the pairs of all agents, as printed, or the largest over the pairs of
    one agent."""
    leftover: Literal["keep", "spend"] = "keep"
    """keep: the rounds end when every agent has one arm left, as printed; spend: two arms at least stay until the last
    round, so that all rounds take place."""


class CoKernelFB(CoKernelAgent):
    """A number of rounds known beforehand, each of which halves the dimension of what is left."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: CoKernelFBConfig = context.config
        # Line 2: R = ceil(log2 omega(xi, X)), N = floor(T V / R).
        self.planned = rounds_of(self._largest_omega(config.rounds), EQUAL)
        whose = 1 if config.allocation == "individual" else context.agents
        self._samples = config.budget * whose // self.planned
        self._answer = 0
        affordable(config.budget, lambda: self._allocation(self.alive[:1] if self._apart else self.alive))

    def _largest_omega(self, over: str) -> float:
        n = self.pairs.arms
        if over == "own_task":
            return max(self._omega(range(agent * n, agent * n + n)) for agent in range(self.context.agents))
        return self._omega(range(len(self.pairs.gram)))

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
                length = self._prefix([agent * self.pairs.arms + int(arm) for arm in kept])
                spends = self.context.config.leftover == "spend" and self.round < self.planned
                alive[kept[max(length, 2 if spends else 1) :]] = False

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

    def conditions(self, means: FloatArray, found: Difficulty) -> dict[str, float | int]:
        config: CoKernelFBConfig = self.context.config
        asked = theorem_2(self.pairs, means, found, config.xi, config.epsilon)
        return {
            "theorem_2_holds": int(asked.hold(config.xi, config.budget)),
            "theorem_2_largest_xi": asked.largest_xi,
            "theorem_2_smallest_budget": asked.smallest_budget,
        }


THEOREM_2 = (
    Metric(
        "theorem_2_holds",
        "0 or 1",
        "whether Theorem 2's conditions hold for this instance",
        guarantee="Theorem 2 of Du et al. 2023",
    ),
    Metric("theorem_2_largest_xi", "", "largest regularisation xi that Theorem 2's conditions allow"),
    Metric("theorem_2_smallest_budget", "samples", "smallest budget of an agent that Theorem 2's conditions allow"),
)

ALGORITHM = Algorithm(
    name="co_kernel_fb",
    agent=CoKernelFB,
    server="coband.server.exploration.co_kernel:CoKernelServer",
    config=CoKernelFBConfig,
    summary="Agents with related tasks find their best arms within a budget of samples, exchanging means of arms.",
    reference="Du et al. 2023 (Collaborative Pure Exploration in Kernel Bandit), Algorithm 2",
    needs=NEEDS,
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(*PURE_EXPLORATION, *DIFFICULTY, *THEOREM_2),
    cites=("du2023collaborative",),
    rate=(
        "an error with probability O(N n² log ω exp(-T/(ρ* log ω))) in O(log ω) communication rounds, for N agents "
        "with n arms each, hardness ρ* and principal dimension ω (Du et al. 2023, theorem 2)"
    ),
)
