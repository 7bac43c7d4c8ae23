"""FedUCB (Dubey and Pentland 2020): Dis-LinUCB whose agents release their sums under differential privacy.

``run``: with a server (algorithm 1). ``run_on_graph``: gamma estimators for each agent, one for each trial
modulo gamma; what is sent at trial t is used from trial t + gamma on. ``config`` holds ``T``, the most turns of an
agent.

The tree has noise in each node, of blocks of 2^j releases; a release adds up the blocks that make it up.
"""

import math
from typing import Any

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World
from tests.oracles.dis_lin_ucb import linear
from tests.oracles.local import Adjacency, ball
from tests.oracles.posterior import FloatArray


class Noise:
    """sigma, Upsilon and kappa for at most n releases."""

    def __init__(self, c: Config, n: int, d: int) -> None:
        self.d = d
        self.m = 1 + math.ceil(math.log2(n))
        self.sigma = math.sqrt(16 * self.m * (c.points**2 + c.rewards**2) ** 2 * math.log(2 / c.delta) ** 2)
        self.sigma /= c.epsilon
        log = math.log(2 * n / c.confidence)
        self.shift = math.sqrt(2 * self.m) * self.sigma * (4 * math.sqrt(d) + 2 * log)
        self.kappa = math.sqrt(self.m) * self.sigma * (math.sqrt(d) + math.sqrt(2 * log)) / math.sqrt(self.shift)


class Tree:
    """Batches of pulls, and the noise of every block of batches that has been used."""

    def __init__(self, noise: Noise, rng: np.random.Generator) -> None:
        self.noise, self.rng = noise, rng
        self.batches: list[FloatArray] = []
        self.blocks: dict[tuple[int, int], FloatArray] = {}

    def release(self, batch: FloatArray) -> tuple[FloatArray, FloatArray]:
        d = self.noise.d
        self.batches.append(batch)
        total, start, left = np.zeros((d + 1, d + 1)), 0, len(self.batches)
        while left:
            size = 2 ** int(math.log2(left))
            if (start, size) not in self.blocks:
                N = self.rng.standard_normal((d + 1, d + 1)) * self.noise.sigma
                self.blocks[start, size] = (N + N.T) / math.sqrt(2)
            total = total + self.blocks[start, size] + sum(self.batches[start : start + size])
            start, left = start + size, left - size
        return total[:d, :d] + 2 * self.noise.shift * np.eye(d), total[:d, d]


class Private:
    """One estimator of one agent."""

    def __init__(self, c: Config, noise: Noise, M: int, rng: np.random.Generator) -> None:
        self.c, self.noise, self.M, d = c, noise, M, noise.d
        self.tree = Tree(noise, rng)
        self.S, self.s = M * noise.shift * np.eye(d), np.zeros(d)
        self.pulls: list[tuple[FloatArray, float]] = []
        self.known = self.batched = 0
        self.last: tuple[FloatArray, FloatArray] | None = None

    def sums(self) -> tuple[FloatArray, FloatArray]:
        V, b = self.S.copy(), self.s.copy()
        for x, y in self.pulls[self.known :]:
            V, b = V + np.outer(x, x), b + y * x
        return V, b

    def radius(self) -> float:
        c, n, M = self.c, self.noise, self.M
        if c.alpha != "theory":
            return float(c.alpha)
        information = np.linalg.slogdet(self.sums()[0])[1] - n.d * math.log(M * n.shift)
        beta = c.sub_gaussian * math.sqrt(2 * math.log(2 / c.confidence) + max(0.0, float(information)))
        return beta + M * c.norm * math.sqrt(3 * n.shift) + M * n.kappa

    def learn(self, x: FloatArray, y: float) -> float:
        """(t - t_last) times what the determinant has gained."""
        x = x * min(1.0, self.c.points / max(float(np.sqrt(x @ x)), 1e-300))
        self.pulls.append((x, min(max(y, -self.c.rewards), self.c.rewards)))
        V = self.sums()[0] + self.M * (3 - 1) * self.noise.shift * np.eye(len(x))
        return (len(self.pulls) - self.known) * float(np.linalg.slogdet(V)[1] - np.linalg.slogdet(self.S)[1])

    def release(self) -> tuple[FloatArray, FloatArray]:
        if self.last is None or len(self.pulls) > self.batched:
            rows = [np.append(x, y) for x, y in self.pulls[self.batched :]]
            self.batched = len(self.pulls)
            size = self.noise.d + 1
            self.last = self.tree.release(sum((np.outer(v, v) for v in rows), np.zeros((size, size))))
        return self.last


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out = OracleRun()
    d = world.arms(0, 1).shape[1]
    noise = Noise(config, config.T, d)
    own = [Private(config, noise, agents, coins(i)) for i in range(agents)]
    for step in turns:
        triggered = []
        for i in sorted(step):
            x, y, _ = out.act(world, i, linear(*own[i].sums()), own[i].radius())
            if own[i].learn(x, y) >= config.threshold:
                triggered.append(i)
        if not triggered:
            continue
        out.rounds += 1
        for i in triggered:
            out.send("sync_request", i, SERVER, 0)
        for i in range(agents):
            out.send("sync_start", SERVER, i, 0)
        for i in range(agents):
            out.send("upload", i, SERVER, d * d + d)
        released = [one.release() for one in own]
        for i, one in enumerate(own):
            out.send("model", SERVER, i, d * d + d)
            one.S, one.s = sum(W for W, _ in released), sum(b for _, b in released)  # type: ignore[assignment]
            one.known = len(one.pulls)
    out.models = [linear(*one.sums()) for one in own]
    return out


def run_on_graph(
    trials: int, world: World, config: Config, coins: Coins, adjacency: Adjacency, gamma: int
) -> tuple[OracleRun, list[tuple[int, int]]]:
    """The run, and (trial, agent) of everything sent; all agents act in each trial."""
    out, agents = OracleRun(), len(adjacency)
    d = world.arms(0, 1).shape[1]
    noise = Noise(config, math.ceil(config.T / gamma), d)
    near = [sorted(ball(adjacency, i, gamma)) for i in range(agents)]
    rngs = [coins(i) for i in range(agents)]
    own = [[Private(config, noise, len(near[i]), rngs[i]) for _ in range(gamma)] for i in range(agents)]
    sent: list[tuple[int, int]] = []
    past: dict[tuple[int, int], dict[str, Any]] = {}
    for t in range(1, trials + 1):
        for i in range(agents):
            one = own[i][t % gamma]
            heard = [[s for s in range(1, t - gamma + 1) if (s, j) in past and (t - s) % gamma == 0] for j in near[i]]
            if any(heard):
                parts = [
                    past[s[-1], j]["sums"] if s else (noise.shift * np.eye(d), np.zeros(d))
                    for s, j in zip(heard, near[i], strict=True)
                ]
                one.S, one.s = sum(W for W, _ in parts), sum(b for _, b in parts)
                mine = heard[near[i].index(i)]
                one.known = past[mine[-1], i]["pulls"] if mine else 0
            x, y, _ = out.act(world, i, linear(*one.sums()), one.radius())
            wants = one.learn(x, y) >= config.threshold
            before = [s for s in range(1, t) if (s, i) in past and (t - s) % gamma == 0]
            last = before[-1] if before else 0
            asked = any(
                past[s, j]["wants"] and (t - s) % gamma == 0
                for s in range(last + 1, t)
                for j in near[i]
                if (s, j) in past and j != i
            )
            if wants or asked:
                past[t, i] = {"sums": one.release(), "pulls": len(one.pulls), "wants": wants}
                sent.append((t, i))
    return out, sent
