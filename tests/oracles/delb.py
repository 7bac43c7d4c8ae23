"""DELB (Wang et al. 2020): distributed elimination for linear bandits, by optimal designs over the arms that are left.

``config`` holds ``C``, ``gap`` and ``T`` (turns of an agent). The first phase's pulls are known to all beforehand.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.fed_pe import TIE, design


@dataclass
class DelbRun(OracleRun):
    """Further: the arms that are left at the end."""

    active: list[int] = field(default_factory=list)


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> DelbRun:
    out = DelbRun()
    X = world.arms(0, 1)
    d = X.shape[1]
    active, phase = list(range(len(X))), 1
    lists = deal(X, active, phase, config, agents)
    rewards: list[list[float]] = [[] for _ in range(agents)]
    taken = [0] * agents
    for step in turns:
        for i in sorted(step):
            arm = lists[i][len(rewards[i])]
            taken[i] += 1
            reward, regret = world.pull(i, taken[i], arm)
            out.pulls.append((i, taken[i], arm, reward, regret))
            rewards[i].append(reward)
            if len(rewards[i]) == len(lists[i]):
                out.send("dealt_means", i, SERVER, len(set(lists[i])))
        if any(len(own) < len(dealt) for own, dealt in zip(rewards, lists, strict=True)):
            continue
        V, moment = np.zeros((d, d)), np.zeros(d)
        for own, dealt in zip(rewards, lists, strict=True):
            for arm, reward in zip(dealt, own, strict=True):
                V += np.outer(X[arm], X[arm])
                moment += reward * X[arm]
        theta = np.linalg.pinv(V, rcond=1e-9, hermitian=True) @ moment
        best = max(float(X[a] @ theta) for a in active)
        active = [a for a in active if best - X[a] @ theta <= 2.0 ** (1 - phase)]
        phase += 1
        lists = deal(X, active, phase, config, agents)
        for i in range(agents):
            out.send("phase_order", SERVER, i, d + 2 * len(set(lists[i])))
        rewards = [[] for _ in range(agents)]
        out.rounds += 1
    out.active = active
    return out


def deal(X: np.ndarray, active: list[int], phase: int, c: Config, M: int) -> list[list[int]]:
    """Each agent's pulls in order: of ceil(C 4^l d^2 pi ln(MT)) pulls of each arm every agent gets as many."""
    total = c.C * 4**phase * X.shape[1] ** 2 * math.log(M * c.T)
    d = X.shape[1]
    (pi,) = design([[(0, X[a]) for a in active]], d if c.gap is None else c.gap, [spanning([X[a] for a in active])])
    pulls = [a for a, weight in zip(active, pi, strict=True) for _ in range(math.ceil(total * weight - 1e-9))]
    while len(pulls) % M:
        pulls.append(pulls[-1])
    each = len(pulls) // M
    return [pulls[i * each : (i + 1) * each] for i in range(M)]


def spanning(arms: list[np.ndarray]) -> list[float]:
    """Equal weights on arms of which each is the farthest from the span of those before."""
    chosen: list[int] = []
    basis: list[np.ndarray] = []
    while len(chosen) < len(arms[0]):
        lengths = []
        for x in arms:
            rest = x
            for q in basis:
                rest = rest - (rest @ q) * q
            lengths.append(float(rest @ rest))
        if max(lengths) <= 1e-18 * max(float(x @ x) for x in arms):
            break
        a = next(a for a in range(len(arms)) if lengths[a] >= max(lengths) * (1 - TIE))
        rest = arms[a]
        for q in basis:
            rest = rest - (rest @ q) * q
        basis.append(rest / np.linalg.norm(rest))
        chosen.append(a)
    return [1 / len(chosen) if a in chosen else 0.0 for a in range(len(arms))]
