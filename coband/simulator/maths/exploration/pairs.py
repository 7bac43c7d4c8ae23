"""What pure exploration with a kernel computes: designs over task-arm pairs, samples per pair, estimated rewards; and
the Gaussian width of a set of arms with the design that makes it small.

For directions z in Z, features phi_i of the arms that may be pulled and A(lambda) = sum_i lambda_i phi_i phi_i^T
(Katz-Samuels, Jain, Karnin, Jamieson 2020, "An Empirical Process Approach to the Union Bound"):

    gamma(Z) = min_lambda ( E max_{z in Z} (z - z0)^T A(lambda)^(-1/2) eta )^2,   eta ~ N(0, I)

Any z0 gives the same value. The expectation is a fixed sum instead of random draws, so that equal runs are equal in
every process: eta = +-radius * point on the sphere, with the points of a Kronecker sequence; the maximum is homogeneous
in eta, so only the mean of the radius enters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from coband.simulator.arrays import BoolArray, FloatArray, IntArray
from coband.simulator.maths.exploration import design as designs
from coband.simulator.maths.exploration.design import Design, DesignError
from coband.simulator.maths.linalg.matrices import solve_definite

POINTS = 4096
"""Points of the sum, and as many opposite ones: E of the maximum of ten arms is right to about 1e-3 of its value."""
ACCURACY = 1e-3
"""Relative difference to the smallest width up to which a design is accepted."""
_ACCEPTED = 5 * ACCURACY  # where no step comes nearer
_STEPS = 2000
_LEAST = 0.1
SAME = 1e-9
"""Largest relative difference of features that the kernel does not tell apart."""
_EVEN = 1e-3  # costs at most as much of gamma
_DIGITS = 6  # of the weights; further ones would make counts of samples depend on the machine


@lru_cache(maxsize=32)
def directions(dimension: int) -> FloatArray:
    """Fixed eta, (2 POINTS, dimension), with sum 0, whose mean of a homogeneous function is nearly that of N(0, I).

    Row k comes from the fractional parts of (k + 1/2) a_j with a_j = p^-j, p the root of p^(d+1) = p + 1 (Roberts
    2018), through the normal distribution function, and is scaled to the mean length of N(0, I).
    """
    from scipy.special import gammaln, ndtri  # slow to import, and only exploration needs it

    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1.0)
    normal = np.asarray(ndtri(((np.arange(POINTS)[:, None] + 0.5) * steps) % 1.0))
    length = math.sqrt(2.0) * math.exp(float(gammaln((dimension + 1) / 2) - gammaln(dimension / 2)))
    sphere = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(sphere.T @ sphere * (dimension / POINTS))
    scaled = length * sphere @ (vectors / np.sqrt(values)) @ vectors.T
    found: FloatArray = np.ascontiguousarray(np.concatenate([scaled, -scaled]))
    found.flags.writeable = False
    return found


def width_design(features: FloatArray, chosen: list[int]) -> Design:
    """The design over all arms that makes the Gaussian width of the chosen ones smallest; ``value`` is gamma.

    Chosen arms that the kernel does not tell apart have width 0, whatever the design.

    With A = L L^T and u_i = L^-1 phi_i the width f is E max_z (L^-1 z)^T eta, its slope in lambda_i is
    -u_i^T M u_i / 2 for M = E (L^-1 z*) eta^T, and sum_i lambda_i u_i^T M u_i = f. Weights are multiplied by the
    roots of the factors u_i^T M u_i / f until none of these is much above their mean; as f is convex it then is within
    (largest factor - 1)/2 of its smallest value, which ``bound`` says. Where that does not happen, as with two arms
    whose best designs are many, :func:`_by_means` finds a design.

    Args:
        features: phi, (m, r), of rank r.
        chosen: the arms Z, by number.

    Raises:
        DesignError: no lower bound comes near the width.
    """
    m, r = features.shape
    share = np.full(m, 1.0 / m)
    if len(chosen) < 2 or np.ptp(features[chosen], axis=0).max() <= SAME * np.abs(features).max():
        return Design(share, 0.0, 0.0)
    eta = directions(r)
    for _ in range(_STEPS):
        width, factors = _factors(features, chosen, _mixed(share), eta)
        excess = float(factors.max() / (share @ factors)) - 1.0
        if excess <= 2.0 * ACCURACY:
            break
        share = share * np.sqrt(np.maximum(factors, 0.0))
        share /= share.sum()
    if excess > 2.0 * _ACCEPTED:
        return _by_means(features, chosen, eta)
    return _rounded(share, width, width * (1.0 - excess / 2.0))


def _by_means(features: FloatArray, chosen: list[int], eta: FloatArray) -> Design:
    """The same, with lower bounds that are means of those of many steps.

    The fixed sum has slopes with errors of about a hundredth: at each step some factor is too large, and where f is
    flat no step mends that. But a mean of linear lower bounds of f is one too, and every arm's mean factor comes near
    1, since the product of its roots is the growth of a weight, which stays below 1. No factor counts as less than
    ``_LEAST``: one below 0 by an error would take an arm away forever that is needed later.
    """
    m = len(features)
    share = np.full(m, 1.0 / m)
    best, width, bound = share, math.inf, 0.0
    for step in range(1, _STEPS + 1):
        if step & (step - 1) == 0:  # means do without the first steps
            constants, slopes, steps = 0.0, np.zeros(m), 0
        value, factors = _factors(features, chosen, _mixed(share), eta)
        if value < width:
            best, width = share, value
        slope = 0.5 * (1.0 - _EVEN) * value * factors
        constants, slopes, steps = constants + value + float(share @ slope), slopes + slope, steps + 1
        here = value + float(share @ slope - slope.max())
        bound = max(bound, here, (constants - float(slopes.max())) / steps)
        if width - bound <= ACCURACY * width:
            break
        share = share * np.sqrt(np.maximum(factors, _LEAST))
        share /= share.sum()
    else:
        if width - bound > _ACCEPTED * width:
            missing = 1.0 - bound / width
            raise DesignError(f"the design of the Gaussian width may be {missing:.3g} of its value from the best")
    return _rounded(best, width, min(bound, width))


def _rounded(share: FloatArray, width: float, bound: float) -> Design:
    weights = np.round(_mixed(share), _DIGITS)
    return Design(weights / weights.sum(), width**2, bound**2)


def _mixed(share: FloatArray) -> FloatArray:
    """Weights with a small part spread evenly, so that A is regular where the best design is not."""
    return (1.0 - _EVEN) * share + _EVEN / len(share)


def _factors(features: FloatArray, chosen: list[int], weights: FloatArray, eta: FloatArray) -> tuple[float, FloatArray]:
    """The width at these weights, and u_i^T M u_i divided by it, (m,)."""
    from scipy.linalg import solve_triangular

    L = np.linalg.cholesky((features.T * weights) @ features)
    u = solve_triangular(L, features.T, lower=True).T
    scores = eta @ u[chosen].T
    best = scores.argmax(axis=1)
    width = float(np.take_along_axis(scores, best[:, None], axis=1).mean())
    sums = np.stack([np.bincount(best, column, len(chosen)) for column in eta.T], axis=1)  # faster than np.add.at
    M = u[chosen].T @ sums / len(eta)
    return width, np.asarray(np.vecdot(u @ M, u)) / width


EQUAL = 1e-4
"""Relative difference up to which two values of a design count as equal: that of values with and without a small xi."""

REMEMBERED, MASKS = 1000, 16
"""Designs, and sets of arms whose differences are in memory."""


def pairs_of(gram: FloatArray, agents: int) -> Pairs:
    """The pairs with a kernel matrix (V n, V n) of V agents; the same object for the same matrix."""
    return _pairs(gram.tobytes(), len(gram), agents)


@lru_cache(maxsize=64)
def _pairs(gram: bytes, size: int, agents: int) -> Pairs:
    return Pairs(np.frombuffer(gram).reshape(size, size), agents)


class Pairs:
    """All task-arm pairs (agent v, arm i), numbered v n + i, and their kernel matrix.

    Designs are remembered: agents with equal arms, and replications of an instance, ask for the same ones again.

    Args:
        gram: k(x~, x~'), (V n, V n).
        agents: V.
    """

    def __init__(self, gram: FloatArray, agents: int) -> None:
        self.gram, self.agents = gram, agents
        self.arms = len(gram) // agents
        self.features = designs.root(gram)
        self._designs: dict[Hashable, Design] = {}
        self._differences = lru_cache(maxsize=MASKS)(self._differences_of)
        self._planned = lru_cache(maxsize=REMEMBERED)(self._planned_of)

    def of(self, agent: int) -> Pairs:
        own = slice(agent * self.arms, (agent + 1) * self.arms)
        return pairs_of(self.gram[own, own], 1)

    def _differences_of(self, alive: bytes) -> FloatArray:
        """Differences between alive arms of the same agent; ``alive``: a mask (V, n)."""
        rows = np.frombuffer(alive, dtype=np.bool_).reshape(self.agents, self.arms)
        groups = [[agent * self.arms + int(arm) for arm in np.flatnonzero(row)] for agent, row in enumerate(rows)]
        found = designs.differences(self.features, groups)
        found.flags.writeable = False
        return found

    def _planned_of(self, weights: bytes, alive: bytes, xi: float) -> float:
        """The largest ||y||^2 of differences between alive arms at the weights of a design."""
        found = designs.norms(self.features, np.frombuffer(weights), self._differences(alive), xi)
        return float(found.max(initial=0.0))

    def design(self, alive: BoolArray, xi: float, start: FloatArray | None = None) -> Design:
        """Du et al. 2023, Algorithm 1, line 4: lambda* and rho* over all pairs for the differences that are alive."""
        mask = alive.tobytes()
        key = ("alive", mask, xi, None if start is None else start.tobytes())
        return self._remembered(key, lambda: designs.min_max_design(self.features, self._differences(mask), xi, start))

    def g_optimal(self, arms: Sequence[int]) -> Design:
        """min over the weights of ``arms`` of max over them of ||phi||^2_{A^-1}, in the span of their features."""
        chosen = list(arms)
        features = designs.root(self.gram[np.ix_(chosen, chosen)])
        return self._remembered(("g", *chosen), lambda: designs.min_max_design(features, features, 0.0))

    def omega(self, arms: Sequence[int], xi: float) -> float:
        """Principle dimension omega(xi, S) of pairs S: min over lambda of max over S x S of ||phi - phi'||^2."""
        among = list(arms)
        return self.towards(("omega", *among), lambda: designs.differences(self.features, [among]), xi).value

    def gaussian_width(self, arms: Sequence[int]) -> Design:
        """gamma(S) of arms S, the square of their Gaussian width, and the design over all arms that makes it small."""
        among = list(arms)
        return self._remembered(("gamma", *among), lambda: width_design(self.features, among))

    def towards(self, name: Hashable, directions: Callable[[], FloatArray], xi: float) -> Design:
        """The min-max design for directions (p, r) of one's own, remembered under a name."""
        return self._remembered((name, xi), lambda: designs.min_max_design(self.features, directions(), xi))

    def _remembered(self, key: Hashable, solve: Callable[[], Design]) -> Design:
        if key not in self._designs:
            if len(self._designs) >= REMEMBERED:
                self._designs.clear()
            self._designs[key] = solve()
            self._designs[key].weights.flags.writeable = False
        return self._designs[key]

    def allot(self, design: Design, total: int, alive: BoolArray, xi: float, epsilon: float) -> IntArray:
        """ROUND: whole numbers (V, n) of ``total`` samples, for which equation 6 is verified.

        Raises:
            DesignError: equation 6 does not hold, for the alive differences or for all.
        """
        counts = designs.apportion(design.weights, total)
        weights = design.weights.tobytes()
        for mask in (alive.tobytes(), np.ones_like(alive).tobytes()):
            planned = self._planned(weights, mask, xi)
            designs.check_rounding(self.features, self._differences(mask), xi, planned, counts, epsilon)
        return counts.reshape(self.agents, self.arms)

    def estimate(self, counts: IntArray, means: FloatArray, xi: float) -> FloatArray:
        """F(x~) of all pairs, (V, n), from counts and means (V, n): Du et al. 2023, equation 3.

        k_r(x~)^T (K + N xi I)^-1 y with K_ij = sqrt(N_i N_j) k(x~_i, x~_j), k_r(x~)_i = sqrt(N_i) k(x~, x~_i) and
        y_i = sqrt(N_i) mean_i; pairs that were not pulled have no part in it.
        """
        pulled = np.flatnonzero(counts.ravel())
        roots = np.sqrt(counts.ravel()[pulled])
        k = self.gram[:, pulled] * roots
        K = k[pulled] * roots[:, None]
        K[np.diag_indices_from(K)] += counts.sum() * xi
        found: FloatArray = k @ solve_definite(K, roots * means.ravel()[pulled])
        return found.reshape(counts.shape)

    def least_squares(self, counts: IntArray, means: FloatArray) -> FloatArray:
        """Ordinary least squares F of all pairs, (V, n); its span must have been pulled."""
        weights = counts.ravel().astype(np.float64)
        theta = designs.solved(self.features, weights, 0.0, self.features.T @ (weights * means.ravel()))
        found: FloatArray = self.features @ theta
        return found.reshape(counts.shape)

    def covariance(self, weights: FloatArray) -> FloatArray:
        """Phi (sum_i w_i phi_i phi_i^T)^-1 Phi^T, (V n, V n): of least squares with w_i pulls of unit noise."""
        return self.features @ designs.solved(self.features, weights, 0.0, self.features.T)
