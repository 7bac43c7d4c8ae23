"""The baselines of Du et al. 2023 in which every agent works alone, for one agent, with plain loops on its kernel
matrix.

As in ``tests.oracles.cope`` the samples of each phase are taken from the run under test and checked: their number
against this module's own design values, their split against equation 6.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import ceil, floor, log, log2, pi, sqrt

import numpy as np
from scipy.optimize import minimize

from tests.oracles.cope import check_split, rho
from tests.oracles.posterior import FloatArray

Pull = Callable[[int, list[int]], list[float]]  # (phase from 1, counts) -> means
TINY = 1e-8  # stands for no regularisation in the kernel formulas of appendix C.2


@dataclass
class Alone:
    """The alive arms after each phase, and the answer."""

    alive: list[list[int]] = field(default_factory=list)
    answer: int = -1


def least_squares(K: FloatArray, counts: list[int], means: list[float]) -> FloatArray:
    """F = Phi (Phi^T N Phi)^+ Phi^T N y with Phi Phi^T = K."""
    Phi = features(K)
    N = np.diag(np.array(counts, dtype=float))
    return Phi @ np.linalg.pinv(Phi.T @ N @ Phi) @ Phi.T @ N @ np.array(means)


def pairs(arms: list[int]) -> list[tuple[int, int]]:
    return [(i, j) for i in arms for j in arms if i < j]


def check_total(counts: list[int], wanted: float, arms: int, epsilon: float) -> None:
    least = max(wanted, arms * (1 + epsilon) / epsilon)
    assert abs(sum(counts) - least) <= 1e-3 * least + 1


def rage(
    K: FloatArray,
    pull: Pull,
    samples: list[list[int]],
    agents: int,
    delta: float,
    epsilon: float,
    constants: str,
    by_width: bool,
) -> Alone:
    """Fiez et al. 2019: as printed, as in their public code, or with the numbers of Du et al. 2023, Algorithm 1."""
    n, alive, out, r = len(K), list(range(len(K))), Alone(), 0
    while len(alive) > 1:
        r += 1
        counts = samples[r - 1]
        best = rho(K, pairs(alive), TINY)
        if constants == "published":
            L = log(r**2 * n**2 / (delta / agents))
            wanted, gap = 8 * (2 ** (r + 1)) ** 2 * best * (1 + epsilon) * L, 2.0 ** -(r + 2)
        elif constants == "public_code":
            L = log(2 * n**2 / (delta / agents / r**2))
            wanted, gap = max(8 * (2 ** (r - 1)) ** 2 * best * (1 + epsilon) * L, 2 * n / epsilon), 2.0**-r
        else:
            L = log(2 * n**2 * agents * 2 * r**2 / delta)
            wanted, gap = 32 * 4**r * (1 + epsilon) ** 2 * best * L, 2.0**-r
        check_total(counts, wanted, n, epsilon)
        check_split(K, np.array(counts, dtype=float), best, pairs(alive), TINY, epsilon)
        F = least_squares(K, counts, pull(r, counts))
        widths = {(x, y): gap for x in alive for y in alive}
        if by_width:
            norms = dict(zip(pairs(alive), plain_norms(K, counts, pairs(alive)), strict=True))
            widths = {(x, y): sqrt(2 * L * norms[min(x, y), max(x, y)]) for x in alive for y in alive if x != y}
        alive = [x for x in alive if not any(F[y] - F[x] >= widths[x, y] for y in alive if y != x)]
        out.alive.append(alive)
    out.answer = alive[0]
    return out


def features(K: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(K)
    root: FloatArray = vectors[:, values > 1e-10] * np.sqrt(values[values > 1e-10])
    return root


def plain_norms(K: FloatArray, weights: list[int], of: list[tuple[int, int]]) -> list[float]:
    """||phi_i - phi_j||^2 in the norm of (sum_x w_x phi_x phi_x^T)^-1."""
    Phi = features(K)
    inverse = np.linalg.inv(sum(w * np.outer(phi, phi) for w, phi in zip(weights, Phi, strict=True)))
    return [float((Phi[i] - Phi[j]) @ inverse @ (Phi[i] - Phi[j])) for i, j in of]


def smallest_norm(K: FloatArray, F: FloatArray) -> float:
    """||theta|| of the smallest theta with Phi theta = F."""
    return sqrt(float(F @ np.linalg.pinv(K, rcond=1e-10) @ F))


def alba(
    K: FloatArray, pull: Pull, samples: list[list[int]], agents: int, delta: float, epsilon: float, poly: bool, L: float
) -> Alone:
    """Tao et al. 2018 (ALBA); ``poly``: Du et al. 2021 (PolyALBA), whose stage 0 looks for d arms."""
    d, alive, out, phase = int(np.linalg.matrix_rank(K, tol=1e-9)), list(range(len(K))), Alone(), 0
    c_0 = max(4 * L**2, 3)
    q = 0
    while len(alive) > 1:
        delta_q = 6 / pi**2 * delta / agents / (q + 1) ** 2
        r = 0
        while len(alive) > max(1, floor(d / 2**q)):
            r += 1
            phase += 1
            counts = samples[phase - 1]
            e, delta_r = 2.0**-r / 2, 6 / pi**2 * delta_q / r**2
            span = int(np.linalg.matrix_rank(K[np.ix_(alive, alive)], tol=1e-9))
            wanted = c_0 * (2 + (6 + e / 2) * span) / e**2 * log(5 * len(alive) / delta_r)
            check_total(counts, wanted, len(alive), epsilon)
            assert all(counts[x] == 0 for x in range(len(K)) if x not in alive)
            means = pull(phase, counts)
            sub = [counts[x] for x in alive]
            F = dict(zip(alive, least_squares(K[np.ix_(alive, alive)], sub, [means[x] for x in alive]), strict=True))
            order = sorted(alive, key=lambda x: -F[x])
            if not poly or q > 0:
                alive = [x for x in alive if F[order[0]] - F[x] < 2.0**-r]
            elif F[order[0]] - F[order[d]] >= 2.0**-r:
                alive = sorted(order[:d])
            out.alive.append(alive)
        q += 1
    out.answer = alive[0]
    return out


def alba_of_the_code(
    K: FloatArray,
    pull: Pull,
    samples: list[list[int]],
    agents: int,
    delta: float,
    L: float,
    G: Callable[..., FloatArray],
) -> Alone:
    """ALBA as the public code of Fiez et al. has it; ``G``: the G-optimal weights of a kernel matrix.

    Which arms a step draws is random, so the draws are those of the run; their number is checked.
    """
    X = features(K)
    d, alive, out, phase = X.shape[1], list(range(len(K))), Alone(), 0
    q = 0
    while len(alive) > 1:
        delta_q, size, s = 6 * delta / agents / (pi**2 * (q + 1) ** 2), len(alive), 1
        while len(alive) > max(1, floor(d / 2**q)):
            counts = samples[phase]
            phase += 1
            delta_s, e_s = 6 * delta_q / (pi**2 * s**2), 1 / 2**s
            c_0 = max(4 * L**2, 3)
            l_s = 4 * c_0 * (2 + (6 + 4 / 1.1**s) * d) * (1.1**s / 4) ** 2
            assert sum(counts) == ceil(l_s * log(5 * size**2 / (2 * delta_s)))
            rank = np.linalg.matrix_rank(X[alive], tol=1e-9)
            span = [x for x in range(len(K)) if np.linalg.matrix_rank(X[[*alive, x]], tol=1e-9) == rank]
            assert all(counts[x] == 0 for x in range(len(K)) if x not in span)
            weights = np.zeros(len(K))
            weights[span] = G(K[np.ix_(span, span)])
            M_inv = np.linalg.pinv(X.T @ np.diag(weights) @ X, rcond=1e-10)
            means = pull(phase, counts)
            theta = M_inv @ sum(c * m * x for c, m, x in zip(counts, means, X, strict=True)) / sum(counts)
            top = max(alive, key=lambda x: X[x] @ theta)
            kept = []
            for x in alive:
                y = X[top] - X[x]
                w = sqrt(max(y @ M_inv @ y, 0.0))
                tail = sqrt(2) * sqrt(w**2 / l_s * sqrt(3 * d / l_s) + w**2 / l_s)
                one = sqrt(2) * L * w / sqrt(l_s) + 2 * L * (np.linalg.norm(y) + w * sqrt(d)) / (3 * l_s) + tail
                E = sum(weights[i] * (y @ M_inv @ X[i] * (abs(X[i] @ theta) + e_s / 2)) ** 2 for i in range(len(K)))
                two = sqrt(2 * E / l_s) + (2 * (abs(y @ theta) + e_s / 2) + L * w * sqrt(d)) / (3 * l_s) + tail
                if x == top or not min(one, two) < y @ theta:
                    kept.append(x)
            alive = kept
            out.alive.append(alive)
            s += 1
        q += 1
    out.answer = alive[0]
    return out


@cache
def normals(dimension: int) -> FloatArray:
    draws = np.random.default_rng(2020).standard_normal((6000, dimension))
    return np.concatenate([draws, -draws])


def width(K: FloatArray, weights: FloatArray, arms: list[int]) -> float:
    """E max over arms of phi^T A^-1/2 eta, by random draws."""
    Phi = features(K)
    values, vectors = np.linalg.eigh(Phi.T @ np.diag(weights) @ Phi)
    half = vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T
    return float((normals(Phi.shape[1]) @ (Phi[arms] @ half).T).max(axis=1).mean())


def gamma(K: FloatArray, arms: list[int]) -> float:
    """The square of the smallest width, by a general solver."""
    return 0.0 if len(arms) < 2 else _gamma(K.tobytes(), len(K), tuple(arms))


@cache
def _gamma(kernel: bytes, n: int, arms: tuple[int, ...]) -> float:
    K = np.frombuffer(kernel).reshape(n, n)

    def value(v: FloatArray) -> float:
        return width(K, np.maximum(v, 1e-5) / np.maximum(v, 1e-5).sum(), list(arms))

    found = minimize(value, np.full(n, 1 / n), bounds=[(1e-5, 1)] * n, method="L-BFGS-B", options={"maxiter": 60})
    return float(found.fun) ** 2


@dataclass
class PeaceRule:
    """Which fixed-budget Peace: the authors' code, or as Du et al. 2023 has it."""

    by_width: bool = True
    pooled: bool = True
    rounded_up: bool = True
    spend: bool = True


def peace(K: FloatArray, pull: Pull, samples: list[list[int]], budget: int, epsilon: float, rule: PeaceRule) -> Alone:
    """Katz-Samuels et al. 2020, fixed-budget Peace."""
    n = len(K)
    alive, out, phase = list(range(n)), Alone(), 0

    def complexity(arms: list[int]) -> float:
        return gamma(K, arms) if rule.by_width else rho(K, pairs(sorted(arms)), TINY)

    everything = complexity(alive)
    R = ceil(max(log2(everything), 2)) if rule.by_width else max(1, ceil(log2(max(everything, 1.0)) - 1e-3))
    total, sums = [0] * n, [0.0] * n
    while phase < R and len(alive) > 1:
        phase += 1
        counts = samples[phase - 1]
        assert sum(counts) == budget // R
        best = complexity(alive)
        if rule.by_width:
            assert width(K, np.array(counts) / sum(counts), alive) ** 2 <= best * 1.05
        else:
            check_split(K, np.array(counts, dtype=float), best, pairs(alive), TINY, epsilon)
        means = pull(phase, counts)
        if rule.pooled:
            total = [t + c for t, c in zip(total, counts, strict=True)]
            sums = [s + c * m for s, c, m in zip(sums, counts, means, strict=True)]
            F = least_squares(K, total, [s / max(t, 1) for s, t in zip(sums, total, strict=True)])
        else:
            F = least_squares(K, counts, means)
        order = sorted(alive, key=lambda x: -F[x])
        limit = max(ceil(best / 2 * 0.9999), 1) if rule.rounded_up else best / 2
        fewest = 2 if rule.spend and phase < R else 1
        lengths = [i for i in range(1, len(order)) if complexity(sorted(order[:i])) <= limit * 1.001]
        alive = order[: min(max([fewest, *lengths]), len(order))]
        out.alive.append(sorted(alive))
        out.answer = order[0]
    return out


def uniform(K: FloatArray, pull: Pull, samples: list[list[int]], budget: int, own_means: bool) -> Alone:
    """All arms equally often, once; the largest estimate by least squares or the largest mean."""
    counts = samples[0]
    assert sum(counts) == budget
    assert max(counts) - min(counts) <= 1
    means = pull(1, counts)
    return Alone(answer=int(np.argmax(means if own_means else least_squares(K, counts, means))))
