"""What notices that the rewards of an agent's arms are no longer what they were."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from statistics import NormalDist
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import hold_to
from coband.simulator.scenario_errors import BrokenOff


class Watch(ABC):
    """Watches the pulls of one agent, from one restart to the next."""

    def __init_subclass__(cls) -> None:
        hold_to(cls, Watch)

    @abstractmethod
    def changed(self, x: FloatArray, reward: float) -> bool:
        """Take note of a pull of arm x (d,), and say whether rewards have changed."""


class BaseDetector(Config):
    """How an agent notices a change."""

    @abstractmethod
    def watch(self, dimension: int) -> Watch:
        """What watches an agent from a restart on; arms have so many coordinates."""


class Badness(BaseDetector):
    """The share of late rewards outside of their confidence bounds (dLinUCB, Wu et al. 2018, algorithm 1).

    A ridge regression on the pulls that fitted, V = lam I + sum x x^T and theta = V^(-1) b, expects the reward of arm x
    within x^T theta +- (beta ||x||_(V^-1) + epsilon) with

        beta = sqrt(lam) norm + noise sqrt(2 log(1 / delta) + d log(1 + n / (lam d))),
        epsilon = noise Phi^(-1)(1 - delta / 2),

    n: pulls that fitted. There is a change when at least the share delta + sqrt(log(1 / delta_share) / (2 m)) of the
    last m = min(window, all) rewards since the last restart is outside. Rewards must be linear in x: others are outside
    without a change.
    """

    kind: Literal["badness"]
    noise: float = Field(gt=0)
    """Standard deviation of the rewards' noise."""
    norm: float = Field(default=1.0, ge=0)
    """Largest norm of the hidden parameter."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter."""
    window: int = Field(default=50, ge=1)
    """Pulls of which the share is taken (the paper's tau)."""
    delta: float = Field(default=0.05, gt=0, lt=1)
    """Probability with which a reward that has not changed is outside."""
    delta_share: float = Field(default=0.05, gt=0, lt=1)
    """Probability with which the share exceeds its bound without a change, at one pull (the paper's delta_2)."""

    @model_validator(mode="after")
    def _notices(self) -> Badness:
        if self.bound(self.window) > 1.0:
            raise ValueError(
                f"with window(={self.window}) and delta_share(={self.delta_share}) no change is ever noticed: a "
                f"share of {self.bound(self.window):.2f} would have to be outside; give a larger window or delta_share"
            )
        return self

    def bound(self, count: int) -> float:
        """The share of so many rewards that is a change when it is outside."""
        return self.delta + math.sqrt(math.log(1.0 / self.delta_share) / (2.0 * count))

    def watch(self, dimension: int) -> Watch:
        return _Residuals(self, dimension)


class _Residuals(Watch):
    """The rewards of one agent against what its pulls so far let expect."""

    def __init__(self, config: Badness, dimension: int) -> None:
        self._config = config
        self._inverse = np.eye(dimension) / config.lam
        self._theta = np.zeros(dimension)
        self._fitted = 0
        self._outside = deque[bool](maxlen=config.window)
        self._epsilon = config.noise * NormalDist().inv_cdf(1.0 - config.delta / 2.0)

    def changed(self, x: FloatArray, reward: float) -> bool:
        config, u = self._config, self._inverse @ x
        variance, residual = float(x @ u), reward - float(x @ self._theta)
        if variance < 0.0:
            raise BrokenOff(f"agents.restart: lam(={config.lam}) is lost beside the pulls; give a larger lam.")
        growth = len(x) * math.log1p(self._fitted / (config.lam * len(x)))
        spread = math.sqrt(2.0 * math.log(1.0 / config.delta) + growth)
        beta = math.sqrt(config.lam) * config.norm + config.noise * spread
        outside = abs(residual) > beta * math.sqrt(variance) + self._epsilon
        self._outside.append(outside)
        if not outside:
            gain = u / (1.0 + variance)
            self._theta = self._theta + residual * gain
            self._inverse = self._inverse - np.outer(gain, u)
            self._fitted += 1
        count = len(self._outside)
        return sum(self._outside) >= config.bound(count) * count


DETECTORS: Kinds[type[BaseDetector]] = Kinds.of("detectors", BaseDetector, (Badness,))
"""The ways to notice a change that scenarios can name."""
Detector = Annotated[BaseDetector, DETECTORS.field()]
"""What a scenario says of `agents.restart`."""
