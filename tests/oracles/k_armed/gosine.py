"""GosInE (Chawla, Sankararaman, Ganesh, Shakkottai 2020, "The Gossiping Insert-Eliminate Algorithm for Multi-Agent
Bandits", Algorithms 1 and 2).

Config: ``mode`` synchronous | asynchronous, ``growth`` (3), ``slack`` (0.5), ``alpha`` (4). Every agent is offered all
arms. Coins: the first length (asynchronous), then at the end of each phase the partner and the next length.
"""

from math import ceil, log, sqrt

from tests.oracles import Coins, Config, OracleRun, Turns, World, best
from tests.oracles.k_armed import When, always, numbers, pull
from tests.oracles.local import Adjacency


def run(
    turns: Turns, world: World, config: Config, coins: Coins, agents: int, adjacency: Adjacency, present: When = always
) -> OracleRun:
    out, K = OracleRun(), world.arms(0, 1).shape[1]
    coin, t, phase = [coins(v) for v in range(agents)], [0] * agents, [1] * agents
    n, s = [[0] * K for _ in range(agents)], [[0.0] * K for _ in range(agents)]
    now = [[0] * K for _ in range(agents)]  # pulls in this phase
    sticky = ceil(K / agents)
    held = [list(dict.fromkeys((v * sticky + i) % K for i in range(sticky + 2))) for v in range(agents)]
    most = [held[v][0] for v in range(agents)]

    def length(v: int) -> int:
        low: int = ceil(phase[v] ** config.growth) - ceil((phase[v] - 1) ** config.growth)
        if config.mode == "synchronous":
            return low
        return int(coin[v].integers(low, ceil((1 + config.slack) * low) + 1))

    def choice(v: int, arms: list[int]) -> int:
        for k in held[v]:
            if n[v][k] == 0:
                return arms.index(k)
        scores = [-float("inf")] * len(arms)
        for place, k in enumerate(arms):
            if k in held[v]:
                scores[place] = s[v][k] / n[v][k] + sqrt(config.alpha * log(t[v] + 1) / n[v][k])
        return best(world, v, scores)

    end = [length(v) for v in range(agents)]
    for step, acting in enumerate(turns):
        for v in sorted(acting):
            arms = numbers(world, v)
            place = choice(v, arms)
            t[v] += 1
            s[v][arms[place]] += pull(out, world, v, t[v], place)
            n[v][arms[place]] += 1
            now[v][arms[place]] += 1

        ended = [v for v in sorted(acting) if t[v] == end[v]]
        for v in ended:
            most[v] = max(held[v], key=lambda k, v=v: now[v][k])  # type: ignore[misc]
            U, L = held[v][-2:] if len(held[v]) > 1 else held[v] * 2
            if now[v][L] > now[v][U]:
                held[v][-2:] = [L, U]
            now[v] = [0] * K
        for v in ended:
            neighbours = sorted(adjacency[v])
            if neighbours:
                u = neighbours[coin[v].integers(len(neighbours))]
                if present(step, v, u):
                    out.send("arm_request", v, u, 0)
                    if present(step, u, v):
                        out.send("arm_answer", u, v, 1)
                        if most[u] not in held[v]:
                            held[v][-1] = most[u]
            phase[v] += 1
            end[v] = t[v] + length(v)

    out.state = [{"n": n[v], "s": s[v], "held": held[v], "phase": phase[v]} for v in range(agents)]
    return out
