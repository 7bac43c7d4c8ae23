"""OneKernelUCB (Valko et al. 2013, as Li et al. 2023 uses it): every point is shared with everybody at once."""

from functools import partial

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Point, exact


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    shared: list[Point] = []

    for step in turns:
        model = partial(exact, data=list(shared), kernel=kernel, lam=config.lam)  # what was shared before the step
        for i in sorted(step):
            x, y, _ = out.act(world, i, model, config.alpha)
            shared.append((x, y))
            out.rounds += 1
            out.send("point", i, SERVER, x.size + 1)
            for j in range(agents):
                if j != i:
                    out.send("point", SERVER, j, x.size + 1)

    out.models = [partial(exact, data=shared, kernel=kernel, lam=config.lam) for _ in range(agents)]
    return out
