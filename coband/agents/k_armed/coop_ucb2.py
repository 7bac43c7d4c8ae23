"""Coop-UCB2: upper confidence bounds from running averages of counts and sums of rewards.
As printed: `tests/oracles/k_armed/coop_ucb2.py`. Next: `averaging.py`.

"Distributed cooperative decision-making in multiarmed bandits: Frequentist and Bayesian algorithms" (Landgren,
Srivastava and Leonard 2016), with t counted from 0 and N agents:

1. Turns 0 .. K-1: arm t. Later the arm with the largest
   s/n + sigma sqrt((2 gamma / G) (n + f(t-1)) / (N n) ln(t-1) / n), G = 1 - eta^2 / 16, f(t) = sqrt(ln t).
2. After the pull n += 1 and s += reward for this arm; n and s are sent to all neighbours, and averaged with theirs.

n and s are averages over agents and not sums, which is why N stands in the denominator; a part of what cooperation
gains comes from this N alone, so compare with `ucb1`, too. The paper says nothing of delay and loss. Where values come
D whole rounds late, averages lose pulls: if everybody pulls an arm r times a round, its average count grows by
r / (1 + (1 - a) D) a round, where a is the agents' weight of themselves; so agents explore too long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field

from coband.agents.k_armed.averaging import COUNTS, MESSAGES, NEEDS, Averaging, AveragingConfig
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.metrics import Metric


class CoopUcb2Config(AveragingConfig):
    """Parameters of coop-UCB2."""

    sigma: float = Field(default=0.5, ge=0)
    """Sub-Gaussian standard deviation of the rewards; 0.5 holds for rewards from 0 to 1."""
    gamma: float = Field(default=2.9, ge=0)
    """Exploration; above 1 in the theorem, 2.9 in published code."""
    eta: float = Field(default=2.0, gt=0, lt=4)
    """In G = 1 - eta^2 / 16; of sigma, gamma and eta only sigma^2 gamma / G matters."""


class CoopUcb2(Averaging):
    """Upper confidence bounds of averaged counts and sums."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.mass = np.zeros((2, len(self.counts)))  # n and s

    def scores(self, mass: FloatArray | None = None) -> FloatArray:
        """Step 1, by its own mass or by those (..., 2, K) of agents at the same turn."""
        mass = self.mass if mass is None else mass
        n, s = mass[..., 0, :], mass[..., 1, :]
        before = math.log(max(self.turns - 1, 1))  # of t - 1, where this is turn t, counted from 0
        factor = 2.0 * self.config.gamma / (1.0 - self.config.eta**2 / 16.0) * before / self.context.agents
        scores: FloatArray = (s + self.config.sigma * np.sqrt(factor * (n + math.sqrt(before)))) / n
        return scores

    @classmethod
    def decide_together(cls, agents: Sequence[Self]) -> list[int]:
        arms, turn = len(agents[0].counts), agents[0].turns
        if turn < arms or any(agent.turns != turn for agent in agents):
            return super().decide_together(agents)
        scores = agents[0].scores(np.array([agent.mass for agent in agents]))
        return cls.best_together(agents, scores, [arms] * len(agents))

    def pulled(self, arm: int, reward: float) -> None:
        self.mass[0, arm] += 1.0
        self.mass[1, arm] += reward

    def report(self) -> dict[str, float | int]:
        return {"averaged_pulls": float(self.mass[0].sum())}


ALGORITHM = Algorithm(
    name="coop_ucb2",
    agent=CoopUcb2,
    server=None,
    config=CoopUcb2Config,
    summary="K arms on a graph: upper confidence bounds from running averages of counts and sums.",
    reference="Landgren et al. 2016, coop-UCB2",
    needs=NEEDS,
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(
        Metric(
            "averaged_pulls",
            "pulls",
            "pulls that the averages of all agents amount to; all, where nothing is late or lost",
        ),
    ),
    cites=("landgren2016distributed",),
    search={"gamma": "0.1..4"},
)
