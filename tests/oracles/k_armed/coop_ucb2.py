"""coop-UCB2 (Landgren, Srivastava, Leonard 2016, "Distributed Cooperative Decision-Making in Multiarmed Bandits:
Frequentist and Bayesian Algorithms", CDC): running consensus on counts and sums.

Config: ``sigma`` (1 in the paper), ``eta`` (2), ``gamma`` (2.9), ``weights`` (max_degree), ``missing`` own | last |
reweigh. With ``last``, a neighbour's last message is used again until the next one; one never heard counts as ``own``.
"""

from math import log, sqrt

from tests.oracles import Coins, Config, OracleRun, Turns, World, best
from tests.oracles.k_armed import Post, When, always, averaging_matrix, mixed, numbers, pull
from tests.oracles.local import Adjacency


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K, N = OracleRun(), world.arms(0, 1).shape[1], agents
    post, W = Post(out, agents, adjacency, present), averaging_matrix(adjacency, config.weights)
    t = [0] * agents
    n, s = [[0.0] * K for _ in range(agents)], [[0.0] * K for _ in range(agents)]
    heard: list[dict[int, tuple[list[float], list[float]]]] = [{} for _ in range(agents)]

    def take_in(v: int) -> None:
        new = dict(post.read(v))
        heard[v] = {**heard[v], **new} if config.missing == "last" else new
        n[v] = mixed(W[v], v, n[v], {u: heard[v][u][0] for u in heard[v]}, config.missing)
        s[v] = mixed(W[v], v, s[v], {u: heard[v][u][1] for u in heard[v]}, config.missing)

    def score(m: float, mean: float, t: int) -> float:
        G, ln = 1 - config.eta**2 / 16, log(max(t - 1, 1))
        return mean + float(config.sigma) * sqrt(2 * config.gamma / G * (m + sqrt(ln)) / (N * m) * ln / m)

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            take_in(v)
            arms = numbers(world, v)
            if t[v] < len(arms):
                place = t[v]
            else:
                place = best(world, v, [score(n[v][k], s[v][k] / n[v][k], t[v]) for k in arms])
            t[v] += 1
            s[v][arms[place]] += pull(out, world, v, t[v], place)
            n[v][arms[place]] += 1
            post.tell(step, "mass", v, 2 * K, (list(n[v]), list(s[v])))
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v]})
    return out
