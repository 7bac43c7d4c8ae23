"""Decentralized Thompson sampling for rewards from 0 to 1.
As printed: `tests/oracles/k_armed/dec.py`. Next: `averaging.py`.

"Bayesian Algorithms for Decentralized Stochastic Bandits" (Lalitha and Goldsmith 2020), for N agents:

1. Draw theta_k from Beta(a_k, b_k) for each arm, from a_k = b_k = 1 on, and pull the arm with the largest.
2. After the pull a += N y and b += N (1 - y) for this arm; a and b go to all neighbours, and are averaged with theirs.

More links need not help: on a complete graph all agents have one posterior, and commit to an arm together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coband.agents.k_armed.averaging import COUNTS, MESSAGES, NEEDS, Averaging, AveragingConfig
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.node import NodeContext


class DecTs(Averaging):
    """Thompson sampling from averaged parameters of Beta distributions."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.mass = np.ones((2, len(self.counts)))  # a and b

    def decide(self) -> int:
        return self.best(self.scores())

    def scores(self) -> FloatArray:
        """Step 1."""
        a, b = self.mass
        drawn: FloatArray = self.context.rng.beta(a, b)
        return drawn

    def pulled(self, arm: int, reward: float) -> None:
        agents, reward = self.context.agents, min(max(reward, 0.0), 1.0)  # noise and attacks may move it
        self.mass[0, arm] += agents * reward
        self.mass[1, arm] += agents * (1.0 - reward)


ALGORITHM = Algorithm(
    name="dec_ts",
    agent=DecTs,
    server=None,
    config=AveragingConfig,
    summary="K arms on a graph: Thompson sampling from running averages of Beta posteriors.",
    reference="Lalitha and Goldsmith 2020",
    needs=replace(NEEDS, unit_rewards=True),
    messages=MESSAGES,
    counts=COUNTS,
    cites=("lalitha2020bayesian",),
)
