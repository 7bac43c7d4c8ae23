"""DisKernelUCB (Li et al. 2022), exact: kernel ridge regression on the synchronised data of all and the agent's own."""

from functools import partial

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Point, exact, log_det


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    synced: list[Point] = []
    fresh: list[list[Point]] = [[] for _ in range(agents)]  # own points since the last synchronisation

    for step in turns:
        triggered = []
        for i in sorted(step):
            model = partial(exact, data=synced + fresh[i], kernel=kernel, lam=config.lam)
            x, y, _ = out.act(world, i, model, config.alpha)
            fresh[i].append((x, y))
            gain = log_det(synced + fresh[i], kernel, config.lam) - log_det(synced, kernel, config.lam)
            if len(fresh[i]) * gain > config.threshold:
                triggered.append(i)
        if triggered:
            for i in triggered:
                out.send("sync_request", i, SERVER, 0)
            synced = synced + synchronise(out, fresh)
            fresh = [[] for _ in range(agents)]

    out.models = [partial(exact, data=synced + fresh[i], kernel=kernel, lam=config.lam) for i in range(agents)]
    return out


def synchronise(out: OracleRun, fresh: list[list[Point]]) -> list[Point]:
    """Everybody uploads its new points and gets the points of the others; returns all the new points."""
    out.rounds += 1
    new = [point for points in fresh for point in points]
    d = new[0][0].size
    for i in range(len(fresh)):
        out.send("sync_start", SERVER, i, 0)
    for i, points in enumerate(fresh):
        out.send("points", i, SERVER, len(points) * (d + 1))
    for i, points in enumerate(fresh):
        out.send("missing_points", SERVER, i, (len(new) - len(points)) * (d + 1))
    return new
