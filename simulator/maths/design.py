"""Min-max designs: how to spread pulls over arms so that all differences of interest are estimated well.

For arms with features phi_i, weights lambda on the simplex, A(lambda) = xi I + sum_i lambda_i phi_i phi_i^T and
differences y_p = phi_i - phi_j (paper 003, Algorithm 1, line 4; the XY-optimal design of Soare et al. 2014 for xi = 0):

    rho = min_lambda max_p ||y_p||^2_{A(lambda)^-1}

A kernel enters through its Gram matrix: :func:`root` gives finite features with the same inner products, and inside
their span the formulas of appendix C.2 are the same numbers. The paper's gradient descent has no stopping rule with a
guarantee and stalls where pairs tie; here a log-barrier method with Newton steps certifies its result by a dual bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from simulator.maths.storage import FloatArray

TOLERANCE = 1e-5
_SHRINK = 0.1
_NEWTON_STEPS = 60
_OUTER_STEPS = 40
_RANK = 1e-12  # of the largest eigenvalue or feature


class DesignError(ArithmeticError):
    """A design could not be found to the accuracy asked for, or does not hold what it promises."""


@dataclass(frozen=True)
class Design:
    """A solution of the min-max problem.

    Attributes:
        weights: lambda, (m,), positive, of sum 1.
        value: max_p ||y_p||^2 at these weights, an upper bound of rho.
        bound: certified lower bound of rho.
    """

    weights: FloatArray
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative duality gap, (value - bound) / value."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0


def root(gram: FloatArray) -> FloatArray:
    """Features (m, rank) whose inner products are ``gram`` (m, m), positive semidefinite, up to 1e-12 of its norm."""
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    kept = values > _RANK * max(values[-1], 0.0)
    features: FloatArray = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    return features


def differences(features: FloatArray, groups: list[list[int]]) -> FloatArray:
    """phi_i - phi_j of every pair within each group of arms, (p, r), without zeros and repetitions up to sign."""
    pairs = [(i, j) for group in groups for place, i in enumerate(group) for j in group[place + 1 :]]
    if not pairs:
        return np.empty((0, features.shape[1]))
    first, second = np.array(pairs).T
    found = features[first] - features[second]
    rounded = np.round(found / (_RANK * max(np.abs(features).max(initial=0.0), np.finfo(float).tiny)))
    leading = rounded[np.arange(len(rounded)), np.argmax(np.abs(rounded), axis=1)]
    _, places = np.unique(rounded * np.where(leading < 0, -1.0, 1.0)[:, None], axis=0, return_index=True)
    places = np.sort(places)
    kept: FloatArray = found[places[leading[places] != 0]]
    return kept


def norms(features: FloatArray, weights: FloatArray, directions: FloatArray, ridge: float) -> FloatArray:
    """||y_p||^2 in the norm of (ridge I + sum_i weights_i phi_i phi_i^T)^-1 for every row of ``directions``, (p,)."""
    A = (features.T * weights) @ features
    A[np.diag_indices_from(A)] += ridge
    return np.asarray(np.vecdot(directions, cho_solve(cho_factor(A, lower=True), directions.T).T))


def min_max_design(
    features: FloatArray,
    directions: FloatArray,
    ridge: float,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> Design:
    """Solve the min-max problem to a relative duality gap of at most ``tolerance``.

    Args:
        features: phi, (m, r); they must span the directions when ``ridge`` is 0.
        directions: y, (p, r), none of them 0.
        ridge: xi >= 0.
        start: weights to start near, such as those of the round before; None for uniform ones.

    Raises:
        DesignError: the gap stays larger.
    """
    m = len(features)
    uniform = np.full(m, 1.0 / m)
    if not len(directions):
        return Design(uniform, 0.0, 0.0)
    weights = uniform if start is None else 0.9 * start + 0.1 * uniform
    problem = _Barrier(features, directions, ridge)
    scale = float(problem.values(weights).max())
    problem.scale(scale)
    best, value, bound, level, mu = weights, 1.0, 0.0, 1.5, 0.5 / (m + len(directions))
    for _ in range(_OUTER_STEPS):
        weights, level = problem.centre(weights, level, mu)
        upper, lower = problem.certificate(weights, level)
        bound = max(bound, lower)
        if upper <= value:
            best, value = weights, upper
        if value - bound <= tolerance * value:
            return Design(best / best.sum(), value * scale, min(bound, value) * scale)
        mu *= _SHRINK
    raise DesignError(f"the design's duality gap is {(value - bound) / value:.3g}, above the tolerance {tolerance:.3g}")


class _Barrier:
    """t/mu - sum_p log(t - g_p(lambda)) - sum_i log lambda_i on the simplex, with g_p = ||y_p||^2_{A(lambda)^-1}."""

    def __init__(self, features: FloatArray, directions: FloatArray, ridge: float) -> None:
        self._features, self._directions, self._ridge = features, directions, ridge

    def scale(self, value: float) -> None:
        """Divide all values by ``value``."""
        self._directions = self._directions / np.sqrt(value)

    def values(self, weights: FloatArray) -> FloatArray:
        """g_p, (p,)."""
        return norms(self._features, weights, self._directions, self._ridge)

    def _parts(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """g (p,), C = Phi A^-1 Y^T (m, p) with dg_p/dlambda_i = -C_ip^2, and R = Phi A^-1 Phi^T (m, m)."""
        Phi, Y = self._features, self._directions
        A = (Phi.T * weights) @ Phi
        A[np.diag_indices_from(A)] += self._ridge
        solved = cho_solve(cho_factor(A, lower=True), np.hstack([Y.T, Phi.T]))
        of_pairs, of_arms = solved[:, : len(Y)], solved[:, len(Y) :]
        return np.vecdot(Y, of_pairs.T), Phi @ of_pairs, Phi @ of_arms

    def certificate(self, weights: FloatArray, level: float) -> tuple[float, float]:
        """(upper, lower) bound of the minimum.

        For pair weights w on the simplex, min_lambda sum_p w_p g_p is a lower bound, and so is its linearisation:
        sum_p w_p (g_p + sum_i lambda_i C_ip^2) - max_i sum_p w_p C_ip^2. The barrier's own w_p ~ 1/(t - g_p) is used.
        """
        g, C, _ = self._parts(weights)
        w = 1.0 / (level - g)
        w /= w.sum()
        slopes = C**2 @ w
        return float(g.max()), float(w @ g + weights @ slopes - slopes.max())

    def centre(self, weights: FloatArray, level: float, mu: float) -> tuple[FloatArray, float]:
        """Newton's method with backtracking on (lambda, t), from a point inside."""
        for _ in range(_NEWTON_STEPS):
            g, C, R = self._parts(weights)
            slack = 1.0 / (level - g)
            m = len(weights)
            G = C**2
            H = 2.0 * ((C * slack) @ C.T) * R
            H[np.arange(m), np.arange(m)] += 1.0 / weights**2
            gradient = np.append(-(G @ slack) - 1.0 / weights, 1.0 / mu - slack.sum())
            step = _newton_step(H, G.T * slack[:, None], slack, gradient, weights)
            decrement = float(-gradient @ step)
            if decrement < 1e-6:
                break
            length = self._line_search(weights, level, mu, step, decrement)
            if length == 0.0:
                break
            weights, level = weights + length * step[:m], level + length * float(step[m])
        return weights, level

    def _line_search(self, weights: FloatArray, level: float, mu: float, step: FloatArray, decrement: float) -> float:
        direction, length = step[:-1], 1.0
        falling = direction < 0
        if falling.any():
            length = min(1.0, 0.99 * float(np.min(-weights[falling] / direction[falling])))
        slack = level - self.values(weights)
        while length > 1e-12:
            after = level + length * float(step[-1]) - self.values(weights + length * direction)
            if (after > 0).all():
                change = length * float(step[-1]) / mu - np.log(after / slack).sum()
                change -= np.log1p(length * direction / weights).sum()
                if change <= -0.1 * length * decrement:
                    return length
            length *= 0.5
        return 0.0


def _newton_step(
    H: FloatArray, J: FloatArray, slack: FloatArray, gradient: FloatArray, scale: FloatArray
) -> FloatArray:
    """Newton's step for (lambda, t) that keeps sum lambda.

    The Hessian is H + J^T J for lambda, with J^T slack for t: J^T J exceeds H by 1/mu^2 and would drown it, so the
    step solves the augmented system in which J stands by itself. Weights differ by orders, so they are scaled.
    """
    p, m = J.shape
    K = np.zeros((m + p + 2, m + p + 2))
    K[:m, :m] = H * scale * scale[:, None]
    K[m + 1 : m + 1 + p, :m] = J * scale
    K[m + 1 : m + 1 + p, m] = slack
    K[: m + 1, m + 1 : m + 1 + p] = K[m + 1 : m + 1 + p, : m + 1].T
    K[range(m + 1, m + 1 + p), range(m + 1, m + 1 + p)] = -1.0
    K[-1, :m] = K[:m, -1] = scale
    right = np.zeros(m + p + 2)
    right[:m], right[m] = -gradient[:m] * scale, -gradient[m]
    step = np.linalg.solve(K, right)[: m + 1]
    step[:m] *= scale
    return step


def apportion(weights: FloatArray, total: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Whole numbers near total * weights that add up to ``total`` (efficient apportionment, Pukelsheim, Rieder 1992).

    With s positive weights every count is at least weights_i * total * (1 - s/total).
    """
    support = np.flatnonzero(weights > 0)
    w = weights[support]
    counts = np.maximum(np.ceil((total - 0.5 * len(w)) * w), 1.0)
    while counts.sum() > total:
        counts[np.argmax((counts - 1.0) / w)] -= 1.0
    while counts.sum() < total:
        counts[np.argmin(counts / w)] += 1.0
    rounded = np.zeros(len(weights), dtype=np.int64)
    rounded[support] = counts
    return rounded


def fewest_samples(weights: FloatArray, epsilon: float) -> int:
    """tau: samples from which :func:`apportion` stays within 1 + epsilon, s (1 + epsilon)/epsilon for s weights."""
    return int(np.ceil(np.count_nonzero(weights) * (1.0 + epsilon) / epsilon))


def check_rounding(features: FloatArray, directions: FloatArray, ridge: float, weights: FloatArray,
                   counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], epsilon: float) -> float:  # fmt: skip
    """The factor of paper 003, equation 6, of whole counts against their weights.

    max_p ||y_p||^2_{(N xi I + sum_i N_i phi_i phi_i^T)^-1} <= 2 (1 + epsilon) times the same with N lambda_i for N_i.

    Raises:
        DesignError: it is larger than 2 (1 + epsilon).
    """
    if not len(directions):
        return 0.0
    total = int(counts.sum())
    try:
        rounded = norms(features, counts.astype(np.float64), directions, total * ridge).max()
    except np.linalg.LinAlgError:
        rounded = np.inf
    factor = float(rounded / norms(features, total * weights, directions, total * ridge).max())
    if not factor <= 2.0 * (1.0 + epsilon):
        raise DesignError(
            f"rounding to {total} samples makes the largest variance {factor:.4g} times as large; equation 6 of paper "
            f"003 allows {2.0 * (1.0 + epsilon):.4g}. Give more samples (a larger budget)."
        )
    return factor
