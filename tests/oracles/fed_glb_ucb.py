"""FedGLB-UCB (Li and Wang 2022): online Newton steps alone, distributed accelerated gradient descent together.

``OracleRun.gradient_rounds`` lists the gradient rounds of each synchronisation.
"""

from math import exp

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.dis_lin_ucb import linear
from tests.oracles.posterior import FloatArray


class Agent:
    def __init__(self, d: int, ridge: float) -> None:
        self.A, self.b = ridge * np.eye(d), np.zeros(d)
        self.A_last = self.A.copy()
        self.theta = np.zeros(d)
        self.data: list[tuple[FloatArray, float]] = []
        self.n_new = 0


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    out.gradient_rounds = []  # type: ignore[attr-defined]
    d = world.arms(0, 1).shape[1]
    c_mu = curvature(config)
    everyone = [Agent(d, config.lam / c_mu) for _ in range(agents)]
    theta_global = np.zeros(d)

    for step in turns:
        triggered = []
        for i in sorted(step):
            a = everyone[i]
            x, y, _ = out.act(world, i, linear(a.A, a.b), config.alpha)
            low, high = config.reward_range
            y = (y - low) / (high - low)
            a.data.append((x, y))
            a.n_new += 1
            a.A = a.A + np.outer(x, x)
            z = x @ a.theta
            a.b = a.b + z * x
            stepped = a.theta - np.linalg.solve(a.A, x) * (mu(z) - y) / c_mu
            a.theta = projected(stepped, a.A, config.radius)
            gain = np.linalg.slogdet(a.A)[1] - np.linalg.slogdet(a.A_last)[1]
            if a.n_new * gain >= config.threshold:
                triggered.append(i)
        if triggered:
            for i in triggered:
                out.send("sync_request", i, SERVER, 0)
            theta_global = synchronise(out, everyone, theta_global, config, d)

    out.models = [linear(a.A, a.b) for a in everyone]
    out.states = everyone  # type: ignore[attr-defined]
    return out


def mu(z: float) -> float:
    return 1 / (1 + exp(-z))


def curvature(config: Config) -> float:
    """c_mu = inf of mu' over [-S, S], unless it is given."""
    if config.c_mu is not None:
        return float(config.c_mu)
    return exp(-config.radius) * mu(config.radius) ** 2


def projected(theta: FloatArray, A: FloatArray, radius: float) -> FloatArray:
    """argmin over ||v|| <= S of (v - theta)^T A (v - theta): v = (A + nu I)^-1 A theta, nu by bisection."""
    if np.linalg.norm(theta) <= radius:
        return theta

    def at(nu: float) -> FloatArray:
        return np.asarray(np.linalg.solve(A + nu * np.eye(len(theta)), A @ theta))

    low, high = 0.0, 1.0
    while np.linalg.norm(at(high)) > radius:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
    return at(high)


def synchronise(out: OracleRun, everyone: list[Agent], theta: FloatArray, config: Config, d: int) -> FloatArray:
    """Accelerated gradient descent on F(theta) = 1/n sum l(x^T theta, y) + lam/(2n) ||theta||^2."""
    out.rounds += 1
    N = len(everyone)
    n = sum(len(a.data) for a in everyone)
    for i in range(N):
        out.send("sync_start", SERVER, i, 0)
    for i in range(N):
        out.send("upload", i, SERVER, d * d + 1)
    W = sum((np.outer(x, x) for a in everyone for x, _ in a.data), start=np.zeros((d, d)))
    largest = np.linalg.eigvalsh(W / n)[-1]
    L = (max(1.0, largest) if config.smoothness == "unit_ball" else largest) / 4 + config.lam / n
    tolerance = np.sqrt(2 * config.lam / n**3)
    y_previous, weight, rounds = theta, 1.0, 0  # Nesterov's lambda_1 = 1
    while True:
        rounds += 1
        gradient = config.lam * theta
        for i, a in enumerate(everyone):
            out.send("iterate", SERVER, i, d)
            for x, y in a.data:
                gradient = gradient + (mu(x @ theta) - y) * x
        for i in range(N):
            out.send("gradient", i, SERVER, d)
        gradient = gradient / n
        if np.linalg.norm(gradient) <= tolerance:
            break
        y_next = theta - gradient / L
        next_weight = (1 + np.sqrt(1 + 4 * weight**2)) / 2
        theta = y_next + (weight - 1) / next_weight * (y_next - y_previous)
        y_previous, weight = y_next, next_weight
        if rounds == config.max_rounds:
            theta = y_next
            break
    out.gradient_rounds.append(rounds)  # type: ignore[attr-defined]
    for i, a in enumerate(everyone):
        out.send("model", SERVER, i, d * d + d + 1)
        a.A = W + config.lam / curvature(config) * np.eye(d)
        a.A_last, a.b, a.theta, a.n_new = a.A, W @ theta, theta, 0
    return theta
