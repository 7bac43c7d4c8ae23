"""RCLB (Mitra et al. 2022): phased elimination in which a server takes medians of what the agents estimate.

``config`` holds ``C``, ``gap``, ``liars``, ``delta``, ``sub_gaussian`` and ``width``. Everybody is honest here.
"""

import math
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.delb import spanning
from tests.oracles.fed_pe import design


@dataclass
class RclbRun(OracleRun):
    """Further: the arms that are left at the end, how many were named to the agents, phase by phase."""

    active: list[int] = field(default_factory=list)
    named: list[int] = field(default_factory=list)


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> RclbRun:
    out, X, c = RclbRun(), world.arms(0, 1), config
    d = X.shape[1]
    active, phase = list(range(len(X))), 1
    plan = pulls(X, active, phase, c)
    rewards: list[list[float]] = [[] for _ in range(agents)]
    taken = [0] * agents
    for step in turns:
        for i in sorted(step):
            arm = plan[len(rewards[i])]
            taken[i] += 1
            reward, regret = world.pull(i, taken[i], arm)
            out.pulls.append((i, taken[i], arm, reward, regret))
            rewards[i].append(reward)
            if len(rewards[i]) == len(plan):
                out.send("phase_estimate", i, SERVER, d)
        if any(len(own) < len(plan) for own in rewards):
            continue
        V = sum(np.outer(X[arm], X[arm]) for arm in plan)
        inverse = np.linalg.pinv(V, rcond=1e-9, hermitian=True)
        thetas = [inverse @ sum(y * X[arm] for arm, y in zip(plan, own, strict=True)) for own in rewards]
        payoffs = {a: median(float(X[a] @ theta) for theta in thetas) for a in active}
        widest = max(float(X[a] @ inverse @ X[a]) for a in active)
        threshold = 2 * c.sub_gaussian * width(c, agents, len(X), phase) * math.sqrt(widest)
        active = [a for a in active if max(payoffs.values()) - payoffs[a] <= threshold]
        for i in range(agents):
            out.send("active_arms", SERVER, i, len(active))
        out.named.append(len(active))
        phase += 1
        plan = pulls(X, active, phase, c)
        rewards = [[] for _ in range(agents)]
        out.rounds += 1
    out.active = active
    return out


def confidence(c: Config, arms: int, phase: int) -> float:
    """delta_l: for each arm of each phase, above and below."""
    return float(c.delta / (2 * arms * phase * (phase + 1)))


def pulls(X: np.ndarray, active: list[int], phase: int, c: Config) -> list[int]:
    """The pulls of every agent, in order."""
    d = X.shape[1]
    total = c.C * c.sub_gaussian**2 * 4**phase * d * math.log(1 / confidence(c, len(X), phase))
    (pi,) = design([[(0, X[a]) for a in active]], d if c.gap is None else c.gap, [spanning([X[a] for a in active])])
    return [a for a, weight in zip(active, pi, strict=True) for _ in range(math.ceil(total * weight - 1e-9))]


def width(c: Config, agents: int, arms: int, phase: int) -> float:
    """t with P(half of all agents are above the truth by t deviations or more) = delta_l, if liars always are."""
    if c.width != "theory":
        return float(c.width)
    liars = math.floor(c.liars * agents + 1e-9)
    honest, needed = agents - liars, math.ceil(agents / 2) - liars
    low, high = 0.0, 40.0
    for _ in range(200):
        t = (low + high) / 2
        p = math.erfc(t / math.sqrt(2)) / 2
        tail = sum(math.comb(honest, k) * p**k * (1 - p) ** (honest - k) for k in range(needed, honest + 1))
        low, high = (t, high) if tail > confidence(c, arms, phase) else (low, t)
    return high
