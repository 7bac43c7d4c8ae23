"""LinUCB and OFUL, every agent alone (paper 004, "Kernel Methods for Cooperative Multi-Agent Contextual Bandits",
section 5; Li et al. 2010; Abbasi-Yadkori et al. 2011)."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from simulator.core.algorithm import Algorithm, Needs
from simulator.core.config import Config
from simulator.core.message import Message
from simulator.core.node import Address, Agent, Arms, Outbox, Setting
from simulator.maths.primal import RidgeRegression


class LinConfig(Config):
    """Parameters of LinUCB."""

    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by x.theta + alpha ||x||_(V^-1)."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""


class OfulConfig(Config):
    """Parameters of OFUL."""

    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
    norm: float = Field(default=1.0, ge=0)
    """S: a bound on the norm of theta."""
    sub_gaussian: float = Field(default=0.1, ge=0)
    """R: the noise is R-sub-Gaussian."""
    delta: float = Field(default=0.05, gt=0, le=1)
    """The confidence ellipsoid holds with probability 1 - delta."""


class LinUCB(Agent):
    """Ridge regression on the agent's own pulls: V = lambda I + sum x x^T, theta = V^(-1) sum x y."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.ridge = RidgeRegression(setting.dimension, setting.config.lam)

    def radius(self) -> float:
        """The factor on ||x||_(V^-1): alpha."""
        alpha: float = self.setting.config.alpha
        return alpha

    def choose(self, arms: Arms) -> int:
        """The arm with the largest upper confidence bound."""
        mean, variance = self.ridge.moments(arms.features)
        arm = int(np.argmax(mean + self.radius() * np.sqrt(variance)))
        self._point = arms.features[arm]
        return arm

    def observe(self, arm: int, reward: float) -> Outbox:
        """Add the pull; say nothing."""
        self.ridge.add(self._point[None], np.array([reward]))
        self.unshared += 1
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody ever writes."""
        raise AssertionError(f"LinUCB has no messages, yet got {message.kind!r}")


class Oful(LinUCB):
    """LinUCB with the radius R sqrt(2 ln(det(V)^(1/2) det(lambda I)^(-1/2) / delta)) + sqrt(lambda) S."""

    def radius(self) -> float:
        """Abbasi-Yadkori et al. 2011, theorem 2."""
        config: OfulConfig = self.setting.config
        log_ratio = 0.5 * self.ridge.log_det + math.log(1.0 / config.delta)
        return config.sub_gaussian * math.sqrt(2.0 * log_ratio) + math.sqrt(config.lam) * config.norm


NEEDS = Needs(topologies=("star", "graph"), reliable=False)

ALGORITHM = Algorithm(
    name="lin_ucb",
    agent=LinUCB,
    server=None,
    config=LinConfig,
    summary="Linear UCB with a constant alpha, every agent alone.",
    reference="Li et al. 2010; baseline of paper 004, section 5",
    needs=NEEDS,
    counts=("0 scalars",),
)

OFUL = Algorithm(
    name="oful",
    agent=Oful,
    server=None,
    config=OfulConfig,
    summary="Linear UCB with the self-normalised confidence radius, every agent alone.",
    reference="Abbasi-Yadkori et al. 2011; baseline of paper 004, section 5",
    needs=NEEDS,
    counts=("0 scalars",),
)
