"""NKernelUCB (Li et al. 2023, section 5): every agent learns alone, and nobody sends anything."""

from functools import partial

from tests.oracles import Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Point, exact


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    own: list[list[Point]] = [[] for _ in range(agents)]

    for step in turns:
        for i in sorted(step):
            model = partial(exact, data=own[i], kernel=kernel, lam=config.lam)
            x, y, _ = out.act(world, i, model, config.alpha)
            own[i].append((x, y))

    out.models = [partial(exact, data=own[i], kernel=kernel, lam=config.lam) for i in range(agents)]
    return out
