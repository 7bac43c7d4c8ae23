"""The textbook forms: the oracles' plain loops, with one dense solve per arm set instead of one per arm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from tests.oracles import async_kernel_ucb, coop_kernel_ucb, cope, local, posterior
from tests.oracles.posterior import Kernel, Statistics

FloatArray = NDArray[np.float64]


def gaussian(gamma: float) -> Kernel:
    """exp(-gamma ||x - y||^2) through one matrix product, 1 exactly for equal points in equal places."""

    def kernel(X: FloatArray, Y: FloatArray) -> FloatArray:
        squares = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - 2.0 * X @ Y.T
        np.maximum(squares, 0.0, out=squares)
        if X.shape == Y.shape and np.array_equal(X, Y):
            np.fill_diagonal(squares, 0.0)
        return np.exp(-gamma * squares)

    return kernel


def batched_nystroem(X: FloatArray, model: Statistics, lam: float) -> tuple[FloatArray, FloatArray]:
    """Li et al. 2023, eq. 2 with one solve for all rows of X."""
    Z = model.dictionary.embed(X)
    prior = posterior.prior_variance(X, model.dictionary.kernel)
    if not len(model.b):
        return np.zeros(len(X)), np.sqrt(prior / lam)
    solved = np.linalg.solve(model.A + lam * np.eye(len(model.b)), np.column_stack([model.b, Z.T]))
    variance = (prior - np.einsum("ij,ji->i", Z @ model.A, solved[:, 1:])) / lam
    return Z @ solved[:, 0], np.sqrt(np.maximum(variance, 0.0))


def async_run(turns: list[list[int]], world: Any, kernel: Any, config: Any, coins: Any, agents: int) -> Any:
    """Async-KernelUCB by the oracle, with N stored statistics and eigen-form transforms."""
    with mock.patch.object(async_kernel_ucb, "nystroem", batched_nystroem):
        return async_kernel_ucb.run(turns, world, kernel, config, coins, agents)


class VectorLearner:
    """The oracle's learner, one inverse grown by Schur complements, with one kernel call per arm or observation.

    ``K`` takes an observation, the agents (n,) and the arms (n, d) of others to the kernel's values (n,).
    """

    def __init__(self, K: Any, lam: float) -> None:
        self.K, self.lam, self.seen = K, lam, 0
        self.inverse = np.empty((0, 0))
        self.agents, self.points, self.y = np.empty(0, dtype=int), np.empty((0, 0)), np.empty(0)

    def kappa(self, at: Any) -> FloatArray:
        values: FloatArray = self.K(at, self.agents, self.points)
        return values

    def add(self, new: Any) -> None:
        own = 1.0 + self.lam
        if not self.seen:
            self.inverse, self.points = np.array([[1.0 / own]]), new.x[None]
        else:
            kappa = self.kappa(new)
            solved = self.inverse @ kappa
            K22 = 1.0 / (own - kappa @ solved)
            K11 = self.inverse + K22 * np.outer(solved, solved)
            K12 = -K22 * solved
            self.inverse = np.block([[K11, K12[:, None]], [K12[None, :], np.array([[K22]])]])
            self.points = np.vstack([self.points, new.x])
        self.agents, self.y, self.seen = np.append(self.agents, new.agent), np.append(self.y, new.y), self.seen + 1

    def moments(self, at: Any) -> tuple[float, float]:
        if not self.seen:
            return 0.0, 1.0
        kappa = self.kappa(at)
        solved = self.inverse @ kappa
        return float(solved @ self.y), float(np.sqrt(max(0.0, 1.0 - kappa @ solved)))


def coop_run(
    trials: int,
    graph: Any,
    world: Any,
    gamma: float,
    eta: float,
    coins: Any,
    accepts: list[set[int]],
    centres: dict[int, int] | None = None,
) -> Any:
    """Algorithms 1 and 3 of Dubey and Pentland 2020 at one hop by the oracle, with Gaussian kernels of arms and of
    tasks."""
    tasks = gaussian(gamma)(world.contexts, world.contexts)

    def kernel(at: Any, agents: Any, points: FloatArray) -> FloatArray:
        differences = points - at.x
        values: FloatArray = tasks[at.agent, agents] * np.exp(-gamma * np.einsum("ij,ij->i", differences, differences))
        return values

    apart = [local.distances(graph.adjacency, agent) for agent in range(graph.nodes)]
    config = SimpleNamespace(eta=eta, lam=1.0, hops=1)
    with mock.patch.multiple(coop_kernel_ucb, Learner=VectorLearner, distances=lambda _, agent: apart[agent]):
        return coop_kernel_ucb.run(trials, graph.adjacency, world, kernel, config, coins, accepts, centres)


def exact_run(arm_sets: FloatArray, rewards: FloatArray, gamma: float, lam: float, alpha: float) -> list[int]:
    """Kernel UCB with a dense solve per turn."""
    kernel, chosen = gaussian(gamma), []
    points, observed = np.empty((0, arm_sets.shape[2])), np.empty(0)
    K = np.empty((0, 0))
    for arms, row in zip(arm_sets, rewards, strict=True):
        k = kernel(points, arms)
        solved = np.linalg.solve(K + lam * np.eye(len(K)), np.column_stack([observed, k]))
        mean = k.T @ solved[:, 0]
        variance = np.maximum(1.0 - (k * solved[:, 1:]).sum(axis=0), 0.0) / lam
        arm = int(np.argmax(mean + alpha * np.sqrt(variance)))
        chosen.append(arm)
        cross = kernel(points, arms[arm][None])
        K = np.block([[K, cross], [cross.T, np.ones((1, 1))]])
        points, observed = np.vstack([points, arms[arm]]), np.append(observed, row[arm])
    return chosen


def descend(
    gram: FloatArray, pairs: list[tuple[int, int]], xi: float, steps: int, rate: float
) -> tuple[FloatArray, float]:
    """Du et al. 2023, appendix C.2: projected gradient descent on kernel values; the best weights seen and their
    value."""
    n = len(gram)
    weights = np.full(n, 1.0 / n)
    best, least = weights, np.inf
    for step in range(steps):
        values = cope.inverse_norms(gram, weights, xi, pairs)
        worst = int(np.argmax(values))
        if values[worst] < least:
            best, least = weights, float(values[worst])
        roots = np.sqrt(weights)
        i, j = pairs[worst]
        k = gram[i] - gram[j]
        solved = np.linalg.solve(xi * np.eye(n) + roots[:, None] * gram * roots, roots * k)
        slopes = ((k - (gram * roots) @ solved) / xi) ** 2
        weights = onto_simplex(weights + rate / np.sqrt(1.0 + step) * slopes / np.linalg.norm(slopes))
    return best, least


def onto_simplex(point: FloatArray) -> FloatArray:
    """The nearest point of the simplex (Held, Wolfe, Crowder 1974)."""
    ordered = np.sort(point)[::-1]
    thresholds = (np.cumsum(ordered) - 1.0) / np.arange(1, len(point) + 1)
    threshold = thresholds[np.flatnonzero(ordered > thresholds)[-1]]
    projected: FloatArray = np.maximum(point - threshold, 0.0)
    return projected


def fed_lin_ucb_loop(agents: int, turns: int, d: int, n: int, alpha: float, lam: float, threshold: float) -> int:
    """FedLinUCB as one would write it instead of a scenario, with numpy and nothing else; its exchanges."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(d)
    theta /= np.linalg.norm(theta)
    V_server, b_server = lam * np.eye(d), np.zeros(d)
    V, V_news = np.array([V_server] * agents), np.zeros((agents, d, d))
    inverse, estimate, b_news = np.array([np.eye(d) / lam] * agents), np.zeros((agents, d)), np.zeros((agents, d))
    log_det, exchanges, regret = [np.linalg.slogdet(V_server)[1]] * agents, 0, 0.0
    for _ in range(turns):
        i = rng.integers(agents)
        arms = rng.standard_normal((n, d))
        arms *= rng.random((n, 1)) ** (1 / d) / np.linalg.norm(arms, axis=1, keepdims=True)
        means = np.cos(3 * arms @ theta)
        widths = np.sqrt(((arms @ inverse[i]) * arms).sum(axis=1))
        arm = np.argmax(arms @ estimate[i] + alpha * widths)
        x, y = arms[arm], means[arm] + 0.1 * rng.standard_normal()
        regret += means.max() - means[arm]
        V_news[i] += np.outer(x, x)
        b_news[i] += y * x
        if np.linalg.slogdet(V[i] + V_news[i])[1] > np.log(1 + threshold) + log_det[i]:
            V_server, b_server = V_server + V_news[i], b_server + b_news[i]
            V_news[i], b_news[i], V[i] = 0.0, 0.0, V_server
            inverse[i] = np.linalg.inv(V_server)
            estimate[i], log_det[i] = inverse[i] @ b_server, np.linalg.slogdet(V_server)[1]
            exchanges += 1
    return exchanges
