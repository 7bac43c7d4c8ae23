"""DUETS (Pavlovic et al. 2024, Algorithms 1 and 2); the line numbers are the paper's.

Pavlovic et al. 2024: "Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared
Randomness".

The domain is ``world.arms(0, 1)``, the same at every turn; ``config`` holds ``T`` (turns that every agent has at
least), ``T1``, ``p0`` and ``beta`` (numbers), ``lam``, ``inducing``, ``elimination`` and ``regions``. ``coins(-1)`` is
the server's own stream, a call ``random(n)`` per epoch for the n = N T_j points, agent by agent; an agent's coin is one
call ``integers(points of a region, size=T_j)`` per epoch and region, and with ``size=1`` among all active points for
every turn after its T-th.

A domain is finite, so points repeat; a set holds each once, in the order of their first appearance.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.posterior import Dictionary, FloatArray, Point, exact, prior_variance


@dataclass
class DuetsRun(OracleRun):
    """Further: the indices of the active points after each epoch, and the size of each inducing set."""

    active: list[list[int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def run(turns: Turns, world: World, kernel: Kernel, config: Config, coins: Coins, agents: int) -> DuetsRun:
    U = world.arms(0, 1)
    streams, server = [coins(i) for i in range(agents)], coins(-1)
    out = DuetsRun()
    j, active, length, left = 0, list(range(len(U))), config.T1, config.T
    reach = smallest_connecting_distance(U) if separate(config) else math.inf
    parts = regions(U, active, reach)
    planned = [plan(streams[i], parts, length, left) for i in range(agents)]
    last = left <= length * len(parts)
    data: list[list[Point]] = [[] for _ in range(agents)]  # D_j^(n) with its rewards

    announced = False
    for step in turns:
        for i in sorted(step):
            if not planned[i]:
                assert last
                planned[i] = draw(streams[i], active, 1)
            arm = planned[i].pop(0)  # Algorithm 1, line 6
            turn = 1 + sum(1 for pull in out.pulls if pull[0] == i)
            reward, regret = world.pull(i, turn, arm)
            out.pulls.append((i, turn, arm, reward, regret))
            data[i].append((U[arm], reward))
            if last or planned[i]:
                continue
            out.send("epoch_end", i, SERVER, 0)
            if not announced:
                announced = True
                S, sigma_max = inducing_set(U, active, planned_points(data, planned, U), server, kernel, config)
                for k in range(agents):  # Algorithm 2, line 8
                    out.send("inducing_set", SERVER, k, U.shape[1] * len(S))
            out.send("projection", i, SERVER, len(S))  # Algorithm 1, line 14
        if announced and not any(planned):
            out.rounds += 1
            active = trimmed(out, U, active, S, sigma_max, data, kernel, config)
            out.active.append(active)
            out.sizes.append(len(S))
            j, announced = j + 1, False
            left -= length * len(parts)
            length = max(length, math.floor(math.sqrt(config.T * length)))
            parts = regions(U, active, reach)
            planned = [plan(streams[i], parts, length, left) for i in range(agents)]
            last = left <= length * len(parts)
            data = [[] for _ in range(agents)]
    return out


def epochs(T: int, T1: int) -> list[int]:
    """T_1, T_2, ... with T_(j+1) = floor(sqrt(T T_j)), the last one cut so that they add up to T."""
    lengths, length, t = [], T1, 0
    while t < T:
        lengths.append(min(length, T - t))
        t += length
        length = max(length, math.floor(math.sqrt(T * length)))
    return lengths or [0]


def plan(stream: np.random.Generator, parts: list[list[int]], length: int, left: int) -> list[int]:
    """Line 6: T_j points of each region (footnote 3); in the last epoch what is left, shared out evenly."""
    points = []
    for k, part in enumerate(parts):
        share = left // len(parts) + (1 if k < left % len(parts) else 0)
        points += draw(stream, part, min(length, share) if left <= length * len(parts) else length)
    return points


def separate(config: Config) -> bool:
    """Whether each connected region is explored by itself."""
    return str(getattr(config, "regions", "together")) == "separate"


def smallest_connecting_distance(U: FloatArray) -> float:
    """The smallest distance at which U is connected, found by joining pairs in order of their distance."""
    pairs = sorted((distance(U[a], U[b]), a, b) for a in range(len(U)) for b in range(a))
    group = list(range(len(U)))
    reach = 0.0
    for length, a, b in pairs:
        if group[a] != group[b]:
            reach, old = length, group[b]
            group = [group[a] if g == old else g for g in group]
    return reach


def regions(U: FloatArray, active: list[int], reach: float) -> list[list[int]]:
    """The active points that chains of links of at most ``reach`` connect, in the order of their first points."""
    if reach == math.inf:
        return [active]
    found: list[list[int]] = []
    left = list(active)
    while left:
        part, edge = [], [left[0]]
        while edge:
            here = edge.pop()
            if here in left:
                left.remove(here)
                part.append(here)
                edge += [other for other in left if distance(U[here], U[other]) <= reach]
        found.append(sorted(part))
    return found


def distance(x: FloatArray, y: FloatArray) -> float:
    """Euclidean."""
    return math.sqrt(float(((x - y) ** 2).sum()))


def draw(stream: np.random.Generator, active: list[int], number: int) -> list[int]:
    """Points drawn uniformly from the active ones, by their numbers in the domain."""
    return [active[k] for k in stream.integers(len(active), size=number)]


def planned_points(data: list[list[Point]], planned: list[list[int]], U: FloatArray) -> list[FloatArray]:
    """Algorithm 2, lines 4-5: the points of all agents in this epoch, pulled already or yet to be."""
    points = []
    for own, future in zip(data, planned, strict=True):
        points += [x for x, _ in own] + [U[arm] for arm in future]
    return points


def inducing_set(
    U: FloatArray,
    active: list[int],
    points: list[FloatArray],
    server: np.random.Generator,
    kernel: Kernel,
    config: Config,
) -> tuple[list[FloatArray], float]:
    """Algorithm 2, lines 6-7: S_j and sigma_(j,max), the exact deviation (eq. 4, not divided by lambda)."""
    n = len(points)
    deviation = exact(U[active], [(x, 0.0) for x in points], kernel, config.lam)[1] * math.sqrt(config.lam)
    sigma_max = float(deviation.max())
    p = min(1.0, config.p0 * (sigma_max**2 if config.inducing == "variance" else math.log(n) / n))
    chosen: list[FloatArray] = []
    for u, x in zip(server.random(n), points, strict=True):
        if u < p and not any(np.array_equal(x, s) for s in chosen):
            chosen.append(x)
    return chosen, sigma_max


def trimmed(
    out: OracleRun,
    U: FloatArray,
    active: list[int],
    S: list[FloatArray],
    sigma_max: float,
    data: list[list[Point]],
    kernel: Kernel,
    config: Config,
) -> list[int]:
    """Algorithm 2, lines 9-12 and equations 5 to 9: what is left of the active points."""
    m = len(S)
    dictionary = Dictionary(S, kernel)
    v, G = np.zeros(m), np.zeros((m, m))
    for own in data:
        for x, y in own:
            z = dictionary.embed(x[None, :])[0]
            v += z * y
            G += np.outer(z, z)
    ridge = config.lam * np.eye(m) + G
    vbar = np.linalg.solve(ridge, v)
    extra = 0 if config.elimination == "mean" else m * m  # the agents cannot know G
    for k in range(len(data)):
        out.send("epoch_model", SERVER, k, m + 1 + extra)
    Z = dictionary.embed(U[active])
    mu = Z @ vbar
    if config.elimination == "mean":
        keep = mu >= mu.max() - 2 * config.beta * sigma_max
    else:
        prior = prior_variance(U[active], kernel)
        sigma = np.array(
            [math.sqrt(max(k - z @ G @ np.linalg.solve(ridge, z), 0.0)) for k, z in zip(prior, Z, strict=True)]
        )
        keep = mu + config.beta * sigma >= (mu - config.beta * sigma).max()
    return [arm for arm, kept in zip(active, keep, strict=True) if kept]
