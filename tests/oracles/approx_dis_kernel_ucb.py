"""Approx-DisKernelUCB: synchronised Nystroem statistics over a dictionary sampled afresh at every synchronisation.

Source: Li et al. 2022, "Communication Efficient Distributed Learning for Kernelized Contextual Bandits"; it is a
baseline of Li et al. 2023.
"""

from functools import partial

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Dictionary, FloatArray, Point, Statistics, nystroem, statistics
from tests.oracles.repeats import repeats_dropped, without_repeats


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    streams = [coins(i) for i in range(agents)]
    out = OracleRun()
    last = statistics([], Dictionary([], kernel))  # the model right after the last synchronisation
    local: list[list[Point]] = [[] for _ in range(agents)]  # all of agent i's data
    fresh: list[list[Point]] = [[] for _ in range(agents)]  # its part since the last synchronisation

    for step in turns:
        triggered = []
        for i in sorted(step):
            model = with_own(last, fresh[i])
            x, y, _ = out.act(world, i, partial(nystroem, model=model, lam=config.lam), config.alpha)
            local[i].append((x, y))
            fresh[i].append((x, y))
            if information(fresh[i], last, config) > config.threshold:
                triggered.append(i)
        if triggered:
            for i in triggered:
                out.send("sync_request", i, SERVER, 0)
            last = synchronise(out, local, last, streams, config)
            fresh = [[] for _ in range(agents)]

    out.server, out.dictionary_size = last, len(last.dictionary)
    out.server_model = partial(nystroem, model=last, lam=config.lam)
    out.models = [partial(nystroem, model=with_own(last, fresh[i]), lam=config.lam) for i in range(agents)]
    return out


def with_own(last: Statistics, fresh: list[Point]) -> Statistics:
    """The synchronised statistics and the agent's own new points, over the same dictionary."""
    own = statistics(fresh, last.dictionary)
    return Statistics(last.dictionary, last.A + own.A, last.b + own.b)


def information(fresh: list[Point], last: Statistics, config: Config) -> float:
    """The trigger's left side: the sum of sigma_last^2 over the points since the last synchronisation."""
    return sum(float(nystroem(x[None, :], last, config.lam)[1][0]) ** 2 for x, _ in fresh)


def synchronise(
    out: OracleRun, local: list[list[Point]], last: Statistics, streams: list[np.random.Generator], config: Config
) -> Statistics:
    """Both phases with every agent; returns the statistics that all of them hold afterwards."""
    out.rounds += 1
    d = next(x.size for data in local for x, _ in data)
    for i in range(len(local)):
        out.send("sync_start", SERVER, i, 0)

    union: list[FloatArray] = []  # phase 1: the dictionary
    for i, data in enumerate(local):
        chosen = sample(data, last, streams[i], config)
        out.send("sample", i, SERVER, d * len(chosen))
        union += chosen
    if repeats_dropped(config):
        union = without_repeats(union)
    S = Dictionary(union, last.dictionary.kernel)
    m = len(S)
    for i in range(len(local)):
        out.send("dictionary", SERVER, i, d * m)

    A, b = np.zeros((m, m)), np.zeros(m)  # phase 2: the statistics
    for i, data in enumerate(local):
        own = statistics(data, S)
        out.send("statistics", i, SERVER, m * m + m)
        A += own.A
        b += own.b
    for i in range(len(local)):
        out.send("model", SERVER, i, m * m + m)
    return Statistics(S, A, b)


def sample(data: list[Point], last: Statistics, stream: np.random.Generator, config: Config) -> list[FloatArray]:
    """Each of all the agent's points with probability min(1, q sigma_last^2)."""
    chosen = []
    coins = stream.random(len(data))
    for u, (x, _) in zip(coins, data, strict=True):
        sigma = nystroem(x[None, :], last, config.lam)[1][0]
        if u < min(1.0, config.q * sigma**2):
            chosen.append(x)
    return without_repeats(chosen) if repeats_dropped(config) else chosen
