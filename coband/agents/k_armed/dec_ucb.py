"""Dec-UCB: agents average their means, and nobody falls far behind in pulls of any arm.
As printed: `tests/oracles/k_armed/dec.py`. Next: `averaging.py`.

"Decentralized Multi-Armed Bandit Can Outperform Classic Upper Confidence Bound" (Zhu and Liu 2021). For each arm an
agent has its number of pulls n_k, its mean x_k, z_k, which begins with the reward of the first pull, and m_k. d_v is
its number of neighbours, w_vu its weight of u, t the number of its own turns before this one.

1. Each arm once. Later: one of the arms with n_k <= m_k - K, drawn uniformly, if there are any; else the arm with the
   largest z_k + c_k, where c_k = sqrt(4 ln(t) / (3 n_k)) with ``weights: neighbours``, and
   sqrt(3 ln(t) / ((d_v + 1) n_k)) with others.
2. z_k = sum_u w_vu z_u,k + x_k(now) - x_k(before), and m_k is the largest of n_k(now) and all m_u,k, where z_u and m_u
   are what the agent and its neighbours had before this pull. So m_k gets to know the n_k of all agents, and
   a wrong one too large stays for good.

Only neighbours that were heard count; ``missing`` says what stands for the others in z_k. Nothing is sent before the
K-th pull, and nothing is taken in before the turn after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field

from coband.agents.k_armed.averaging import MESSAGES, NEEDS, SCALARS, AveragedMeans, AveragingConfig
from coband.agents.messages.k_armed import Mass
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.node import NodeContext, Outbox
from coband.simulator.maths.graphs.averaging import Weights


class DecUcbConfig(AveragingConfig):
    """Parameters of Dec-UCB."""

    weights: Weights = Field(default="neighbours")
    """What a link weighs: neighbours 1 / (1 + d_v), the paper's first rule; metropolis 1 / (1 + max(d_v, d_u)), its
    second; max_degree 1 / (1 + the largest degree); n 1 / N."""


class DecUcb(AveragedMeans):
    """Upper confidence bounds of averaged means."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.most = np.zeros(len(self.counts))  # m, but for the agent's own n
        self._factor = 4.0 / 3.0 if self.config.weights == "neighbours" else 3.0 / (len(self.neighbours) + 1)

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        """Step 1, then the averages of step 2."""
        chosen = cls.decide_together(agents)
        cls.mix(agents)
        return chosen

    def decide(self) -> int:
        """Step 1."""
        arms = len(self.counts)
        if self.turns < arms:
            return self.turns
        behind = (self.counts <= self.most - arms).nonzero()[0]
        if len(behind):
            return int(behind[self.context.rng.integers(len(behind))])
        return self.best(self.scores())

    def scores(self) -> FloatArray:
        scores: FloatArray = self.mass[0] + np.sqrt(self._factor * math.log(self.turns) / self.counts)
        return scores

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """As long as arms were never pulled, say nothing."""
        outbox = super().observe(arms, arm, reward)
        return outbox if self.turns >= len(self.counts) else []

    def values_heard(self) -> list[tuple[FloatArray, float]]:
        """Nothing, as long as the agent pulls each arm once."""
        first = self.turns < len(self.counts)
        if not first:
            self.most = np.max([self.most, *(message.values[1] for message in self.heard.values())], axis=0)
        found = super().values_heard()
        return [] if first else found

    def message(self) -> Mass:
        return Mass(values=np.concatenate([self.mass, np.maximum(self.most, self.counts)[None]]))


ALGORITHM = Algorithm(
    name="dec_ucb",
    agent=DecUcb,
    server=None,
    config=DecUcbConfig,
    summary="K arms on a graph: upper confidence bounds of averaged means, nobody far behind.",
    reference="Zhu and Liu 2021",
    needs=NEEDS,
    messages=MESSAGES,
    counts=(SCALARS,),
    cites=("zhu2021decentralized",),
)
