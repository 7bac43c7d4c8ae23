"""Points that are known in advance: posteriors over a fixed domain."""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.finite_domain import Domain, DomainPosterior
from coband.simulator.maths.posteriors.observations import Observations

GAMMA, LAM = 2.0, 0.01


def instance(points: int, turns: int) -> tuple[FloatArray, FloatArray]:
    """Points in [0, 1]^3 (points, 3), and a reward of each at each turn (turns, points)."""
    rng = np.random.default_rng(0)
    X = rng.random((points, 3))
    return X, np.sin(5.0 * X).sum(axis=1) + 0.1 * rng.standard_normal((turns, points))


def kept(X: FloatArray, rewards: FloatArray) -> list[int]:
    """UCB over all points of a domain, with its posterior kept up to date."""
    arms, chosen = ArmSet.fixed(X), []
    posterior = DomainPosterior(Domain(Gaussian(gamma=GAMMA), arms), LAM)
    for row in rewards:
        mean, variance = posterior.predict(arms)
        arm = int(np.argmax(mean + np.sqrt(variance)))
        chosen.append(arm)
        posterior.update(Observations.pull(arms, arm, float(row[arm])))
    return chosen


def append_v(X: FloatArray, rewards: FloatArray) -> list[int]:
    """The same with a row of V = L^(-1) k(points, X) appended a turn: mean and variance are sums over its rows."""
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    K, V, z, chosen = np.exp(-GAMMA * squares), np.empty((0, len(X))), np.empty(0), list[int]()
    for row in rewards:
        mean, variance = V.T @ z, np.maximum(1.0 - (V * V).sum(axis=0), 0.0) / LAM
        arm = int(np.argmax(mean + np.sqrt(variance)))
        chosen.append(arm)
        pivot = np.sqrt(K[arm, arm] + LAM - V[:, arm] @ V[:, arm])
        z = np.append(z, (row[arm] - V[:, arm] @ z) / pivot)
        V = np.vstack([V, (K[arm] - V[:, arm] @ V) / pivot])
    return chosen


def domain(points: int, turns: int) -> Measured:
    """Both forms for as many turns; append-V grows by a row a turn, so that the ratio grows with the turns."""
    X, rewards = instance(points, turns)
    fast, chosen = seconds(lambda: kept(X, rewards), 1)
    slow, expected = seconds(lambda: append_v(X, rewards), 1)
    return Measured(slow, fast, chosen == expected, f"{1e3 * fast / turns:.2f} ms a turn")


CASES: Cases = {
    "domain": (lambda: domain(500, 1000), "exact GP over a fixed domain, M=500, T=1000, against append-V; target 10"),
}
