"""Fed-PE (Huang et al. 2021): clients with arms of their own eliminate arms in phases, by parameters that they share.

``config`` holds ``variant`` (fed_pe, enhanced, collaborative), ``parameters`` (per_arm, shared), ``alpha`` (a number or
theory), ``delta``, ``sub_gaussian``, ``shortest`` (a number or None), ``growth`` and ``gap``; ``T`` turns of an agent.
An agent's arms are those of its first turn.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World

TIE = 1e-9  # values that differ by less are equal


@dataclass
class FedPERun(OracleRun):
    """Further: the arms that each agent has left, and the pulls dealt out in each phase, (agent, arm) -> pulls."""

    active: list[list[int]] = field(default_factory=list)
    dealt: list[dict[tuple[int, int], int]] = field(default_factory=list)


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> FedPERun:
    out, c = FedPERun(), config
    X = [world.arms(i, 1) for i in range(agents)]
    K, d = X[0].shape
    everyone = range(agents)
    active = [list(range(K)) for _ in everyone]
    dealt = {(i, a): 1 for i in everyone for a in range(K)}
    out.dealt.append(dealt)
    directions = {}
    best = [0] * agents
    done: list[list[tuple[int, float]]] = [[] for _ in everyone]  # (arm, reward) of the phase under way
    phase, length, taken = 0, K, [0] * agents
    weighted = {(i, a): 0.0 for i in everyone for a in range(K)}
    spread = {(i, a): d * K / agents for i in everyone for a in range(K)}
    total = 0
    shared, collaborative = c.parameters == "shared", c.variant == "collaborative"

    for step in turns:
        for i in sorted(step):
            if len(done[i]) == length:
                raise AssertionError("a turn in a phase that is over for this agent")
            order = [a for a in active[i] for _ in range(dealt.get((i, a), 0))]
            arm = order[len(done[i])] if len(done[i]) < len(order) else best[i]
            taken[i] += 1
            reward, regret = world.pull(i, taken[i], arm)
            out.pulls.append((i, taken[i], arm, reward, regret))
            done[i].append((arm, reward))
            if len(done[i]) == length:
                pulled = sum(dealt.get((i, a), 0) > 0 for a in active[i])
                out.send("phase_estimates", i, SERVER, (d + collaborative) * pulled)
        if not all(len(own) == length for own in done):
            continue
        # The server's estimates from what clients send.
        V: dict[int, np.ndarray] = {}
        moments: dict[int, np.ndarray] = {}
        for i in everyone:
            place = 0
            for a in active[i]:
                n = dealt.get((i, a), 0)
                if not n:
                    continue
                mean = sum(reward for _, reward in done[i][place : place + n]) / n
                place += n
                x = X[i][a]
                sent = x * mean / (x @ x)
                if phase == 0:
                    # an agent tells the direction of an arm even where its mean is 0
                    directions[i, a] = x if collaborative or not x.any() else x / np.linalg.norm(x)
                e, block = directions[i, a], 0 if shared else a
                V[block] = V.get(block, np.zeros((d, d))) + n * np.outer(e, e)
                scale = x @ x if collaborative else 1.0
                moments[block] = moments.get(block, np.zeros(d)) + n * scale * sent
        inverse = {block: np.linalg.pinv(V[block], rcond=1e-9, hermitian=True) for block in V}
        for i in everyone:
            out.send("phase_model", SERVER, i, len(V) * (d * d + d + (not shared)))
        # Each client eliminates.
        pulls_each = c.growth**phase
        total += pulls_each
        for i in everyone:
            means, widths = {}, {}
            for a in active[i]:
                x, block = X[i][a], 0 if shared else a
                mean = x @ (inverse[block] @ moments[block])
                square = x @ inverse[block] @ x
                if not collaborative:
                    square = square / shortest(c, X[i]) ** 2
                if c.variant == "fed_pe":
                    means[a] = mean
                    widths[a] = c.sub_gaussian * alpha(c, agents, K, d) * math.sqrt(square)
                else:
                    weighted[i, a] += pulls_each * mean
                    spread[i, a] += pulls_each**2 * square
                    S = spread[i, a]
                    log = 2 * math.log(agents * K / c.delta) + math.log(S * agents / (d * K))
                    means[a] = weighted[i, a] / total
                    widths[a] = c.sub_gaussian * math.sqrt(S * log) / total
            best[i] = max(active[i], key=lambda a: means[a])
            active[i] = [a for a in active[i] if means[a] + widths[a] >= means[best[i]] - widths[best[i]]]
            out.send("active_arms", i, SERVER, len(active[i]))
        # The server deals out the next phase.
        phase += 1
        pi = design([[(0 if shared else a, directions[i, a]) for a in active[i]] for i in everyone], c.gap)
        dealt = {}
        for i in everyone:
            for a, weight in zip(active[i], pi[i], strict=True):
                dealt[i, a] = math.ceil(weight * c.growth**phase - 1e-9)
            out.send("allotment", SERVER, i, len(active[i]))
        out.dealt.append(dealt)
        length = c.growth**phase + K
        done = [[] for _ in everyone]
        out.rounds += 1

    out.active = active
    return out


def shortest(c: Config, own: np.ndarray) -> float:
    return c.shortest if c.shortest is not None else min(float(np.linalg.norm(x)) for x in own)


def alpha(c: Config, M: int, K: int, d: int) -> float:
    """min{sqrt(2 log(KH/delta) + d log(k e)), sqrt(2 log(MKH/delta))}, k d >= 2 log(KH/delta) + d log(k e)."""
    if c.alpha != "theory":
        return float(c.alpha)
    H, t = 0, 0
    while t < c.T:
        t += K + (c.growth**H if H else 0)
        H += 1
    k, one = 1.0, 2 * math.log(K * H / c.delta)
    for _ in range(10_000):
        k = (one + d * (math.log(k) + 1)) / d
    return math.sqrt(min(one + d * (math.log(k) + 1), 2 * math.log(M * K * H / c.delta)))


def design(
    clients: list[list[tuple[int, np.ndarray]]], gap: float, start: list[list[float]] | None = None
) -> list[list[float]]:
    """Multi-client G-optimal design by vertex exchange (Boehning 1986), from uniform weights or given ones.

    Until sum_i max_a e^T V^+ e <= sum of ranks + gap every client in turn moves weight from its arm with the least to
    the one with the largest e^T V^+ e, as much as makes the product of the determinants largest.
    """
    pi = start or [[1 / len(arms)] * len(arms) for arms in clients]
    while True:
        V = information(clients, pi)
        inverse = {b: np.linalg.pinv(matrix, rcond=1e-9, hermitian=True) for b, matrix in V.items()}
        value = sum(max(e @ inverse[b] @ e for b, e in arms) for arms in clients)
        rank = sum(int(np.linalg.matrix_rank(matrix, rtol=1e-9, hermitian=True)) for matrix in V.values())
        if value <= rank + gap:
            return pi
        for arms, own in zip(clients, pi, strict=True):
            V = information(clients, pi)
            inverse = {b: np.linalg.pinv(matrix, rcond=1e-9, hermitian=True) for b, matrix in V.items()}
            g = [float(e @ inverse[b] @ e) for b, e in arms]
            up = next(a for a in range(len(arms)) if g[a] >= max(g) * (1 - TIE))
            held = [a for a in range(len(arms)) if own[a] > 0]
            down = next(a for a in held if g[a] <= min(g[other] for other in held) * (1 + TIE))
            same = arms[up][0] == arms[down][0]
            between = float(arms[up][1] @ inverse[arms[up][0]] @ arms[down][1]) if same else 0.0
            bend = g[up] * g[down] - between**2
            rise = g[up] - g[down]
            move = own[down] if 2 * own[down] * bend <= rise else rise / (2 * bend)
            if up != down:
                own[up] += move
                own[down] = 0.0 if move == own[down] else own[down] - move


def information(clients: list[list[tuple[int, np.ndarray]]], pi: list[list[float]]) -> dict[int, np.ndarray]:
    V: dict[int, np.ndarray] = {}
    for arms, own in zip(clients, pi, strict=True):
        for (b, e), weight in zip(arms, own, strict=True):
            V[b] = V.get(b, np.zeros((len(e), len(e)))) + weight * np.outer(e, e)
    return V
