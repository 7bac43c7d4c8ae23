"""Discounted DisLinUCB: D-LinUCB (Russac et al. 2019) on pulls of all agents, exchanged as by DisLinUCB (Wang et al.
2020); a weight for every pull that a node knows.
"""

from typing import Any

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import FloatArray

Pulls = list[tuple[FloatArray, float, float]]  # x, y, weight


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    d, gamma = world.arms(0, 1).shape[1], config.gamma
    server: Pulls = []
    synchronised: list[Pulls] = [[] for _ in range(agents)]
    new: list[Pulls] = [[] for _ in range(agents)]

    for step in turns:
        triggered = []
        for i in sorted(step):
            x, y, _ = out.act(world, i, discounted(synchronised[i] + new[i], config.lam, d), config.alpha)
            synchronised[i] = older(synchronised[i], gamma)
            new[i] = [*older(new[i], gamma), (x, y, 1.0)]
            before, now = (matrix(pulls, config.lam, d, 1) for pulls in (synchronised[i], synchronised[i] + new[i]))
            gain = np.linalg.slogdet(now)[1] - np.linalg.slogdet(before)[1]
            if len(new[i]) * gain > config.threshold:
                triggered.append(i)
        if not triggered:
            continue
        out.rounds += 1
        for i in triggered:
            out.send("sync_request", i, SERVER, 0)
        for i in range(agents):
            out.send("sync_start", SERVER, i, 0)
        for i in range(agents):
            out.send("upload", i, SERVER, 2 * d * d + d + 1)
        server = older(server, gamma ** (sum(len(pulls) for pulls in new) / agents))
        for i in range(agents):
            server, new[i] = server + new[i], []
        for i in range(agents):
            synchronised[i] = server
            out.send("model", SERVER, i, 2 * d * d + d)

    out.models = [discounted(old + own, config.lam, d) for old, own in zip(synchronised, new, strict=True)]
    return out


def older(pulls: Pulls, factor: float) -> Pulls:
    return [(x, y, factor * weight) for x, y, weight in pulls]


def matrix(pulls: Pulls, lam: float, d: int, power: int) -> FloatArray:
    """lam I + sum weight^power x x^T."""
    V = lam * np.eye(d)
    for x, _, weight in pulls:
        V = V + weight**power * np.outer(x, x)
    return V


def discounted(pulls: Pulls, lam: float, d: int) -> Any:
    """x^T theta and the square root of x^T V^-1 V~ V^-1 x, with theta = V^-1 sum weight y x."""
    V, V_tilde, b = matrix(pulls, lam, d, 1), matrix(pulls, lam, d, 2), np.zeros(d)
    for x, y, weight in pulls:
        b = b + weight * y * x

    def model(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        solved = [np.linalg.solve(V, x) for x in X]
        return np.array([z @ b for z in solved]), np.sqrt(np.array([z @ V_tilde @ z for z in solved]))

    return model
