"""The Gaussian width of a set of arms, and the design that makes it small.

For directions z in Z, features phi_i of the arms that may be pulled and A(lambda) = sum_i lambda_i phi_i phi_i^T
(Katz-Samuels, Jain, Karnin, Jamieson 2020, "An Empirical Process Approach to the Union Bound"):

    gamma(Z) = min_lambda ( E max_{z in Z} (z - z0)^T A(lambda)^(-1/2) eta )^2,   eta ~ N(0, I)

Any z0 gives the same value, and so does any square root. The expectation is a fixed sum instead of random draws, so
that equal runs are equal in every process: eta = +-radius * point on the sphere, with the points of a Kronecker
sequence; the maximum is homogeneous in eta, so the radius enters by its mean alone.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.exploration.design import Design, DesignError

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
    ``_LEAST``: one below 0 by an error would take an arm away for ever that is needed later.
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
