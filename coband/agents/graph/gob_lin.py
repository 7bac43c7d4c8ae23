"""GoB.Lin: linear bandits of agents whose tasks are alike where they are linked ("A Gang of Bandits", Cesa-Bianchi,
Gentile and Zappella 2013, figure 2; discussed in Dubey and Pentland 2020, section 6).
As printed: `tests/oracles/central.py`. Next: `central.py`, `tasks_posterior.py`, `messages/sharing.py`.

The original is central; `central` says how it runs on a graph. With the graph's Laplacian L and A = I + L, arm
x of agent v becomes phi = (A kron I_d)^(-1/2) (e_v kron x) of V d coordinates, and all agents together run one LinUCB
with M = I + sum phi phi^T and b = sum y phi. Since phi^T phi' = (A^(-1))_(v v') x^T x', this is ridge regression with
K_z = A^(-1), the linear kernel and lambda = 1, and is computed so. The graph is that of the network, known to all.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coband.agents.graph.central import CentralAgent, CentralConfig, central
from coband.agents.graph.local_agent import Groups
from coband.agents.graph.tasks_posterior import OnTasks
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.config import REWARD
from coband.simulator.maths.kernels.library import Linear
from coband.simulator.maths.posteriors.choose_multitask import Multitask, multitask


class GobConfig(CentralConfig):
    """Parameters of GoB.Lin."""

    width: Literal["practical", "theory"] = "practical"
    """Factor before the deviation: alpha sqrt(log(t + 1)) of the experiments, or figure 2's, from norm and noise."""
    norm: float = Field(default=1.0, ge=0)
    """L(u): bound on sqrt(sum ||u_v||^2 + sum over links ||u_v - u_v'||^2) of the agents' vectors, for ``theory``."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """sigma: the noise is sigma-sub-Gaussian, for ``theory``."""
    delta: float = Field(default=0.05, gt=0, le=1)
    """The bounds hold with probability 1 - delta, for ``theory``."""


class GobLin(CentralAgent):
    """LinUCB in the space of all agents."""

    knowledge: OnTasks

    def _knowledge(self, groups: Groups) -> OnTasks:
        table = self.context.sharing.get("gang", lambda: gang(self.graph.distances))
        return OnTasks(multitask(self._setting(), self.context.sharing, table))

    def _setting(self) -> Multitask:
        context = self.context
        return Multitask(
            kernel=Linear(),
            network=None,
            estimated=True,
            composition="product",
            lam=1.0,
            dimension=context.dimension,
            agents=context.agents,
            members=self.members,
            own=context.index,
            task=np.array([float(context.index)]),
            dictionary=None,
            domain=None,
            horizon=None,
        )

    def _factor(self) -> float:
        """alpha sqrt(log(t + 1)), or sigma sqrt(log(det(M) / delta)) + L(u)."""
        config: GobConfig = self.context.config
        if config.width == "practical":
            return super()._factor()
        log_det = max(0.0, self.knowledge.posterior.log_det)
        return config.sub_gaussian * math.sqrt(log_det - math.log(config.delta)) + config.norm


def gang(distances: IntArray) -> FloatArray:
    """(I + L)^(-1) (V, V), L the Laplacian of a graph with given distances (V, V)."""
    links = (distances == 1).astype(np.float64)
    A = np.diag(1.0 + links.sum(axis=0)) - links
    inverse: FloatArray = np.linalg.inv(A)
    return (inverse + inverse.T) / 2.0


ALGORITHM = central(
    "gob_lin",
    GobLin,
    GobConfig,
    "Linear UCB on a graph: one regression for all agents, whose tasks are alike where they are linked (GoB.Lin).",
    "Cesa-Bianchi, Gentile and Zappella 2013, figure 2; discussed in Dubey and Pentland 2020, section 6",
    "cesabianchi2013gang",
)
