"""Pulls of one design, dealt out to agents: DELB (Wang et al. 2020), RCLB (Mitra et al. 2022)."""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray, IntArray
from coband.simulator.maths.exploration.design import check_countable
from coband.simulator.maths.exploration.g_optimal import core

WHOLE = 1e-9
"""A number of pulls that exceeds a whole one by less is that one."""
Dealt = tuple[IntArray, IntArray]
"""Arms and how often to pull each, in this order."""


def deal(X: FloatArray, active: IndexArray, pulls: float, agents: int, gap: float) -> list[Dealt]:
    """What each agent pulls, equally often: ceil(pulls pi_a) of each arm a of a G-optimal design pi, in order.

    The last arm gets up to ``agents`` - 1 pulls more, so that everybody has as many.

    Args:
        X: all arms, (n, d).
        active: the numbers of those that are left, ascending.
        pulls: of all agents together.
        agents: their number.
        gap: see `core`.

    Raises:
        DesignError: there are too many to count, or no design is as near to the optimum.
    """
    check_countable(pulls)
    weights = core(X[active], gap).weights
    counts = np.ceil(max(pulls, 1.0) * weights - WHOLE).astype(np.int64)
    arms, counts = active[counts > 0], counts[counts > 0]
    counts[-1] += -counts.sum() % agents
    each, ends = int(counts.sum()) // agents, np.cumsum(counts)
    dealt = []
    for start in range(0, agents * each, each):
        own = np.clip(ends - start, 0, each) - np.clip(ends - counts - start, 0, each)
        dealt.append((arms[own > 0].astype(np.int64), own[own > 0]))
    return dealt


def eliminated(X: FloatArray, active: IndexArray, theta: FloatArray, phase: int) -> IndexArray:
    """The arms that are left after a phase l: those within 2^(1 - l) of the best by theta."""
    means = np.vecdot(X[active], theta)
    left: IndexArray = active[means.max() - means <= 2.0 ** (1 - phase)]
    return left


def median_width(agents: int, liars: float, delta: float) -> float:
    """t, such that the median of N estimates is more than t deviations above the truth with probability delta at most.

    F = floor(liars N) estimates may be anything, the H = N - F others are normal around the truth and independent. The
    median is above only if N/2 or more are, so that k = ceil(N/2) - F honest ones are, each with the probability
    p = P(Z > t); t is where P(Binomial(H, p) >= k) = I_p(k, H - k + 1) = delta.

    Args:
        agents: N.
        liars: their largest share, below 1/2.
        delta: the probability, in (0, 1).
    """
    from scipy.special import betaincinv, ndtri  # slow to import

    lying = math.floor(liars * agents + WHOLE)
    needed = math.ceil(agents / 2) - lying
    return -float(ndtri(betaincinv(needed, agents - lying - needed + 1, delta)))
