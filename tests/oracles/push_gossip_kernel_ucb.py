"""Push gossip on a graph as plain loops: after each pull an agent tells it to neighbours drawn by its own coin.

Every agent keeps a list of points with rewards: its own pulls and those that neighbours sent it. Its model is dense
kernel ridge regression on that list. ``config.fanout`` is the number of neighbours that a pull is sent to (all, where
there are not more), drawn without replacement by one call ``choice(neighbours, number, replace=False)`` of the agent's
coin per pull.

What is sent within a step arrives when all agents of the step have acted.
"""

from functools import partial

from tests.oracles import Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.local import Adjacency
from tests.oracles.posterior import Point, exact


def run(
    turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int, adjacency: Adjacency
) -> OracleRun:
    out = OracleRun()
    coin = [coins(i) for i in range(agents)]
    known: list[list[Point]] = [[] for _ in range(agents)]

    for step in turns:
        on_the_way: list[tuple[int, Point]] = []
        for i in sorted(step):
            model = partial(exact, data=known[i], kernel=kernel, lam=config.lam)
            x, y, _ = out.act(world, i, model, config.alpha)
            known[i].append((x, y))
            neighbours = list(adjacency[i])
            number = config.fanout if config.fanout < len(neighbours) else len(neighbours)
            for j in coin[i].choice(neighbours, number, replace=False):
                out.send("point", i, int(j), x.size + 1)
                on_the_way.append((int(j), (x, y)))
        for j, point in on_the_way:
            known[j].append(point)

    out.models = [partial(exact, data=known[i], kernel=kernel, lam=config.lam) for i in range(agents)]
    return out
