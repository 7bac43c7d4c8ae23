"""Single-agent baselines of Dai et al. 2023 and Dubey and Pentland 2020, with dense solves: linear, kernel, neural; UCB
and Thompson sampling.

``coins(agent)``: linear sampling draws d normals a turn, the others one per arm; neural ones draw theta_0 before.
"""

from typing import Any

import numpy as np

from tests.oracles import Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.neural import enter, flat, gradient, initial, output, shaped, train
from tests.oracles.posterior import FloatArray, log_det


class Linear:
    def __init__(self, kind: str, config: Config, rng: np.random.Generator) -> None:
        self.kind, self.config, self.rng = kind, config, rng
        self.points: list[tuple[FloatArray, float]] = []

    def scores(self, arms: FloatArray) -> FloatArray:
        c, d = self.config, arms.shape[1]
        V = c.lam * np.eye(d) + sum((np.outer(x, x) for x, _ in self.points), start=np.zeros((d, d)))
        theta = np.linalg.solve(V, sum((y * x for x, y in self.points), start=np.zeros(d)))
        if self.kind == "lin_ts":
            root = np.linalg.cholesky(np.linalg.inv(V))
            return arms @ (theta + c.nu * root @ self.rng.standard_normal(d))
        if self.kind == "lin_ucb":
            radius = c.alpha
        else:
            ratio = np.sqrt(np.linalg.det(V)) / np.sqrt(np.linalg.det(c.lam * np.eye(d)))
            radius = c.sub_gaussian * np.sqrt(2 * np.log(ratio / c.delta)) + np.sqrt(c.lam) * c.norm
        return np.array([x @ theta + radius * np.sqrt(x @ np.linalg.solve(V, x)) for x in arms])

    def learn(self, arms: FloatArray, arm: int, y: float) -> None:
        self.points.append((arms[arm], y))


class Forgetful(Linear):
    """SW-UCB (Cheung et al. 2019) and D-LinUCB (Russac et al. 2019), with L = 1; a weight for every pull so far."""

    def scores(self, arms: FloatArray) -> FloatArray:
        c, d, n = self.config, arms.shape[1], len(self.points)
        if self.kind == "sw_lin_ucb":
            weights = [1.0 if n - place <= c.window else 0.0 for place in range(n)]
            information = d * np.log((1 + c.window / c.lam) / c.delta)
        else:
            weights = [c.gamma ** (n - 1 - place) for place in range(n)]
            seen = (1 - c.gamma ** (2 * n)) / (c.lam * d * (1 - c.gamma**2))
            information = 2 * np.log(1 / c.delta) + d * np.log(1 + seen)
        V, square, b = c.lam * np.eye(d), c.lam * np.eye(d), np.zeros(d)
        for weight, (x, y) in zip(weights, self.points, strict=True):
            V, square, b = V + weight * np.outer(x, x), square + weight**2 * np.outer(x, x), b + weight * y * x
        width = c.sub_gaussian * np.sqrt(information) + np.sqrt(c.lam) * c.norm if c.alpha == "theory" else c.alpha
        inner = V if self.kind == "sw_lin_ucb" else square
        solved = [np.linalg.solve(V, x) for x in arms]
        return np.array([z @ b + width * np.sqrt(z @ inner @ z) for z in solved])


class Kernelised(Linear):
    def __init__(self, kind: str, config: Config, rng: np.random.Generator, kernel: Kernel) -> None:
        super().__init__(kind, config, rng)
        self.kernel = kernel

    def scores(self, arms: FloatArray) -> FloatArray:
        c = self.config
        mean, sigma = np.zeros(len(arms)), np.zeros(len(arms))
        for index, x in enumerate(arms):
            own = float(self.kernel(x[None], x[None])[0, 0])
            if not self.points:
                sigma[index] = np.sqrt(own / c.lam)
                continue
            X, y = np.array([x for x, _ in self.points]), np.array([y for _, y in self.points])
            k = self.kernel(X, x[None])[:, 0]
            solved = np.linalg.solve(self.kernel(X, X) + c.lam * np.eye(len(X)), k)
            mean[index], sigma[index] = solved @ y, np.sqrt((own - k @ solved) / c.lam)
        if self.kind == "kernel_ts":
            return mean + c.nu * sigma * self.rng.standard_normal(len(arms))
        if self.kind == "igp_ucb":  # its sigma is not divided by sqrt(lam); below lam = 1 R is
            gain = 0.5 * log_det(self.points, self.kernel, c.lam)
            R = c.sub_gaussian if c.lam >= 1 else c.sub_gaussian / np.sqrt(c.lam)
            beta = c.norm + R * np.sqrt(2 * (gain + 1 + np.log(1 / c.delta)))
            return mean + beta * np.sqrt(c.lam) * sigma
        return mean + c.alpha * sigma


class Neural(Linear):
    def __init__(self, kind: str, config: Config, rng: np.random.Generator, dimension: int) -> None:
        super().__init__(kind, config, rng)
        self.like = initial(config, dimension, rng)
        self.theta = flat(self.like)
        self.U = config.lam * np.eye(len(self.theta))

    def scores(self, arms: FloatArray) -> FloatArray:
        c, layers = self.config, shaped(self.theta, self.like)
        values = np.array([output(layers, enter(x, c), c) for x in arms])
        squares = []
        for x in arms:
            g = gradient(layers, enter(x, c))
            squares.append(c.lam * (g @ np.linalg.solve(self.U, g)))
        sigma = c.nu * np.sqrt(squares)
        return values + sigma * (self.rng.standard_normal(len(arms)) if self.kind == "neural_ts" else 1.0)

    def learn(self, arms: FloatArray, arm: int, y: float) -> None:
        c = self.config
        x = enter(arms[arm], c)
        g = gradient(shaped(self.theta, self.like), x)
        self.U = self.U + (np.diag(g * g) if c.diagonal else np.outer(g, g))
        self.points.append((x, y))
        if len(self.points) <= c.train_until:
            self.theta = train(self.theta, self.like, self.points, c)


def run(kind: str, turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    out, dimension = OracleRun(), world.arms(0, 1).shape[1]

    def learner(agent: int) -> Any:
        if kind.startswith("neural"):
            return Neural(kind, config, coins(agent), dimension)
        if kind in ("kernel_ucb", "kernel_ts", "igp_ucb"):
            return Kernelised(kind, config, coins(agent), kernel)
        return (Forgetful if hasattr(config, "window") or hasattr(config, "gamma") else Linear)(
            kind, config, coins(agent)
        )

    learners = [learner(agent) for agent in range(agents)]
    for step in turns:
        for agent in sorted(step):
            own, seen = learners[agent], {}

            def model(arms: FloatArray, own: Any = own, seen: Any = seen) -> tuple[FloatArray, FloatArray]:
                seen["arms"] = arms
                return own.scores(arms), np.zeros(len(arms))

            _, y, _ = out.act(world, agent, model, 0.0)
            own.learn(seen["arms"], out.pulls[-1][2], y)
    return out
