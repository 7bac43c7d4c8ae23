"""SW-LinUCB (Cheung et al. 2019) and D-LinUCB (Russac et al. 2019), algorithms 1: linear bandits that forget.
As printed: `tests/oracles/single_agent.py`. Next: `lin_ucb.py`, `agent.py`.

Every agent learns from its own pulls alone; t counts its own turns.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coband.agents.alone.agent import Alone, single
from coband.agents.alone.lin_ucb import LinearConfig
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.linalg.matrices import definite
from coband.simulator.maths.linalg.quadratic_forms import quadratic
from coband.simulator.maths.posteriors.discounted import DiscountedSums
from coband.simulator.maths.posteriors.observations import Observations


class ForgettingConfig(LinearConfig):
    """Parameters of both; L = 1 in the papers' radii, a bound on the length of an arm."""

    alpha: Annotated[float, Field(ge=0)] | Literal["theory"] = "theory"
    """Exploration: the factor before the deviation; theory: the paper's beta."""
    delta: float = Field(default=0.05, gt=0, le=1)
    """For `theory`: a confidence set holds with probability 1 - delta."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """For `theory`: the noise is R-sub-Gaussian."""
    norm: float = Field(default=1.0, ge=0)
    """For `theory`: S, a bound on the length of theta."""


class SlidingConfig(ForgettingConfig):
    """Parameters of SW-LinUCB."""

    window: int = Field(default=1000, ge=1)
    """w: the pulls that count; the paper's is (d T)^(2/3) over (variation)^(2/3)."""


class DiscountedConfig(ForgettingConfig):
    """Parameters of D-LinUCB."""

    gamma: float = Field(default=0.999, gt=0, lt=1)
    """Weight of a pull after one more turn; the paper's is 1 - (variation / (d T))^(2/3)."""


class Forgetting(Alone):
    """theta = V^(-1) b, from sums in which old pulls weigh less."""

    def scores(self, arms: ArmSet) -> FloatArray:
        """x^T theta + beta times the deviation."""
        alpha = self.context.config.alpha
        width = self.beta() if alpha == "theory" else alpha
        mean, variance = self.predict(arms.features)
        return mean + width * np.sqrt(variance)

    @abstractmethod
    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x^T theta and the squared deviation for the rows of X (n, d), each (n,)."""

    @abstractmethod
    def beta(self) -> float:
        """The paper's radius at this turn."""

    def radius(self, information: float) -> float:
        """R sqrt(information) + sqrt(lam) S."""
        config: ForgettingConfig = self.context.config
        return config.sub_gaussian * math.sqrt(information) + math.sqrt(config.lam) * config.norm


class SlidingLinUCB(Forgetting):
    """V = lam I + sum x x^T and b = sum y x over the last w pulls (Cheung et al. 2019, algorithm 1)."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        dimension = context.dimension
        self.W, self.b = np.zeros((dimension, dimension)), np.zeros(dimension)
        self._window: deque[tuple[FloatArray, float]] = deque()

    def learn(self, pull: Observations) -> None:
        """The pull enters the window, and the oldest leaves a full one.

        After each w pulls the sums are added up afresh, so that rounding errors do not.
        """
        self._take(1.0, pull.features[0], float(pull.rewards[0]))
        self._window.append((pull.features[0], float(pull.rewards[0])))
        window: int = self.context.config.window
        if len(self._window) > window:
            self._take(-1.0, *self._window.popleft())
        if (self.unshared + 1) % window == 0:
            X = np.array([x for x, _ in self._window])
            self.W, self.b = X.T @ X, X.T @ np.array([y for _, y in self._window])

    def _take(self, sign: float, x: FloatArray, y: float) -> None:
        self.W += np.outer(sign * x, x)
        self.b += sign * y * x

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x^T theta and ||x||^2 in the norm of V^(-1)."""
        inverse = definite(np.linalg.inv, self.W + self.context.config.lam * np.eye(len(self.b)))
        return X @ (inverse @ self.b), quadratic(X, inverse)

    def beta(self) -> float:
        """R sqrt(d ln((1 + w L^2 / lam) / delta)) + sqrt(lam) S (algorithm 1; theorem 2)."""
        config: SlidingConfig = self.context.config
        return self.radius(self.context.dimension * math.log((1.0 + config.window / config.lam) / config.delta))


class DiscountedLinUCB(Forgetting):
    """V = lam I + sum gamma^(t-s) x x^T; V~ likewise with gamma^2 (Russac et al. 2019, algorithm 1)."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.sums = DiscountedSums.none(context.dimension)

    def learn(self, pull: Observations) -> None:
        """All sums are discounted, and the pull is added."""
        self.sums = self.sums.discounted(self.context.config.gamma).with_pull(pull.features[0], float(pull.rewards[0]))

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x^T theta and x^T V^(-1) V~ V^(-1) x."""
        return self.sums.predict(X, self.context.config.lam)

    def beta(self) -> float:
        """R sqrt(2 ln(1/delta) + d ln(1 + L^2 (1 - gamma^(2 t)) / (lam d (1 - gamma^2)))) + sqrt(lam) S.

        With t pulls before (Russac et al. 2019, theorem 1).
        """
        config, d = self.context.config, self.context.dimension
        seen = -math.expm1(2.0 * self.unshared * math.log(config.gamma)) / (1.0 - config.gamma**2)
        return self.radius(-2.0 * math.log(config.delta) + d * math.log1p(seen / (config.lam * d)))


SLIDING = single(
    "sw_lin_ucb",
    SlidingLinUCB,
    SlidingConfig,
    "Linear UCB on the last pulls, every agent alone: for worlds that drift.",
    "Cheung et al. 2019, algorithm 1 (SW-UCB)",
    "cheung2019learning",
    rate="regret Õ(d T/√min(w, T/N)) for a theta that stays (Cheung et al. 2019, theorem 3)",
    search={"window": "20..5000"},
)
DISCOUNTED = single(
    "discounted_lin_ucb",
    DiscountedLinUCB,
    DiscountedConfig,
    "Linear UCB with discounted pulls, every agent alone: for worlds that drift.",
    "Russac et al. 2019, algorithm 1 (D-LinUCB)",
    "russac2019weighted",
    rate="regret Õ(d √(N T (1 - (T/N) log γ))) for a theta that stays (Russac et al. 2019, theorem 2)",
    search={"gamma": "0.9..0.9999"},
)
