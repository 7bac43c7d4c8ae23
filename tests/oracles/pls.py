"""PLS (Salgia and Zhao 2022): progressive learning and sharing, differences on grids that get finer.

``config`` holds ``C``, ``alpha_0``, ``beta_0``, ``sub_gaussian``, ``gamma``, ``gap`` and ``T`` (turns of an agent).
``coins``: an agent asks for ``random(d)`` at every upload, the server (-1) at every download.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.delb import spanning
from tests.oracles.fed_pe import design


@dataclass
class PlsRun(OracleRun):
    """Further: what all know in the end, epochs in which arms were exploited, and bits up and down."""

    theta: np.ndarray = field(default_factory=lambda: np.zeros(0))
    refined: int = 0
    up: int = 0
    down: int = 0


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> PlsRun:
    out, c, M = PlsRun(), config, agents
    streams, server = [coins(i) for i in range(agents)], coins(-1)
    X = [world.arms(i, 1) for i in range(agents)]
    d = X[0].shape[1]
    pi = [design([[(0, x) for x in own]], c.gap, [spanning(list(own))])[0] for own in X]
    theta = np.zeros(d)
    k, mu = 1, 0.0
    tau, R, B = 1 / (4 * math.sqrt(M)), 0.5, 1.5
    taken = [0] * agents

    def explored(k: int) -> int:
        return max(1, math.ceil(c.C * 4**k * d * math.log(max(2.0, M * math.log2(max(2, c.T))))))

    def orders(k: int) -> list[list[int]]:
        out = []
        for own in pi:
            share, order = 0.0, []
            for a, weight in enumerate(own):
                share += weight
                order += [a] * (math.floor(share * d * explored(k) + 1e-9) - len(order))
            out.append(order)
        return out

    order, rewards = orders(k), [[] for _ in range(agents)]
    sent: dict[int, np.ndarray] = {}
    # Of the exploitation: pulls left, arms, V, and the sum of (y - x . theta) x.
    left = [0] * agents
    local: list[tuple[list[int], np.ndarray, np.ndarray]] = [([], np.eye(d), np.zeros(d)) for _ in range(agents)]
    for step in turns:
        for i in sorted(step):
            exploiting = left[i] > 0
            if exploiting:
                arms, V, moment = local[i]
                inverse = np.linalg.inv(V)
                about = theta + inverse @ moment
                arm = max(arms, key=lambda a: X[i][a] @ about + c.gamma * math.sqrt(X[i][a] @ inverse @ X[i][a]))
            else:
                arm = order[i][len(rewards[i])]
            taken[i] += 1
            reward, regret = world.pull(i, taken[i], arm)
            out.pulls.append((i, taken[i], arm, reward, regret))
            x = X[i][arm]
            if exploiting:
                left[i] -= 1
                local[i] = (arms, V + np.outer(x, x), moment + (reward - x @ theta) * x)
                if not left[i]:
                    rewards[i] = []
                    order[i] = orders(k)[i]
                continue
            rewards[i].append(reward)
            if len(rewards[i]) == len(order[i]):
                V, moment = np.zeros((d, d)), np.zeros(d)
                for a, y in zip(order[i], rewards[i], strict=True):
                    V += np.outer(X[i][a], X[i][a])
                    moment += y * X[i][a]
                estimate = np.linalg.pinv(V, rcond=1e-9, hermitian=True) @ moment
                alpha = c.alpha_0 * c.sub_gaussian * math.sqrt(d / explored(k))
                sent[i], bits = quantised(estimate - theta, R + B, alpha, streams[i])
                out.up += bits
                out.send("estimate_levels", i, SERVER, d)
        if len(sent) < agents:
            continue
        mean = sum(sent[i] for i in range(agents)) / M
        change, bits = quantised(mean, B + tau, c.beta_0 * tau, server)
        out.down += agents * bits
        theta = theta + change
        for i in range(agents):
            out.send("model_levels", SERVER, i, d)
        out.rounds += 1
        sent = {}
        if not mu and np.linalg.norm(theta) >= 4 * tau:
            mu = float(np.linalg.norm(theta))
        out.refined += mu > 0
        t = math.floor(M * explored(k) ** 2 * mu**2)
        for i in range(agents):
            best = max(x @ theta for x in X[i])
            local[i] = ([a for a, x in enumerate(X[i]) if x @ theta >= best - 2 * tau], np.eye(d), np.zeros(d))
            left[i] = t
        k, tau, R = k + 1, tau / 2, R / 2
        B = 5 * tau
        if not t:
            order, rewards = orders(k), [[] for _ in range(agents)]
    out.theta = theta
    return out


def quantised(values: np.ndarray, r: float, error: float, stream: np.random.Generator) -> tuple[np.ndarray, int]:
    """Each number is rounded at random to one of the two nearest multiples of a step; bits by a unary code.

    The steps are r / ceil(r sqrt(d) / error), so that the whole vector is wrong by at most ``error``. A multiple m is
    sent as |m| ones, a zero, and a sign unless m = 0.
    """
    d = len(values)
    each_side = math.ceil(r * math.sqrt(d) / error)
    step = r / each_side
    found, bits = np.zeros(d), 0
    for j, coin in enumerate(stream.random(d)):
        place = min(max(values[j], -r), r) / step
        low = math.floor(place)
        m = low + 1 if coin < place - low else low
        found[j] = m * step
        bits += abs(m) + 1 + (m != 0)
    return found, bits
