"""DDUCB (Martinez-Rubio, Kanade, Rebeschini 2019, "Decentralized Cooperative Stochastic Bandits", Algorithm 1), all
agents in rounds, one step of mixing per round.

Config: ``accelerated``, ``eta`` (2), ``eps`` (1/22), ``sd``, ``weights``, ``fresh`` (False). A table lists an
arm's rewards for each arm, then its pulls for each arm.
"""

from math import ceil, log, sqrt

import numpy as np

from tests.oracles import Coins, Config, OracleRun, Turns, World, best
from tests.oracles.k_armed import When, always, averaging_matrix, mixed, pull
from tests.oracles.local import Adjacency


def second_eigenvalue(W: list[list[float]]) -> float:
    """The second largest modulus; 0 where one step averages exactly."""
    moduli = [0.0, *sorted(abs(np.linalg.eigvals(np.array(W))))]
    return float(moduli[-2]) if moduli[-2] > 1e-9 else 0.0


def stage_length(config: Config, N: int, second: float) -> int:
    if second == 0:
        return 1
    if config.accelerated:
        return ceil(log(2 * N / config.eps) / sqrt(2 * log(1 / second)))
    return ceil(log(N / config.eps) / log(1 / second))


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K, N = OracleRun(), world.arms(0, 1).shape[1], agents
    W = averaging_matrix(adjacency, config.weights)
    second = second_eigenvalue(W)
    C = stage_length(config, N, second)
    alpha, beta, gamma, last = ([[0.0] * 2 * K for _ in range(agents)] for _ in range(4))
    s, r, c = (
        K,
        0,
        [1.0, 1 / second if second else 1.0],
    )  # turns in alpha, rounds of the stage, Chebyshev's T_r(1/second)

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            if step < K:
                place, table = step, beta[v]
            else:
                known = [x + (y / N if config.fresh else 0) for x, y in zip(alpha[v], gamma[v], strict=True)]
                widths = [sqrt(2 * config.eta * config.sd**2 * log(s) / (N * known[K + k])) for k in range(K)]
                place, table = best(world, v, [known[k] / known[K + k] + widths[k] for k in range(K)]), gamma[v]
            table[place] += pull(out, world, v, step + 1, place)
            table[K + place] += 1
            if step >= K:
                for u in sorted(adjacency[v]):
                    out.send("mixed", v, u, 2 * K + 2)
        if step < K:
            alpha = [[x / N for x in beta[v]] for v in range(agents)]
            continue

        averages = [mixed(W[v], v, beta[v], {u: beta[u] for u in adjacency[v]}) for v in range(agents)]
        if config.accelerated and second and r > 0:
            c.append(2 / second * c[r] - c[r - 1])
            a, b = 2 / second * c[r] / c[r + 1], c[r - 1] / c[r + 1]
            averages = [[a * averages[v][i] - b * last[v][i] for i in range(2 * K)] for v in range(agents)]
        last, beta, r = beta, averages, r + 1
        if r == C:
            for v in range(agents):
                old = alpha[v] if config.accelerated and step >= K + C else [0.0] * 2 * K
                alpha[v] = [x + y for x, y in zip(old, beta[v], strict=True)]
                kept = [0.0] * 2 * K if config.accelerated else beta[v]
                beta[v] = [x + y for x, y in zip(kept, gamma[v], strict=True)]
            gamma = [[0.0] * 2 * K for _ in range(agents)]
            s, r, c = N * (step + 1 - C), 0, c[:2]

    out.state = [{"alpha": alpha[v], "beta": beta[v], "gamma": gamma[v]} for v in range(agents)]
    return out
