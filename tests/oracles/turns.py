"""Small random worlds, schedules, kernels and coins to run the oracles with."""

from dataclasses import dataclass

import numpy as np

from tests.oracles import Coins, Kernel
from tests.oracles.posterior import FloatArray


def gaussian(gamma: float) -> Kernel:
    """k(x, y) = exp(-gamma |x - y|^2)."""

    def kernel(X: FloatArray, Y: FloatArray) -> FloatArray:
        squares = np.sum((X[:, None, :] - Y[None, :, :]) ** 2, axis=2)
        return np.asarray(np.exp(-gamma * squares), dtype=np.float64)

    return kernel


def linear(X: FloatArray, Y: FloatArray) -> FloatArray:
    """k(x, y) = x^T y."""
    return np.asarray(X @ Y.T, dtype=np.float64)


def ball(rng: np.random.Generator, count: int, dimension: int) -> FloatArray:
    """Points uniform in the unit ball; shape (count, dimension)."""
    directions = rng.standard_normal((count, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radii = rng.random((count, 1)) ** (1 / dimension)
    return np.asarray(directions * radii, dtype=np.float64)


@dataclass(frozen=True)
class BallWorld:
    """Fresh arms from the unit ball each turn, f(x) = cos(3 x^T theta), Gaussian noise.

    Arms and noise depend on the seed, the agent and its turn number alone: every algorithm meets the same ones.
    """

    seed: int
    dimension: int = 3
    count: int = 6
    noise: float = 0.1

    def rewards(self, X: FloatArray) -> FloatArray:
        """f at the rows of X."""
        theta = ball(np.random.default_rng([self.seed, 0]), 1, self.dimension)[0]
        return np.asarray(np.cos(3 * X @ theta), dtype=np.float64)

    def arms(self, agent: int, turn: int) -> FloatArray:
        return ball(np.random.default_rng([self.seed, 1, agent, turn]), self.count, self.dimension)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        f = self.rewards(self.arms(agent, turn))
        noise = self.noise * np.random.default_rng([self.seed, 2, agent, turn]).standard_normal()
        return float(f[arm] + noise), float(f.max() - f[arm])


class TableWorld:
    """The same few arms every turn, so that points repeat; row i of ``points`` pays ``rewards[i]``, without noise."""

    def __init__(self, points: list[list[float]], rewards: list[float]) -> None:
        self.points = np.array(points, dtype=np.float64)
        self.means = np.array(rewards, dtype=np.float64)

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self.points

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return float(self.means[arm]), float(self.means.max() - self.means[arm])


def rounds(agents: int, turns: int) -> list[list[int]]:
    """Every agent in every step."""
    return [list(range(agents)) for _ in range(turns)]


def coins(seed: int) -> Coins:
    """Private streams by agent; a call starts the agent's stream from its beginning."""
    return lambda agent: np.random.default_rng([seed, 3, agent])
