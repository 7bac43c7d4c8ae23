"""Min-max designs: how to spread pulls over arms so that all differences of interest are estimated well.

For arms with features phi_i, weights lambda on the simplex, A(lambda) = xi I + sum_i lambda_i phi_i phi_i^T and
differences y_p = phi_i - phi_j (Du et al. 2023, Algorithm 1, line 4; the XY-optimal design of Soare et al. 2014 for xi
= 0):

    rho = min_lambda max_p ||y_p||^2_{A(lambda)^-1}

A kernel enters through its Gram matrix: :func:`root` gives finite features with the same inner products, and inside
their span the formulas of appendix C.2 are the same numbers. The paper's gradient descent has no stopping rule with a
guarantee and stalls where pairs tie; here a primal-dual interior-point method certifies its result by a dual bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.matrices import solve_definite
from coband.simulator.scenario_errors import BrokenOff

TOLERANCE = 1e-8
_ACCEPTED = 1e-5  # gap that is good enough where rounding errors stop the method before
_STEPS = 200
_SHRINK = 0.1  # of mu, from one target to the next
_SPREAD = 1e4  # largest factor between dual values and those of the barrier
_ROUNDING = 1e-14  # of t and g, whose values lie near 1
_COUNTABLE = 2**53
_RANK = 1e-12  # of the largest eigenvalue or feature


class DesignError(BrokenOff):
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
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def differences(features: FloatArray, groups: list[list[int]]) -> FloatArray:
    """phi_i - phi_j of every pair within each group of arms, (p, r), without zeros and repetitions up to sign."""
    pairs = [(i, j) for group in groups for place, i in enumerate(group) for j in group[place + 1 :]]
    if not pairs:
        return np.empty((0, features.shape[1]))
    first, second = np.array(pairs).T
    found = features[first] - features[second]
    rounded = _rounded(found, features)
    leading = rounded[np.arange(len(rounded)), np.argmax(np.abs(rounded), axis=1)]
    _, places = np.unique(rounded * np.where(leading < 0, -1.0, 1.0)[:, None], axis=0, return_index=True)
    places = np.sort(places)
    kept: FloatArray = found[places[leading[places] != 0]]
    return kept


def _rounded(rows: FloatArray, scale: FloatArray) -> FloatArray:
    """Whole numbers that are equal where rows are, but for the rounding errors of numbers as large as ``scale``'s."""
    rounded: FloatArray = np.round(rows / (_RANK * max(np.abs(scale).max(initial=0.0), np.finfo(float).tiny)))
    return rounded


def norms(features: FloatArray, weights: FloatArray, directions: FloatArray, ridge: float) -> FloatArray:
    """||y_p||^2 in the norm of (ridge I + sum_i weights_i phi_i phi_i^T)^-1 for every row of ``directions``, (p,)."""
    found: FloatArray = np.vecdot(directions, solved(features, weights, ridge, directions.T).T)
    return found


def solved(features: FloatArray, weights: FloatArray, ridge: float, B: FloatArray) -> FloatArray:
    """(ridge I + sum_i weights_i phi_i phi_i^T)^(-1) B."""
    A = (features.T * weights) @ features
    A.flat[:: len(A) + 1] += ridge
    return solve_definite(A, B)


def min_max_design(
    features: FloatArray,
    directions: FloatArray,
    ridge: float,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> Design:
    """Solve the min-max problem to a relative duality gap of ``tolerance``, or as near as rounding errors allow.

    Args:
        features: phi, (m, r); they must span the directions when ``ridge`` is 0.
        directions: y, (p, r), none of them 0.
        ridge: xi >= 0.
        start: weights to start near, such as those of the round before; None for uniform ones.

    Raises:
        DesignError: the gap stays above 1e-5 (and ``tolerance``), or features do not span their space without a ridge.
    """
    m, given = len(features), features
    uniform = np.full(m, 1.0 / m)
    if not len(directions):
        return Design(uniform, 0.0, 0.0)
    # Equal arms would share their weight in any way; they count as one and get equal shares.
    _, places, arm, copies = np.unique(
        _rounded(features, features), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    weights = np.bincount(arm, uniform if start is None else 0.9 * start + 0.1 * uniform).astype(np.float64)
    features = features[places]
    try:
        scale = float(norms(features, weights, directions, ridge).max())
    except np.linalg.LinAlgError:
        raise DesignError("the features do not span their space; give a ridge, or those of root().") from None
    method = _InteriorPoint(features, directions / np.sqrt(scale), ridge, weights)
    best, value, bound = weights, 1.0, 0.0
    for _ in range(_STEPS):
        upper, lower = method.certificate()
        bound = max(bound, lower)
        if upper <= value:
            best, value = method.weights, upper
        if value - bound <= tolerance * value or not method.step():
            break
    found = Design((best / best.sum() / copies)[arm], value * scale, min(bound, value) * scale)
    if not found.gap <= max(tolerance, _ACCEPTED):
        if start is not None:  # one that a former round left near a corner; the middle is a better place
            return min_max_design(given, directions, ridge, None, tolerance)
        raise DesignError(f"the design's duality gap is {found.gap:.3g}, above {max(tolerance, _ACCEPTED):.3g}")
    return found


class _InteriorPoint:
    """A primal-dual method for: minimise t subject to g_p(lambda) <= t, lambda on the simplex.

    g_p = ||y_p||^2_{A(lambda)^-1} is convex. Pairs have dual weights w_p and arms s_i; for mu -> 0 a step solves
    Newton's equations of w_p (t - g_p) = s_i lambda_i = mu, and is as long as lowers the barrier function
    t/mu - sum_p log(t - g_p) - sum_i log lambda_i. Weights of the barrier alone, mu/(t - g_p), would lose more digits
    near the end than the gap has.
    """

    def __init__(self, features: FloatArray, directions: FloatArray, ridge: float, weights: FloatArray) -> None:
        self._features, self._directions, self._ridge = features, directions, ridge
        self.weights = weights
        self._look()
        self._level = 1.5 * float(self._g.max())
        slack = self._level - self._g
        self._mu = float(1.0 / (1.0 / slack).sum())
        self._of_pairs, self._of_arms = self._mu / slack, self._mu / weights
        self._decrement = 0.0

    def _look(self) -> None:
        """g (p,), C = Phi A^-1 Y^T (m, p) with dg_p/dlambda_i = -C_ip^2, and R = Phi A^-1 Phi^T (m, m)."""
        Phi, Y = self._features, self._directions
        both = solved(Phi, self.weights, self._ridge, np.hstack([Y.T, Phi.T]))
        of_pairs, of_arms = both[:, : len(Y)], both[:, len(Y) :]
        self._g, self._C, self._R = np.vecdot(Y, of_pairs.T), Phi @ of_pairs, Phi @ of_arms

    def certificate(self) -> tuple[float, float]:
        """(upper, lower) bound of the minimum.

        For pair weights w on the simplex, min_lambda sum_p w_p g_p is a lower bound, and so is its linearisation:
        sum_p w_p (g_p + sum_i lambda_i C_ip^2) - max_i sum_p w_p C_ip^2.
        """
        w = self._of_pairs / self._of_pairs.sum()
        slopes = self._C**2 @ w
        return float(self._g.max()), float(w @ self._g + self.weights @ slopes - slopes.max())

    def step(self) -> bool:
        """Move once, for a smaller mu when the last one is nearly reached; False when nothing lowers the barrier."""
        if self._decrement < 1.0:
            self._mu *= _SHRINK
        slack, G = self._level - self._g, self._C**2
        try:
            relative, rise = self._direction(slack, G)
        except np.linalg.LinAlgError:  # weights that have nearly vanished leave nothing to solve
            return False
        length = self._length(slack, relative, rise)
        if length == 0.0:
            return False
        change = self.weights * relative
        pairs = self._of_pairs / slack * (-change @ G - rise) + self._mu / slack - self._of_pairs
        arms = self._mu / self.weights - self._of_arms * (1.0 + relative)
        dual_length = min(_longest(pairs / self._of_pairs), _longest(arms / self._of_arms))
        self.weights, self._level = self.weights + length * change, self._level + length * rise
        self._look()
        self._of_pairs = self._near(self._of_pairs + dual_length * pairs, self._level - self._g)
        self._of_arms = self._near(self._of_arms + dual_length * arms, self.weights)
        return True

    def _near(self, dual: FloatArray, primal: FloatArray) -> FloatArray:
        """Dual values, kept within a factor of mu / primal."""
        centre = self._mu / primal
        return np.clip(dual, centre / _SPREAD, centre * _SPREAD)

    def _direction(self, slack: FloatArray, G: FloatArray) -> tuple[FloatArray, float]:
        """Newton's direction: change of lambda relative to lambda, and of t, with sum lambda kept.

        The Hessian of sum_p w_p g_p is 2 (C diag(w) C^T) * R, elementwise. Weights differ by orders, so all is scaled
        by them.
        """
        lam, C, m = self.weights, self._C * self.weights[:, None], len(self.weights)
        stiffness, J, centre = self._of_pairs / slack, -G * self.weights[:, None], self._mu / slack
        K = np.zeros((m + 2, m + 2))
        K[:m, :m] = 2.0 * ((C * self._of_pairs) @ C.T) * self._R + (J * stiffness) @ J.T
        K[range(m), range(m)] += self._of_arms * lam
        K[:m, m] = K[m, :m] = -J @ stiffness
        K[m, m] = stiffness.sum()
        K[:m, -1] = K[-1, :m] = lam
        right = np.concatenate([self._mu - J @ centre, [centre.sum() - 1.0, 1.0 - lam.sum()]])
        found = np.linalg.solve(K, right)
        self._decrement = float(right[:-1] @ found[:-1]) / self._mu
        return found[:m], float(found[m])

    def _length(self, slack: FloatArray, relative: FloatArray, rise: float) -> float:
        """Backtracking until the barrier function falls enough; 0 when it never does."""
        length = _longest(relative)
        while length > 1e-10:
            weights = self.weights * (1.0 + length * relative)
            after = self._level + length * rise - norms(self._features, weights, self._directions, self._ridge)
            if (after > 0).all() and (slack > 0).all():
                change = length * rise / self._mu - np.log(after / slack).sum() - np.log1p(length * relative).sum()
                if change <= -1e-4 * length * self._decrement + _ROUNDING / self._mu:
                    return length
            length *= 0.5
        return 0.0


def _longest(relative: FloatArray) -> float:
    """The longest step up to 1 that leaves 1 + step * relative positive, with a margin."""
    return min(1.0, 0.99 / max(0.99, -float(relative.min())))


def check_countable(samples: float) -> None:
    """Refuse numbers of samples that are no longer exact in floating point.

    Raises:
        DesignError: there are more than 2^53.
    """
    if not samples <= _COUNTABLE:
        raise DesignError(f"{samples:.3g} samples are wanted at once; 2^53 can be counted. Ask for fewer.")


def apportion(weights: FloatArray, total: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Whole numbers near total * weights that add up to ``total`` (efficient apportionment, Pukelsheim, Rieder 1992).

    With s positive weights every count is at least weights_i * total * (1 - s/total).

    Raises:
        DesignError: the total is too large to count.
    """
    check_countable(total)
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


def check_rounding(
    features: FloatArray,
    directions: FloatArray,
    ridge: float,
    planned: float,
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    epsilon: float,
) -> float:
    """The factor of Du et al. 2023, equation 6, of whole counts N_i of N samples against the weights lambda_i of a
    design.

    max_p ||y_p||^2_{(N xi I + sum_i N_i phi_i phi_i^T)^-1} <= 2 (1 + epsilon) times the same with N lambda_i for N_i.

    Args:
        planned: max_p ||y_p||^2 at the weights themselves (N = 1); N samples have an N-th of it.

    Raises:
        DesignError: it is larger than 2 (1 + epsilon), or there are no samples.
    """
    if not len(directions):
        return 0.0
    total = int(counts.sum())
    if not total:
        raise DesignError("not one sample is left for a round. Give more samples (a larger budget).")
    try:
        rounded = norms(features, counts.astype(np.float64), directions, total * ridge).max()
    except np.linalg.LinAlgError:
        rounded = np.inf
    factor = float(total * rounded / planned)
    if not factor <= 2.0 * (1.0 + epsilon):
        raise DesignError(
            f"rounding to {total} samples makes the largest variance {factor:.4g} times as large; equation 6 of Du et "
            f"al. 2023 allows {2.0 * (1.0 + epsilon):.4g}. Give more samples (a larger budget)."
        )
    return factor
