"""CoKernelFC: "Collaborative Pure Exploration in Kernel Bandit" (Du et al. 2023), Algorithm 1, fixed confidence.
As printed: `tests/oracles/cope.py`. Next: `co_kernel.py`, `messages/exploration.py`, `server/exploration/co_kernel.py`.

Deviations from the printed text:

* line 4 is solved by a barrier method with a certified gap (``maths.exploration.design``), not by gradient descent;
* ROUND is efficient apportionment (Pukelsheim and Rieder 1992), which needs s (1 + epsilon)/epsilon samples for s arms
  instead of O(d/epsilon^2); equation 6 is verified in every round;
* line 13 uses N^(r) = the sum of all counts received; with ``allocation: individual`` (the paper's CoKernel-IndAlloc)
  an agent whose best arm is known pulls no more but goes on listening and sending.

Theorem 1, by which all answers are right with probability 1 - delta, has a condition on xi that depends on the hidden
means: sqrt(xi) max ||phi_i - phi_j||_{A(xi, lambda_1*)^-1} <= Delta_min / (32 (1 + epsilon) ||theta*||). The result
says whether it held (``theorem_1_holds``, 1 or 0) and how many times the right side the left one was
(``theorem_1_excess``). Where it does not hold estimates are biased towards 0, and few samples are not a merit.
"""

from __future__ import annotations

from coband.agents.exploration.co_kernel import COUNTS, MESSAGES, NEEDS, CoKernelAgent, CoKernelConfig
from coband.agents.exploration.pure_exploration import (
    DIFFICULTY,
    PURE_EXPLORATION,
    FixedConfidenceConfig,
    confident_samples,
)
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.maths.exploration.conditions import Difficulty, theorem_1_excess
from coband.simulator.maths.exploration.design import Design, fewest_samples
from coband.simulator.metrics import Metric


class CoKernelFCConfig(FixedConfidenceConfig, CoKernelConfig):
    """Parameters of Algorithm 1."""


class CoKernelFC(CoKernelAgent):
    """Rounds of ever more samples until every agent has one arm left."""

    def samples(self, design: Design) -> int:
        """Line 5: enough to tell gaps of 2^-(r+1) apart, and enough to round."""
        config: CoKernelFCConfig = self.context.config
        agents, arms = self.context.agents, self.pairs.arms
        wanted = confident_samples(self.round, design.value, arms, agents, config.delta, config.epsilon)
        return max(wanted, fewest_samples(design.weights, config.epsilon))

    def eliminate(self, estimates: FloatArray) -> None:
        """Line 14: drop x when some alive x' has an estimated gap of 2^-r or more over it."""
        for alive, estimated in zip(self.alive, estimates, strict=True):
            alive &= ~(estimated[alive].max() - estimated >= 2.0**-self.round)

    def finished(self) -> bool:
        """Line 16: every agent has one arm left."""
        return bool((self.alive.sum(axis=1) == 1).all())

    def conditions(self, means: FloatArray, found: Difficulty) -> dict[str, float | int]:
        excess = theorem_1_excess(self.pairs, found, self.shared.xi, self.context.config.epsilon)
        return {"theorem_1_holds": int(excess <= 1.0), "theorem_1_excess": excess}


THEOREM_1 = (
    Metric(
        "theorem_1_holds",
        "0 or 1",
        "whether Theorem 1's condition on xi holds for this instance",
        guarantee="Theorem 1 of Du et al. 2023",
    ),
    Metric("theorem_1_excess", "times", "left side of Theorem 1's condition on xi over its right side"),
)

ALGORITHM = Algorithm(
    name="co_kernel_fc",
    agent=CoKernelFC,
    server="coband.server.exploration.co_kernel:CoKernelServer",
    config=CoKernelFCConfig,
    summary="Agents with related tasks find their best arms with a given confidence, exchanging means of arms.",
    reference="Du et al. 2023 (Collaborative Pure Exploration in Kernel Bandit), Algorithm 1",
    needs=NEEDS,
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(*PURE_EXPLORATION, *DIFFICULTY, *THEOREM_1),
    cites=("du2023collaborative",),
    rate=(
        "Õ(ρ*/N) samples of each of N agents in O(log 1/Δ) communication rounds, for hardness ρ* and least gap Δ "
        "(Du et al. 2023, theorem 1)"
    ),
)
