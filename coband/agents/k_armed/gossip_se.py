"""Gossip successive elimination: agents with means of their own look for the arm that is best on average over agents.
As printed: `tests/oracles/k_armed/gossip_se.py`. Next: `averaging.py`.

GSE (Liu, Qiu, Yang and Xu 2025, Algorithm 1), on a graph whose links come and go, each there with probability p. In
each round agent v

1. pulls the active arm that it has pulled least (the first of several);
2. z = sum_u W_vu z_u + (own mean now - own mean before), W = I - Laplacian / N of the links that are there;
3. width_k = sqrt(ln T / M_k) + (tau + sqrt N) / M_k, M_k = N max(n_k - L, 1), L = K ln T / p;
4. drops arm k if z_k + width_k is below the largest z - width of its active arms, and every arm that a neighbour has
   dropped; but never its last arm (ours). What is dropped keeps its z, which is still sent, with a flag for each arm.

T is the number of turns of each agent. Up to n_k = L + 1 widths stay as they are, so in the first K L pulls hardly any
arm is dropped. The paper's rewards are losses. It says nothing of delay and of lost copies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import known_turns
from coband.agents.k_armed.averaging import COUNTS, NEEDS, AveragedMeans, AveragingConfig
from coband.agents.messages.k_armed import Mass, MassAndDrops
from coband.simulator.arrays import BoolArray
from coband.simulator.core.algorithm import Algorithm, MessageSize
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.core.nodes.node import Address, NodeContext, Outbox
from coband.simulator.maths.graphs.averaging import Weights, averaging_matrix
from coband.simulator.metrics import Metric


class GossipSeConfig(AveragingConfig):
    """Parameters of GSE."""

    weights: Weights = Field(default="n")
    """What a link weighs: n 1 / N, as in the paper; max_degree, metropolis or neighbours."""
    p: float | None = Field(default=None, gt=0, le=1)
    """Probability that a link is there; null: that of `network.topology`, which is 1 unless its kind is redrawn."""
    tau: float | None = Field(default=None, ge=0)
    """Rounds of mixing; null: N ln(T) / (p times the algebraic connectivity of the graph with all its links). Published
    code has N ln(T) / p on a grid, which is less."""
    horizon: int | None = Field(default=None, ge=1)
    """T, turns of each agent; null: what the schedule gives."""


class GossipSe(AveragedMeans):
    """Successive elimination by averaged means."""

    noted: ClassVar[Mapping[str, str]] = {"eliminate": "number of the arm that is dropped"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: GossipSeConfig = context.config
        graph, agents, arms = context.graph, context.agents, len(self.counts)
        assert graph is not None
        log = math.log(known_turns(config.horizon, context))
        p = graph.p if config.p is None else config.p
        tau = agents * log / (p * _connectivity(graph)) if config.tau is None else config.tau
        self._log, self._bias, self._burn_in = log, tau + math.sqrt(agents), arms * log / p
        self.active = np.ones(arms, dtype=bool)

    def decide(self) -> int:
        """Step 1."""
        return int(np.where(self.active, self.counts, np.inf).argmin())

    def pulled(self, arm: int, reward: float) -> None:
        """Step 2, but for the averages, and steps 3 and 4, but for what neighbours have dropped."""
        super().pulled(arm, reward)
        M = self.context.agents * np.maximum(self.counts - self._burn_in, 1.0)
        width = np.sqrt(self._log / M) + self._bias / M
        z = self.mass[0]
        self.drop(z + width < np.max((z - width)[self.active]))

    def drop(self, arms: BoolArray) -> None:
        """Drop these arms (a mask), but for the last one."""
        for arm in (self.active & arms).nonzero()[0]:
            if self.active.sum() > 1:
                self.active[arm] = False
                self.note("eliminate", value=float(arm))

    def receive_all(self, messages: Sequence[tuple[Address, Any]]) -> Outbox:
        for _, message in messages:
            self.drop(message.dropped)
        return super().receive_all(messages)

    def message(self) -> Mass:
        return MassAndDrops(values=self.mass.copy(), dropped=~self.active)

    def report(self) -> dict[str, float | int]:
        return {"active_arms": int(self.active.sum())}


def _connectivity(graph: Graph) -> float:
    """The second smallest eigenvalue of the graph's Laplacian."""
    laplacian = graph.nodes * (np.eye(graph.nodes) - averaging_matrix(graph.adjacency, "n"))
    return float(np.linalg.eigvalsh(laplacian)[1]) if graph.nodes > 1 else 1.0


ALGORITHM = Algorithm(
    name="gossip_se",
    agent=GossipSe,
    server=None,
    config=GossipSeConfig,
    summary="K arms on a graph whose links come and go: successive elimination by averaged means.",
    reference="Liu et al. 2025, Algorithm 1",
    needs=replace(NEEDS, connected=True, horizon=True),
    messages=(MessageSize(MassAndDrops, "peer", "2 * k", "to all neighbours", due=True),),
    counts=COUNTS,
    metrics=(Metric("active_arms", "arms", "arms that are not dropped, on average over agents", aggregate="mean"),),
    cites=("liu2025gossip",),
)
