"""LinUCB (Li et al. 2010), OFUL (Abbasi-Yadkori et al. 2011) and LinTS (Agrawal and Goyal 2013), by one agent.
As printed: `tests/oracles/single_agent.py`. Next: `agent.py`.

All keep V = lam I + sum x x^T and theta = V^(-1) sum y x.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from coband.agents.alone.agent import EXPLORATION, Alone, single
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.linalg.matrices import definite
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression


class LinearConfig(Config):
    """Parameters of every linear bandit."""

    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""


class LinUcbConfig(LinearConfig):
    """Parameters of LinUCB."""

    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by x^T theta + alpha ||x||_(V^-1)."""


class OfulConfig(LinearConfig):
    """Parameters of OFUL."""

    delta: float = Field(default=0.05, gt=0, le=1)
    """The confidence sets hold for all turns with probability 1 - delta."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """R: the noise is R-sub-Gaussian."""
    norm: float = Field(default=1.0, ge=0)
    """S: bound on ||theta*||."""


class LinTsConfig(LinearConfig):
    """Parameters of LinTS."""

    nu: float = Field(default=1.0, ge=0)
    """Exploration: theta is drawn from N(theta_hat, nu^2 V^(-1))."""


class Linear(Alone):
    """Ridge regression on the agent's own data."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.ridge = RidgeRegression(context.dimension, context.config.lam)

    def learn(self, pull: Observations) -> None:
        """V += x x^T, b += y x."""
        self.ridge.update(pull)


class LinUCB(Linear):
    """A constant factor in front of the deviation."""

    def scores(self, arms: ArmSet) -> FloatArray:
        """x^T theta + radius ||x||_(V^-1)."""
        mean, variance = self.ridge.predict(arms)
        scores: FloatArray = mean + self.radius() * np.sqrt(variance)
        return scores

    def radius(self) -> float:
        alpha: float = self.context.config.alpha
        return alpha


class OFUL(LinUCB):
    """The self-normalised confidence radius."""

    def radius(self) -> float:
        """R sqrt(2 log(det(V)^(1/2) det(lam I)^(-1/2) / delta)) + sqrt(lam) S (Abbasi-Yadkori et al. 2011, thm. 2)."""
        config: OfulConfig = self.context.config
        spread = math.sqrt(max(0.0, self.ridge.log_det) - 2.0 * math.log(config.delta))
        return config.sub_gaussian * spread + math.sqrt(config.lam) * config.norm


class LinTS(Linear):
    """Thompson sampling."""

    def scores(self, arms: ArmSet) -> FloatArray:
        """x^T theta for theta = theta_hat + nu L z with L L^T = V^(-1), L lower triangular, z standard normal."""
        z = self.context.rng.standard_normal(self.context.dimension)
        root = definite(np.linalg.cholesky, self.ridge.inverse().dense())
        scores: FloatArray = arms.features @ (self.ridge.theta + self.context.config.nu * (root @ z))
        return scores


LIN_UCB = single(
    "lin_ucb",
    LinUCB,
    LinUcbConfig,
    "Linear UCB with a constant factor, every agent alone.",
    "Li et al. 2010; baseline of Dai et al. 2023 and Dubey and Pentland 2020",
    "li2010contextual",
)
OFUL_ENTRY = single(
    "oful",
    OFUL,
    OfulConfig,
    "Linear UCB with the self-normalised radius, every agent alone.",
    "Abbasi-Yadkori et al. 2011; baseline of Dubey and Pentland 2020",
    "abbasi2011improved",
)
LIN_TS = single(
    "lin_ts",
    LinTS,
    LinTsConfig,
    "Linear Thompson sampling, every agent alone.",
    "Agrawal and Goyal 2013; baseline of Dai et al. 2023",
    "agrawal2013thompson",
    search=EXPLORATION,
)
