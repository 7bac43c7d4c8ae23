"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002), alone or with an immediate broadcast of every pull to the neighbours.

Config: ``alpha`` (2), ``sd`` (0.5), ``sharing`` none | all.
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

    def add(v: int, k: int, y: float) -> None:
        n[v][k] += 1
        s[v][k] += y

    def take_in(v: int) -> None:
        for _, (k, y) in post.read(v):
            add(v, k, y)

    for step, acting in enumerate(turns):
        for v in sorted(acting):
            take_in(v)
            arms = numbers(world, v)
            place = ucb(world, v, arms, n[v], s[v], (2 * config.sd) ** 2 * config.alpha * log(max(sum(n[v]), 1)))
            t[v] += 1
            y = pull(out, world, v, t[v], place)
            add(v, arms[place], y)
            if config.sharing == "all":
                post.tell(step, "arm_reward", v, 2, (arms[place], y))
        post.arrive()

    for v in range(agents):
        take_in(v)
        out.state.append({"n": n[v], "s": s[v]})
    return out
