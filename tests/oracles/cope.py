"""CoKernelFC and CoKernelFB (Du et al. 2023, Algorithms 1 and 2), with the kernel formulas of appendix C.2 and plain
loops.

The optimal design is not unique (equal arms may share their weight in any way), so the samples of each round are taken
from the run under test and checked here: their number against line 5 with this module's own rho, their split against
equation 6. Everything else - estimates, eliminations, stop, messages - is recomputed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log, log2

import numpy as np
from scipy.optimize import minimize

from tests.oracles.posterior import FloatArray

Counts = list[list[int]]  # samples of one round: [agent][arm]
Pull = Callable[[int, int, list[int]], list[float]]  # (agent, round from 1, counts) -> means


@dataclass
class CopeRun:
    """What a run did: estimates and alive arms after each round, messages (source, destination, scalars)."""

    rounds: int = 0
    alive: list[list[list[int]]] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    messages: list[tuple[int, int, int]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


def inverse_norms(K: FloatArray, weights: FloatArray, xi: float, pairs: list[tuple[int, int]]) -> FloatArray:
    """||phi_i - phi_j||^2 in the norm of (xi I + sum_x w_x phi_x phi_x^T)^-1, by appendix C.2 (kernel values alone)."""
    roots = np.sqrt(weights)
    K_w = roots[:, None] * K * roots
    values = []
    for i, j in pairs:
        k_w = roots * (K[i] - K[j])
        plain = K[i, i] - 2 * K[i, j] + K[j, j]
        values.append((plain - k_w @ np.linalg.solve(xi * np.eye(len(K)) + K_w, k_w)) / xi)
    return np.array(values)


def rho(K: FloatArray, pairs: list[tuple[int, int]], xi: float) -> float:
    """The min-max value by a general solver (SLSQP on t and lambda), started at the uniform design."""
    n = len(K)
    if not pairs:
        return 0.0
    start = np.full(n, 1 / n)
    unit = inverse_norms(K, start, xi, pairs).max()

    def slack(v: FloatArray) -> FloatArray:
        return v[-1] - inverse_norms(K, np.maximum(v[:-1], 0), xi, pairs) / unit

    def slopes(v: FloatArray) -> FloatArray:
        w = np.maximum(v[:-1], 1e-12)
        roots = np.sqrt(w)
        solve = np.linalg.inv(xi * np.eye(n) + roots[:, None] * K * roots)
        # equation 10: (phi_i - phi_j)^T A^-1 phi_x
        rows = [
            np.append(((K[i] - K[j]) - (roots * (K[i] - K[j])) @ solve @ (roots[:, None] * K)) ** 2 / xi**2 / unit, 1)
            for i, j in pairs
        ]
        return np.array(rows)

    found = minimize(
        lambda v: v[-1],
        np.append(start, 1.0),
        jac=lambda v: np.append(np.zeros(n), 1.0),
        bounds=[(0, 1)] * n + [(0, None)],
        constraints=[
            {"type": "ineq", "fun": slack, "jac": slopes},
            {"type": "eq", "fun": lambda v: v[:-1].sum() - 1, "jac": lambda v: np.append(np.ones(n), 0)},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    weights = np.maximum(found.x[:-1], 0)
    return float(inverse_norms(K, weights / weights.sum(), xi, pairs).max())


def alive_pairs(alive: list[list[int]], n: int) -> list[tuple[int, int]]:
    return [(v * n + i, v * n + j) for v, arms in enumerate(alive) for a, i in enumerate(arms) for j in arms[a + 1 :]]


def estimate(K: FloatArray, counts: FloatArray, means: FloatArray, xi: float) -> FloatArray:
    """F_r(x) = k_r(x) (K^(r) + N^(r) xi I)^-1 y for all pairs (line 13 and equation 3)."""
    roots = np.sqrt(counts)
    K_r = roots[:, None] * K * roots
    solved = np.linalg.solve(K_r + counts.sum() * xi * np.eye(len(K)), roots * means)
    return np.array([(roots * K[x]) @ solved for x in range(len(K))])


def check_split(
    K: FloatArray, counts: FloatArray, best: float, pairs: list[tuple[int, int]], xi: float, epsilon: float
) -> None:
    """Equation 6 against the optimal value: N times the largest variance is at most 2 (1 + epsilon) rho."""
    if pairs:
        total = counts.sum()
        assert total * inverse_norms(K, counts, total * xi, pairs).max() <= 2 * (1 + epsilon) * best * 1.001


def exchange(out: CopeRun, agents: int, n: int) -> None:
    """Line 10: every agent sends its 2n numbers to all others."""
    out.messages += [(v, u, 2 * n) for v in range(agents) for u in range(agents) if u != v]


def pull_all(pull: Pull, round: int, counts: Counts) -> FloatArray:
    return np.concatenate([pull(v, round, counts[v]) for v in range(len(counts))])


def fixed_confidence(
    K: FloatArray,
    agents: int,
    pull: Pull,
    samples: list[Counts],
    delta: float,
    epsilon: float,
    xi: float,
    individual: bool,
) -> CopeRun:
    """Algorithm 1; ``individual``: every agent designs for its own arms."""
    n = len(K) // agents
    alive = [list(range(n)) for _ in range(agents)]
    out = CopeRun()
    r = 0
    while any(len(arms) > 1 for arms in alive):
        r += 1
        delta_r = delta / (2 * r**2)
        counts = np.array(samples[r - 1]).ravel().astype(float)
        scale = 32 * (2**r) ** 2 * (1 + epsilon) ** 2 * log(2 * n**2 * agents / delta_r)
        parts = [list(range(v * n, v * n + n)) for v in range(agents)] if individual else [list(range(len(K)))]
        for v, part in enumerate(parts):
            whose = [alive[v]] if individual else alive
            inner = alive_pairs(whose, n)
            if not inner:
                assert counts[part].sum() == 0
                continue
            sub = K[np.ix_(part, part)]
            best = rho(sub, inner, xi)
            tau = len(part) * (1 + epsilon) / epsilon
            assert abs(counts[part].sum() - max(scale * best, tau)) <= 1e-3 * max(scale * best, tau) + 1
            check_split(sub, counts[part], best, inner, xi, epsilon)
        means = pull_all(pull, r, samples[r - 1])
        exchange(out, agents, n)
        F = estimate(K, counts, means, xi).reshape(agents, n)
        for v in range(agents):
            alive[v] = [x for x in alive[v] if not any(F[v, y] - F[v, x] >= 2.0**-r for y in alive[v])]
        out.alive.append([list(arms) for arms in alive])
        out.totals.append(int(counts.sum()))
    out.rounds = r
    out.answers = [arms[0] for arms in alive]
    return out


def fixed_budget(
    K: FloatArray,
    agents: int,
    pull: Pull,
    samples: list[Counts],
    budget: int,
    epsilon: float,
    xi: float,
    individual: bool,
    own_task: bool,
    spend: bool,
) -> CopeRun:
    """Algorithm 2; every agent designs for its own arms; R from any one agent's pairs; two arms kept until the last
    round."""
    n = len(K) // agents

    def omega(arms: list[int]) -> float:
        return rho(K, [(i, j) for a, i in enumerate(arms) for j in arms[a + 1 :]], xi)

    planned_for = [list(range(v * n, v * n + n)) for v in range(agents)] if own_task else [list(range(len(K)))]
    R = max(1, ceil(log2(max(1.0, *map(omega, planned_for))) - 1e-3))
    parts = [list(range(v * n, v * n + n)) for v in range(agents)] if individual else [list(range(len(K)))]
    N = budget * agents // len(parts) // R
    alive = [list(range(n)) for _ in range(agents)]
    out = CopeRun()
    r = 1
    while r <= R and any(len(arms) > 1 for arms in alive):
        counts = np.array(samples[r - 1]).ravel().astype(float)
        for v, part in enumerate(parts):
            inner = alive_pairs([alive[v]] if individual else alive, n)
            assert counts[part].sum() == (N if inner else 0)
            sub = K[np.ix_(part, part)]
            check_split(sub, counts[part], rho(sub, inner, xi), inner, xi, epsilon)
        means = pull_all(pull, r, samples[r - 1])
        exchange(out, agents, n)
        F = estimate(K, counts, means, xi).reshape(agents, n)
        for v in range(agents):
            order = sorted(alive[v], key=lambda x: -F[v, x])
            half = omega([v * n + x for x in order]) / 2
            keep = [i for i in range(1, len(order) + 1) if omega([v * n + x for x in order[:i]]) <= half * 1.001]
            fewest = 2 if spend and r < R else 1
            alive[v] = order[: max(fewest, *keep, 1)] if len(order) > 1 else order
        out.alive.append([sorted(arms) for arms in alive])
        out.totals.append(int(counts.sum()))
        out.answers = [arms[0] for arms in alive]
        r += 1
    out.rounds = r - 1
    return out
