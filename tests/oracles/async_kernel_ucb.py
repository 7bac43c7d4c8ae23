"""Async-KernelUCB as printed (Li et al. 2023, Algorithm 1); the line numbers are the paper's.

The server keeps N separate statistics, each over the dictionary of its client's last upload, and transforms all of them
at every exchange (eq. 5). Message 2 is the full one, and exchanges follow one another.
"""

import math
from functools import partial

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Dictionary, FloatArray, Point, Statistics, nystroem, statistics, transfer
from tests.oracles.repeats import repeats_dropped, without_repeats


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> OracleRun:
    streams = [coins(i) for i in range(agents)]
    out = OracleRun()
    newest = statistics([], Dictionary([], kernel))  # line 2: S_0, A(D_0; S_0), b(D_0; S_0)
    stored = [newest for _ in range(agents)]  # the server's last statistics of each client
    models = [newest for _ in range(agents)]  # what client i received at k(i)
    fresh: list[list[Point]] = [[] for _ in range(agents)]  # Delta D of each client
    information = [0.0 for _ in range(agents)]  # sum over Delta D of sigma_{k(i)}^2

    for step in turns:  # line 3
        triggered = []
        for i in sorted(step):
            model = partial(nystroem, model=models[i], lam=config.lam)
            x, y, sigma2 = out.act(world, i, model, width(models[i], config, agents))  # 4-5
            fresh[i].append((x, y))  # line 6
            information[i] += sigma2
            if information[i] > due(config, agents):  # line 7
                triggered.append(i)
        for i in triggered:
            newest = exchange(out, i, fresh[i], newest, stored, streams[i], config)
            models[i] = newest  # line 14
            fresh[i], information[i] = [], 0.0

    out.server, out.dictionary_size = newest, len(newest.dictionary)
    out.server_model = partial(nystroem, model=newest, lam=config.lam)
    out.models = [partial(nystroem, model=model, lam=config.lam) for model in models]
    return out


def exchange(
    out: OracleRun,
    i: int,
    delta: list[Point],
    newest: Statistics,
    stored: list[Statistics],
    stream: np.random.Generator,
    config: Config,
) -> Statistics:
    """Lines 8 to 13 for client i and its new points ``delta``: changes ``stored[i]``, returns the newest statistics."""
    out.rounds += 1
    d, m = delta[0][0].size, len(newest.dictionary)
    out.send("request", i, SERVER, 0)
    out.send("dictionary", SERVER, i, m * (d + 1) + m * m + m)  # line 8

    chosen = sample(delta, newest, stream, config)  # line 9
    S = Dictionary([*newest.dictionary.points, *chosen], newest.dictionary.kernel)
    upload = statistics(delta, S)  # line 10
    m = len(S)
    out.send("upload", i, SERVER, len(chosen) * (d + 1) + m * m + m)  # line 11

    own = express(stored[i], S)
    stored[i] = Statistics(S, own.A + upload.A, own.b + upload.b)
    A, b = np.zeros((m, m)), np.zeros(m)
    for client in stored:  # line 12
        same = express(client, S)
        A += same.A
        b += same.b
    out.send("model", SERVER, i, m * m + m)  # line 13
    return Statistics(S, A, b)


def sample(delta: list[Point], newest: Statistics, stream: np.random.Generator, config: Config) -> list[FloatArray]:
    """Each point of Delta D with probability min(1, q sigma_{k-1}^2), by the server's newest statistics."""
    chosen = []
    coins = stream.random(len(delta))
    for u, (x, _) in zip(coins, delta, strict=True):
        sigma = nystroem(x[None, :], newest, config.lam)[1][0]
        if u < min(1.0, rate(config) * sigma**2):
            chosen.append(x)
    return without_repeats(chosen, newest.dictionary.points) if repeats_dropped(config) else chosen


def express(old: Statistics, S: Dictionary) -> Statistics:
    """Statistics over an older dictionary in the coordinates of S: T^T A T and T^T b (eq. 5)."""
    T = transfer(old.dictionary, S)
    return Statistics(S, T.T @ old.A @ T, T.T @ old.b)


def due(config: Config, agents: int) -> float:
    """D: a number, or 1/N^2 (end of section 4.2)."""
    return 1 / agents**2 if config.threshold == "theory" else float(config.threshold)


def rate(config: Config) -> float:
    """q: a number, or lemma 4.1's for ``config.T`` turns of all agents together."""
    if config.q != "theory":
        return float(config.q)
    eps = config.epsilon
    beta = (1 + eps) / (1 - eps)
    return float(4 * math.log(2 * math.sqrt(2) * config.T / config.delta) * beta * (1 + eps / 3) / eps**2)


def width(model: Statistics, config: Config, agents: int) -> float:
    """alpha: a number, or lemma 4.4's with the information gain of the eigenvalues of A (ours for the largest gain)."""
    if config.alpha != "theory":
        return float(config.alpha)
    eps, D, N = config.epsilon, due(config, agents), agents
    beta = (1 + eps) / (1 - eps)
    gain = sum(0.5 * math.log(1 + max(v, 0.0) / (D * beta * config.lam)) for v in np.linalg.eigvalsh(model.A))
    first = (1 / math.sqrt(1 - eps) + 1) * math.sqrt(config.lam) * config.B
    second = 2 * config.R * (math.sqrt(1 + N * D * beta) + N * math.sqrt(2 * D * beta))
    return float(first + second * math.sqrt(math.log(1 / config.delta) + gain))
