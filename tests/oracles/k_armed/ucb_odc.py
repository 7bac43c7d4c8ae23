"""UCB with on-demand communication, after Chen et al. 2023 ("On-Demand Communication for Asynchronous Multi-Agent
Bandits"): a buffer and a demand for each pair of neighbours.

Config: ``threshold``, ``growth`` (1: constant), ``redemand`` None; the bound is that of UCB1 with ``alpha`` and ``sd``.
"""

from math import log

from tests.oracles import Coins, Config, OracleRun, Turns, World
from tests.oracles.k_armed import Post, When, always, numbers, pull, ucb
from tests.oracles.local import Adjacency


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K = OracleRun(), world.arms(0, 1).shape[1]
    post = Post(out, agents, adjacency, present)
    t = [0] * agents
    n, s = [[0] * K for _ in range(agents)], [[0.0] * K for _ in range(agents)]
    open_ = [dict.fromkeys(adjacency[v], True) for v in range(agents)]
    sent = [dict.fromkeys(adjacency[v], 0) for v in range(agents)]
    buffer = [{u: ([0] * K, [0.0] * K) for u in adjacency[v]} for v in range(agents)]

    def take_in(v: int) -> None:
        for u, (counts, sums) in post.read(v):
            open_[v][u] = True
            for k in range(K):
                n[v][k] += counts[k]
                s[v][k] += sums[k]

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            take_in(v)
            arms = numbers(world, v)
            place = ucb(world, v, arms, n[v], s[v], (2 * config.sd) ** 2 * config.alpha * log(max(sum(n[v]), 1)))
            t[v] += 1
            y = pull(out, world, v, t[v], place)
            for counts, sums in [(n[v], s[v]), *buffer[v].values()]:
                counts[arms[place]] += 1
                sums[arms[place]] += y
            for u in sorted(adjacency[v]):
                full = sum(buffer[v][u][0]) >= config.threshold * config.growth ** sent[v][u]
                if open_[v][u] and full and post.send(step, "totals", v, u, 2 * K, buffer[v][u]):
                    buffer[v][u], open_[v][u] = ([0] * K, [0.0] * K), False
                    sent[v][u] += 1
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v], "sent": sent[v], "open": open_[v]})
    return out
