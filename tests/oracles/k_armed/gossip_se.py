"""Gossip successive elimination (Liu, Qiu, Yang, Xu 2025, arXiv 2510.22811, Algorithm 1), with rewards.

Config: ``p`` (probability that an edge is present) and ``horizon``, from which L = K ln T / p and
tau = N ln T / (p lambda_2), lambda_2 the algebraic connectivity of the base graph, follow where ``L`` and ``tau`` are
None. W = I - Laplacian/N of the edges that are present.
"""

from math import log, sqrt

import numpy as np

from tests.oracles import Coins, Config, OracleRun, Turns, World
from tests.oracles.k_armed import Post, When, always, averaging_matrix, mixed, numbers, pull
from tests.oracles.local import Adjacency


def connectivity(adjacency: Adjacency) -> float:
    """The second smallest eigenvalue of the Laplacian N (I - W)."""
    W = np.array(averaging_matrix(adjacency, "n"))
    return float(np.linalg.eigvalsh(len(W) * (np.eye(len(W)) - W))[1])


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K, N = OracleRun(), world.arms(0, 1).shape[1], agents
    post, W = Post(out, agents, adjacency, present), averaging_matrix(adjacency, "n")
    ln = log(config.horizon)
    L: float = K * ln / config.p if config.L is None else config.L
    tau: float = N * ln / (config.p * connectivity(adjacency)) if config.tau is None else config.tau
    t, arms = [0] * agents, [numbers(world, v) for v in range(agents)]
    active = [list(arms[v]) for v in range(agents)]
    n, s, z = ([[0.0] * K for _ in range(agents)] for _ in range(3))

    def take_in(v: int) -> None:
        heard = dict(post.read(v))
        z[v] = mixed(W[v], v, z[v], {u: heard[u][0] for u in heard})
        for u in sorted(heard):
            for k in heard[u][1]:
                if k in active[v] and len(active[v]) > 1:
                    active[v].remove(k)

    def width(v: int, k: int) -> float:
        M = N * max(n[v][k] - L, 1)
        return sqrt(ln / M) + (tau + sqrt(N)) / M

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            take_in(v)
            k = min(active[v], key=lambda k, v=v: n[v][k])  # type: ignore[misc]
            before, t[v] = s[v][k] / max(n[v][k], 1), t[v] + 1
            s[v][k] += pull(out, world, v, t[v], arms[v].index(k))
            n[v][k] += 1
            z[v][k] += s[v][k] / n[v][k] - before
            low = max(z[v][k] - width(v, k) for k in active[v])
            active[v] = [k for k in active[v] if z[v][k] + width(v, k) >= low]
            dropped = sorted(set(arms[v]) - set(active[v]))
            post.tell(step, "mass", v, 2 * K, (list(z[v]), dropped))
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v], "z": z[v], "active": active[v]})
    return out
