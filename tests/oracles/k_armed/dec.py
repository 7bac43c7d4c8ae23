"""Decentralised Thompson sampling (Lalitha and Goldsmith 2020, arXiv 2010.10569) and Dec-UCB (Zhu and Liu 2021,
"Decentralized Multi-Armed Bandit Can Outperform Classic Upper Confidence Bound")."""

from math import log, sqrt

import numpy as np

from tests.oracles import Coins, Config, OracleRun, Turns, World, best
from tests.oracles.k_armed import Post, When, always, averaging_matrix, mixed, numbers, pull
from tests.oracles.local import Adjacency


def dec_ts(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    """Beta posteriors from (1, 1); the reward counts N times, then a and b are averaged. One call ``beta`` per turn."""
    out, K, N = OracleRun(), world.arms(0, 1).shape[1], agents
    post, W = Post(out, agents, adjacency, present), averaging_matrix(adjacency, config.weights)
    coin, t = [coins(v) for v in range(agents)], [0] * agents
    a, b = [[1.0] * K for _ in range(agents)], [[1.0] * K for _ in range(agents)]

    def take_in(v: int) -> None:
        heard = dict(post.read(v))
        a[v] = mixed(W[v], v, a[v], {u: heard[u][0] for u in heard})
        b[v] = mixed(W[v], v, b[v], {u: heard[u][1] for u in heard})

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            take_in(v)
            arms = numbers(world, v)
            place = best(world, v, coin[v].beta(np.array([a[v][k] for k in arms]), np.array([b[v][k] for k in arms])))
            t[v] += 1
            y = pull(out, world, v, t[v], place)
            a[v][arms[place]] += N * y
            b[v][arms[place]] += N * (1 - y)
            post.tell(step, "mass", v, 2 * K, (list(a[v]), list(b[v])))
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"a": a[v], "b": b[v]})
    return out


def dec_ucb(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    """z is a running average of the agents' own means. ``config.weights``: neighbours | metropolis.

    The initialisation (each offered arm once, z its reward) hears nothing; the first message follows its last pull.
    An arm that has fallen K pulls behind the most eager agent that was heard of is pulled first. What neighbours had
    before a pull is taken in after the choice.
    """
    out, K = OracleRun(), world.arms(0, 1).shape[1]
    post, W = Post(out, agents, adjacency, present), averaging_matrix(adjacency, config.weights)
    coin, t = [coins(v) for v in range(agents)], [0] * agents
    n, s = [[0] * K for _ in range(agents)], [[0.0] * K for _ in range(agents)]
    z, m = [[0.0] * K for _ in range(agents)], [[0] * K for _ in range(agents)]

    def take_in(v: int) -> None:
        heard = dict(post.read(v))
        if t[v] >= len(numbers(world, v)):
            z[v] = mixed(W[v], v, z[v], {u: heard[u][0] for u in heard})
            m[v] = [max([m[v][k]] + [heard[u][1][k] for u in heard]) for k in range(K)]

    def choice(v: int, arms: list[int]) -> int:
        if t[v] < len(arms):
            return t[v]
        behind = [place for place, k in enumerate(arms) if n[v][k] <= m[v][k] - K]
        if behind:
            return behind[coin[v].integers(len(behind))]
        c = 4 / 3 if config.weights == "neighbours" else 3 / (len(adjacency[v]) + 1)
        return best(world, v, [z[v][k] + sqrt(c * log(t[v]) / n[v][k]) for k in arms])

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            arms = numbers(world, v)
            place = choice(v, arms)
            take_in(v)
            k, t[v] = arms[place], t[v] + 1
            before = s[v][k] / n[v][k] if n[v][k] else 0.0
            s[v][k] += pull(out, world, v, t[v], place)
            n[v][k] += 1
            m[v][k] = max(m[v][k], n[v][k])
            z[v][k] += s[v][k] / n[v][k] - before
            if t[v] >= len(arms):
                post.tell(step, "mass", v, 2 * K, (list(z[v]), list(m[v])))
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v], "z": z[v], "m": m[v]})
    return out
