"""What agents of FedUCB (Dubey and Pentland 2020) have in common, with a server or without: a linear model from what is
shared and from their own pulls, whose sums they release under differential privacy."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coband.agents.common.parameters import known_turns
from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import REWARD, Config
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.core.nodes.own_noise import OwnNoise, Spent
from coband.simulator.maths.linalg.quadratic_forms import quadratic
from coband.simulator.maths.private_sums import Calibration, PrivateSums


class PrivateConfig(Config):
    """Parameters of FedUCB, with a server or without."""

    epsilon: float = Field(default=1.0, gt=0)
    """All that an agent sends is (epsilon, delta)-differentially private for each pull."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """With this probability the promise of epsilon may fail."""
    noise: Literal["paper", "exact"] = "paper"
    """paper: its sigma, many times what epsilon needs; exact: the least that keeps epsilon."""
    points: float = Field(default=1.0, gt=0)
    """L: longer arms are shortened to it before they are counted."""
    rewards: Annotated[float, REWARD] = Field(default=1.0, gt=0)
    """B: rewards are cut to -B and B before they are counted."""
    threshold: float = Field(default=1.0, ge=0)
    """The paper's D: a synchronisation is due when (t - t_last) * (gain in log det) reaches it."""
    alpha: Annotated[float, Field(ge=0)] | Literal["theory"] = "theory"
    """Exploration: arms are chosen by x^T theta + alpha ||x||_(V^-1); theory: the paper's beta."""
    confidence: float = Field(default=0.1, gt=0, lt=1)
    """The paper's alpha: confidence sets and bounds of the noise hold with probability 1 - confidence."""
    sub_gaussian: Annotated[float, REWARD] = Field(default=0.1, ge=0)
    """For `theory`: the noise of rewards is sub-Gaussian."""
    norm: float = Field(default=1.0, ge=0)
    """For `theory`: S, a bound on ||theta||."""
    horizon: int | None = Field(default=None, ge=1)
    """T, the most turns of an agent, of which each may be sent; null: those that the schedule gives every agent."""

    def calibration(self, context: NodeContext, estimators: int = 1) -> Calibration:
        """The noise of an agent's sums, each of every so manieth turn."""
        releases = max(1, -(-known_turns(self.horizon, context) // estimators))
        sizes = self.epsilon, self.delta, self.points, self.rewards, self.confidence
        return Calibration(context.dimension, releases, *sizes, self.noise == "exact")

    def radius(self, noise: Calibration, agents: int, log_det: float) -> float:
        """R sqrt(2 log(2 / alpha) + log det V - d log(M rho_min)) + M S sqrt(rho_max) + M kappa, or alpha itself."""
        if self.alpha != "theory":
            return self.alpha
        information = log_det - noise.dimension * math.log(agents * noise.shift)
        spread = math.sqrt(max(0.0, information) + 2.0 * math.log(2.0 / self.confidence))
        return self.sub_gaussian * spread + agents * (self.norm * math.sqrt(3.0 * noise.shift) + noise.kappa)


ROUNDING = 1e-9
State = tuple[int, FloatArray]
"""A number of own pulls, and [W | b] of them."""


class Estimator:
    """theta = V^(-1) b from what is shared and an agent's own pulls; matrices [W | b] of (d, d + 1).

    Attributes:
        own: all own pulls.
        known: those of them that are in what is shared.
        privatiser: releases their sums.
        clipped: own pulls that were clipped.
    """

    def __init__(self, config: PrivateConfig, noise: Calibration, agents: int, rng: np.random.Generator) -> None:
        self._config, self._noise, self._agents = config, noise, agents
        self.privatiser, self.clipped = PrivateSums(noise, rng), 0
        self.own: State = 0, np.zeros((noise.dimension, noise.dimension + 1))
        self._told, self._sent = 0, np.empty(0)
        self.follow(agents * noise.shift * np.eye(noise.dimension, noise.dimension + 1), self.own)

    def follow(self, shared: FloatArray, known: State) -> None:
        """Go on with [S | s] of a synchronisation, and the own pulls that are in it.

        An S with less than the promised M rho_min, damaged on its way or by chance, is shifted up to that.
        """
        least, lacking = float(np.linalg.eigvalsh(shared[:, :-1])[0]), self._agents * self._noise.shift
        if least < (1.0 - ROUNDING) * lacking:
            shared = shared + (lacking - least) * np.eye(*shared.shape)
        self._shared, self.known = shared, known
        self._log_det = float(np.linalg.slogdet(shared[:, :-1])[1])

    @property
    def fresh(self) -> int:
        """Own pulls since the newest synchronisation."""
        return self.own[0] - self.known[0]

    @property
    def _sums(self) -> FloatArray:
        """[V | b]."""
        return self._shared + self.own[1] - self.known[1]

    def scores(self, X: FloatArray) -> FloatArray:
        """x^T theta + beta ||x||_(V^-1)."""
        V, b = self._sums[:, :-1], self._sums[:, -1]
        inverse: FloatArray = np.asarray(np.linalg.inv(V), dtype=np.float64)
        log_det = float(np.linalg.slogdet(V)[1]) if self._config.alpha == "theory" else 0.0
        width = self._config.radius(self._noise, self._agents, log_det)
        scores: FloatArray = X @ (inverse @ b)
        return scores + width * np.sqrt(quadratic(X, inverse))

    def learn(self, x: FloatArray, y: float) -> float:
        """Count a pull, clipped; (t - t_last) (log det(V + M (rho_max - rho_min) I) - log det S)."""
        c, length = self._config, float(np.linalg.norm(x))
        self.clipped += length > c.points or abs(y) > c.rewards
        x, y = x * (c.points / max(length, c.points)), max(-c.rewards, min(c.rewards, y))
        self.own = self.own[0] + 1, self.own[1] + np.outer(x, np.append(x, y))
        V = self._sums[:, :-1] + 2.0 * self._agents * self._noise.shift * np.eye(len(x))
        return self.fresh * (float(np.linalg.slogdet(V)[1]) - self._log_det)

    def release(self) -> tuple[FloatArray, FloatArray]:
        """W and b of the own pulls with noise; without new pulls those of before."""
        if self.own[0] > self._told or not self._sent.size:
            self._told, self._sent = self.own[0], self.privatiser.release(self.own[1])
        return np.ascontiguousarray(self._sent[:, :-1]), np.ascontiguousarray(self._sent[:, -1])


class TreeNoise(OwnNoise):
    """What a privatiser spends, and what the server sees of it."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration, self.epsilon, self.delta = calibration, calibration.epsilon, calibration.delta

    def spent(self, releases: int) -> Spent:
        """A pull is in as many nodes of the tree as the number of releases has binary digits."""
        return Spent(self._calibration.sigma / self._calibration.sensitivity, releases=releases.bit_length())

    def see(self, rng: np.random.Generator, releases: int, canary: bool) -> list[float]:
        """The entries of W and b that a pull at the limits, along the first axis, is in."""
        c = self._calibration
        privatiser, sums = PrivateSums(c, rng), np.zeros((c.dimension, c.dimension + 1))
        sums[0, 0], sums[0, -1] = canary * c.points**2, canary * c.points * c.rewards
        return [float(found[0, at]) for found in map(privatiser.release, [sums] * releases) for at in (0, -1)]
