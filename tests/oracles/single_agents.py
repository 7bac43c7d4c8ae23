"""Kernel UCB, IGP-UCB, LinUCB and OFUL of one agent after another, by dense solves (paper 004, section 5; Valko et al.
2013; Chowdhury and Gopalan 2017; Li et al. 2010; Abbasi-Yadkori et al. 2011)."""

from typing import Any

import numpy as np

from tests.oracles import World
from tests.oracles.posterior import Kernel, exact, log_det


def run(
    rule: str, trials: int, agents: int, world: World, kernel: Kernel, config: Any
) -> list[tuple[int, int, int, float]]:
    """Pulls (agent, trial, arm, reward) in order of time."""
    pulls = []
    data: list[list[tuple[Any, float]]] = [[] for _ in range(agents)]
    for t in range(1, trials + 1):
        for v in range(agents):
            X = world.arms(v, t)
            if rule in ("kernel_ucb", "igp_ucb"):
                mean, deviation = exact(X, data[v], kernel, config.lam)
            else:
                V = config.lam * np.eye(X.shape[1]) + sum(np.outer(x, x) for x, _ in data[v])
                theta = np.linalg.solve(V, sum((x * y for x, y in data[v]), np.zeros(X.shape[1])))
                mean = X @ theta
                deviation = np.sqrt(np.array([x @ np.linalg.solve(V, x) for x in X]))
            if rule in ("kernel_ucb", "lin_ucb"):
                width = config.alpha
            elif rule == "igp_ucb":
                gain = 0.5 * log_det(data[v], kernel, config.lam)
                beta = config.norm + config.sub_gaussian * np.sqrt(2 * (gain + 1 + np.log(1 / config.delta)))
                width = beta * np.sqrt(config.lam)  # its sigma is not divided by sqrt(lam)
            else:
                ratio = np.sqrt(np.linalg.det(V)) / np.sqrt(config.lam ** X.shape[1])
                width = (
                    config.sub_gaussian * np.sqrt(2 * np.log(ratio / config.delta)) + np.sqrt(config.lam) * config.norm
                )
            arm = int(np.argmax(mean + width * deviation))
            y, _ = world.pull(v, t, arm)
            data[v].append((X[arm], y))
            pulls.append((v, t, arm, y))
    return pulls
