"""CLUB: agents with close estimates make clusters that learn as one ("Online Clustering of Bandits", Gentile, Li and
Zappella 2014, figure 1; discussed in Dubey and Pentland 2020, section 1).
As printed: `tests/oracles/central.py`. Next: `central.py`, `tasks_posterior.py`, `messages/sharing.py`.

The original is central; `central` says how it runs on a graph. Here

* links are tested with the estimates after the pull, and with the radii of the paper's experiments,
  alpha_2 sqrt((1 + log(1 + T_i)) / (1 + T_i)), as arms are chosen by the bounds of its experiments;
* M_i begins with lam I; the paper has lam = 1. It has rewards in [-1, 1];
* the graph of agents, of which links are deleted, is complete in the beginning, as printed. The experiments begin with
  a random sparse graph to save time; ``start: links`` begins with the links of the network instead (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from coband.agents.graph.central import CentralAgent, CentralConfig, central
from coband.agents.graph.local_agent import Groups
from coband.agents.graph.tasks_posterior import Learnt
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.maths.posteriors.clustered_ridge import ClusteredRidge
from coband.simulator.metrics import Metric


class ClubConfig(CentralConfig):
    """Parameters of CLUB."""

    alpha_2: float = Field(default=1.0, ge=0)
    """Deletion of links: a larger value keeps agents together for longer."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
    start: Literal["complete", "links"] = "complete"
    """The graph whose links are deleted: all pairs of agents, or the links of the network."""


class Clusters(Learnt):
    """The clusters that an agent sees."""

    def __init__(self, links: BoolArray, dimension: int, config: ClubConfig, own: int) -> None:
        super().__init__()
        self.ridge = ClusteredRidge(links, dimension, config.lam, config.alpha_2)
        self._own = own

    def _take(self, pulls: Sequence[Pull]) -> None:
        numbers = np.array([pull.agent for pull in pulls], dtype=np.intp)
        points, rewards = np.array([pull.point for pull in pulls]), np.array([pull.reward for pull in pulls])
        self.ridge.update(numbers, points, rewards)

    def predict(self, arms: ArmSet) -> tuple[FloatArray, FloatArray]:
        """w^T x and x^T M^(-1) x of the own cluster at n arms, each (n,)."""
        return self.ridge.predict(self._own, arms.features)


class Club(CentralAgent):
    """LinUCB on the data of the own cluster."""

    knowledge: Clusters

    def _knowledge(self, groups: Groups) -> Clusters:
        config: ClubConfig = self.context.config
        distances = self.graph.distances
        links = np.ones_like(distances, dtype=np.bool_) if config.start == "complete" else distances == 1
        return Clusters(links, self.context.dimension, config, self.context.index)

    @property
    def pulls_in_model(self) -> int | None:
        """Not counted: only the pulls of the own cluster, as it is now, enter the estimate."""
        return None

    def report(self) -> dict[str, float | int]:
        """gamma and the number of clusters that agent 0 sees, reported by agent 0."""
        return {} if self.context.index else {**super().report(), "clusters": self.knowledge.ridge.clusters}


ALGORITHM = central(
    "club",
    Club,
    ClubConfig,
    "Linear UCB on a graph: agents whose estimates are close learn as one cluster (CLUB).",
    "Gentile, Li and Zappella 2014, figure 1; discussed in Dubey and Pentland 2020, section 1",
    "gentile2014online",
    Metric("clusters", "clusters", "clusters at the end, as agent 0 sees them"),
)
