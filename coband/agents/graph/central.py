"""Algorithms of one recommender that sees all users, run by agents on a graph that tell each other their pulls.

In the originals ("A Gang of Bandits", Cesa-Bianchi, Gentile and Zappella 2013; "Online Clustering of Bandits", Gentile,
Li and Zappella 2014) one program is told every user, arm and reward, and chooses for all users, one user a round. A
graph has no such server. Instead every agent sends each pull, as <t, v, x, y>, by the LOCAL service to all within
``hops`` links, by default to everybody, and runs the original algorithm on what has reached it.

* On a complete graph without delays this is the original algorithm, with the users of a round one after the other: all
  choose by what was known before the round.
* On other graphs the data of an agent h links away are h - 1 trials older, as in Dubey and Pentland 2020.
* Communication has the closed form of flooding: d + 3 scalars for every transmission.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coband.agents.graph.coop_config import Hops
from coband.agents.graph.coop_kernel_ucb import COUNTS, REACH
from coband.agents.graph.local_agent import LocalAgent
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.metrics import Metric


class CentralConfig(Config):
    """Parameters of all of them."""

    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by w^T x + alpha sqrt(x^T M^(-1) x log(t + 1)), t - 1 the pulls that are known."""
    hops: Hops = "diameter"
    """How many links far pulls are told; diameter: to everybody, half_diameter: half as far."""


class CentralAgent(LocalAgent):
    """Runs an algorithm of all users on what has reached it."""

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest upper confidence bound, from the first turn on."""
        self.trial += 1
        self._learn()
        mean, variance = self.knowledge.predict(arms)
        return self.best(mean + self._factor() * np.sqrt(variance))

    def _factor(self) -> float:
        """The factor before the deviation: alpha sqrt(log(t + 1)), the bound that both papers use in experiments."""
        alpha: float = self.context.config.alpha
        return alpha * float(np.sqrt(np.log(self.knowledge.observations + 2.0)))


def central(
    name: str,
    agent: type[CentralAgent],
    config: type[CentralConfig],
    summary: str,
    reference: str,
    cite: str,
    *own: Metric,
) -> Algorithm:
    """The registry's entry of an algorithm."""
    return Algorithm(
        name=name,
        agent=agent,
        server=None,
        config=config,
        summary=summary,
        reference=reference,
        needs=Needs(topologies=("graph",), reliable=False),
        messages=(MessageSize(Pull, "peer", "d + 3", due=True),),
        counts=COUNTS,
        metrics=(*REACH, *own),
        cites=(cite,),
    )
