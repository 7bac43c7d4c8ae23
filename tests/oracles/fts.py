"""FTS (Dai et al. 2020) and DP-FTS-DE with its settings (Dai et al. 2021), in plain loops.

``config`` holds ``private`` (DP) and ``splits`` (1 without DE), and every parameter of what is on. The shared features,
and then the subsets and the noise, come from the server's coin.
"""

import math
from typing import Any

import numpy as np

from tests.oracles import SERVER, Coins, Config, Kernel, OracleRun, Turns, World, best
from tests.oracles.posterior import FloatArray


def features(s: FloatArray, b: FloatArray, variance: float, x: FloatArray) -> FloatArray:
    """sqrt(v) cos(s x + b) / || cos(s x + b) ||."""
    phi = np.array([math.cos(float(s_j @ x) + b_j) for s_j, b_j in zip(s, b, strict=True)])
    return math.sqrt(variance) * phi / math.sqrt(float(phi @ phi))


def draw(phis: list[FloatArray], rewards: list[float], lam: float, z: FloatArray) -> FloatArray:
    """A draw from N(nu, lam Sigma^(-1)), Sigma = Phi^T Phi + lam I, nu = Sigma^(-1) Phi^T y."""
    Sigma = lam * np.eye(len(z))
    moment = np.zeros(len(z))
    for phi, y in zip(phis, rewards, strict=True):
        Sigma, moment = Sigma + np.outer(phi, phi), moment + y * phi
    root = np.linalg.cholesky(Sigma)  # root^(-T) z has the covariance Sigma^(-1)
    return np.linalg.solve(Sigma, moment) + math.sqrt(lam) * np.linalg.solve(root.T, z)


def region(c: Config, x: FloatArray) -> int:
    """Which product of equal parts of the coordinates x is in."""
    p = 0
    if c.splits > 1:
        for x_k in x:
            part = math.floor((x_k - c.low) / (c.high - c.low) * c.splits)
            p = p * c.splits + min(max(part, 0), c.splits - 1)
    return p


def weights(c: Config, N: int, P: int, round: int) -> list[list[float]]:
    """phi_n^(p): exp(a) for n that explores p, exp(b) for others, over their sum."""
    if P == 1:
        return [[1 / N] * N]
    a = c.a
    if round > c.constant:
        step = round - c.constant - 1
        a = c.a + (c.b - c.a) * step / (c.decay - 1) if step < c.decay else c.b
    found = []
    for p in range(P):
        row = [math.exp(a if n % P == p else c.b) for n in range(N)]
        found.append([one / sum(row) for one in row])
    return found


def run(turns: Turns, world: World, kernel: Kernel | None, config: Config, coins: Coins, agents: int) -> OracleRun:
    out, c = OracleRun(), config
    d, M, P = world.arms(0, 1).shape[1], config.features, config.splits ** world.arms(0, 1).shape[1]

    def drawn(rng: Any) -> tuple[FloatArray, FloatArray]:
        return rng.standard_normal((M, d)) / c.length_scale, rng.uniform(0, 2 * math.pi, M)

    server, rngs = coins(-1), [coins(n) for n in range(agents)]
    s, b = drawn(server)
    points: list[list[FloatArray]] = [[] for _ in range(agents)]
    rewards: list[list[float]] = [[] for _ in range(agents)]
    sent: list[FloatArray | None] = [None] * agents
    fresh = [0] * agents
    federated: list[FloatArray] | None = None
    for step in turns:
        drawn_now: list[tuple[int, FloatArray]] = []
        for n in sorted(step):
            t = len(points[n]) + 1
            X = world.arms(n, t)
            since = t - c.initial
            if since < 1:
                own = [i for i in range(len(X)) if region(c, X[i]) == n % P]
                arm = int(rngs[n].choice(own if own else len(X)))
            elif rngs[n].random() < 1 - 1 / since or federated is None:
                s_own, b_own = drawn(rngs[n])
                phis = [features(s_own, b_own, c.variance, x) for x in points[n]]
                omega = draw(phis, rewards[n], c.noise_variance, rngs[n].standard_normal(M))
                arm = best(world, n, [float(features(s_own, b_own, c.variance, x) @ omega) for x in X])
            else:
                arm = best(world, n, [float(features(s, b, c.variance, x) @ federated[region(c, x)]) for x in X])
            y, regret = world.pull(n, t, arm)
            out.pulls.append((n, t, arm, y, regret))
            points[n].append(X[arm])
            rewards[n].append(y)
            if t >= c.initial:
                phis = [features(s, b, c.variance, x) for x in points[n]]
                drawn_now.append((n, draw(phis, rewards[n], c.noise_variance, rngs[n].standard_normal(M))))
                out.send("drawn_weights", n, SERVER, M)
        for n, omega in drawn_now:  # the server hears one after the other
            sent[n] = omega
            fresh[n] += 1
            if min(fresh) == 0 and max(fresh) < c.patience:
                continue
            out.rounds += 1
            phi = weights(c, agents, P, out.rounds)
            heard = [n for n in range(agents) if sent[n] is not None]
            if not c.private:  # else an agent that is missing would change how much the others count
                phi = [
                    [row[n] / sum(row[k] for k in heard) if n in heard else 0.0 for n in range(agents)] for row in phi
                ]
            omegas = [np.zeros(M) if omega is None else omega for omega in sent]
            federated = average(c, phi, omegas, server)
            fresh = [0] * agents
            for m in range(agents):
                out.send("region_weights", SERVER, m, P * M)
    return out


def average(c: Config, phi: list[list[float]], omegas: list[FloatArray], rng: Any) -> list[FloatArray]:
    """The average for each region."""
    P, M = len(phi), len(omegas[0])
    if not c.private:
        return [sum((share * omega for share, omega in zip(row, omegas, strict=True)), np.zeros(M)) for row in phi]
    chosen = [coin < c.q for coin in rng.random(len(omegas))]
    noise = rng.standard_normal((P, M))
    found = []
    for p in range(P):
        total = np.zeros(M)
        for n, omega in enumerate(omegas):
            if chosen[n]:
                length = math.sqrt(float(omega @ omega))
                total = total + phi[p][n] * omega / max(1.0, length / (c.S / math.sqrt(P))) / c.q
        found.append(total + c.z * max(phi[p]) * c.S / c.q * noise[p])
    return found
