"""Agents that send nothing: Thompson sampling for Bernoulli arms, and epsilon-greedy."""

import numpy as np

from tests.oracles import Coins, Config, OracleRun, Turns, World, best
from tests.oracles.k_armed import When, always, numbers, pull
from tests.oracles.local import Adjacency


def thompson_bernoulli(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    """Beta(1, 1) for each arm; a reward y adds y to a and 1 - y to b. One call ``beta(a, b)`` per turn."""
    out, coin, t = OracleRun(), [coins(v) for v in range(agents)], [0] * agents
    a = [[1.0] * len(numbers(world, v)) for v in range(agents)]
    b = [[1.0] * len(numbers(world, v)) for v in range(agents)]
    for acting in turns:
        for v in sorted(acting):
            place = best(world, v, coin[v].beta(np.array(a[v]), np.array(b[v])))
            t[v] += 1
            y = pull(out, world, v, t[v], place)
            a[v][place] += y
            b[v][place] += 1 - y
    out.state = [{"a": a[v], "b": b[v]} for v in range(agents)]
    return out


def epsilon_greedy(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    """With probability ``config.epsilon`` an arm drawn uniformly, else the best mean, arms never pulled first.

    ``epsilon: decay`` is min(1, c K / (d^2 t)) with t from 1 and K the number of offered arms (Auer et al. 2002,
    figure 3). One call ``random()`` per turn, and ``integers(K)`` where it is below epsilon.
    """
    out, coin, t = OracleRun(), [coins(v) for v in range(agents)], [0] * agents
    n = [[0] * len(numbers(world, v)) for v in range(agents)]
    s = [[0.0] * len(numbers(world, v)) for v in range(agents)]
    for acting in turns:
        for v in sorted(acting):
            t[v] += 1
            K, epsilon = len(n[v]), config.epsilon
            if epsilon == "decay":
                epsilon = min(1.0, config.c * K / (config.d**2 * t[v]))
            if coin[v].random() < epsilon:
                place = int(coin[v].integers(K))
            elif 0 in n[v]:
                place = n[v].index(0)
            else:
                place = best(world, v, [s[v][place] / n[v][place] for place in range(K)])
            n[v][place] += 1
            s[v][place] += pull(out, world, v, t[v], place)
    out.state = [{"n": n[v], "s": s[v]} for v in range(agents)]
    return out
