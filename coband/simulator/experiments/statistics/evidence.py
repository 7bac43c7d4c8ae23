"""Evidence for and against a condition on means or shares, and several of them together, by tests that may look at any
time: e-processes, confidence sequences, closed e-BH.

An e-value of a hypothesis has an expectation of at most 1 where the hypothesis is true. An e-process is one at every
stopping time, so that the chance that it ever reaches 1/a is at most a (Ville 1939). All values here are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from coband.simulator.arrays import FloatArray

SCALES = (0.25, 1.0, 4.0, 16.0)
"""Standard deviations of the effects (mean over standard deviation) that are mixed with equal weights."""
LARGEST = 700.0
"""Largest logarithm: that of the largest double is 709."""


def t_process(t: FloatArray | float, n: FloatArray | int) -> FloatArray:
    """Log e-process of "E x <= 0" against "E x > 0" for Gaussian x of unknown variance, from Student's statistic.

    The likelihood ratio of what no change of unit alters, between an effect d = E x / sd x and none, mixed over
    half-normal d of standard deviation s (Lai 1976; Wang and Ramdas 2023, section 4). With g = 1/s^2, u = t^2/(n - 1),

        2 sqrt(g/(n + g)) ((1 + u)/(1 + g u/(n + g)))^(n/2) P(T_n <= m),
        m = n t / sqrt((n + g)(n - 1 + g t^2/(n + g))),

    where T_n has Student's distribution with n degrees of freedom: P is the posterior probability of d > 0. The mean
    of it over `SCALES` grows with t, and a shift of x changes t in its own direction alone, so that the process for
    mean 0, where it is a martingale, bounds that for every mean below.

    Args:
        t: mean sqrt(n) / sd, shape (...).
        n: how many x there are; fewer than two say nothing.
    """
    from scipy.special import stdtr

    t, n = (one[..., None] for one in np.broadcast_arrays(np.asarray(t, float), np.asarray(n, float)))
    g, few = 1.0 / np.square(SCALES), n[..., 0] < 2
    n = np.maximum(n, 2.0)
    u = np.square(t) / (n - 1)
    two_sided = 0.5 * np.log(g / (n + g)) + 0.5 * n * (np.log1p(u) - np.log1p(g * u / (n + g)))
    with np.errstate(divide="ignore"):
        positive = np.log(2 * stdtr(n, t * n / np.sqrt((n + g) * (n - 1 + g * np.square(t) / (n + g)))))
    found = np.logaddexp.reduce(np.maximum(two_sided + positive, -LARGEST), axis=-1) - math.log(len(SCALES))
    return np.where(few, 0.0, np.clip(found, -LARGEST, LARGEST))


def mean_processes(x: FloatArray, strict: bool = True) -> tuple[FloatArray, FloatArray]:
    """The processes against "it does not hold" and "it holds", where it is E x > 0, of many samples at once.

    Values that are all equal are a certainty, as those of counts that follow from the scenario.

    Args:
        x: samples, shape (..., n).
        strict: whether values that are all 0 violate it (E x > 0) or not (E x >= 0).
    """
    n = x.shape[-1]
    if n < 2:
        return np.zeros(x.shape[:-1]), np.zeros(x.shape[:-1])
    mean, error = x.mean(axis=-1), x.std(axis=-1, ddof=1) / math.sqrt(n)
    varies = (x != x[..., :1]).any(axis=-1)
    t = np.divide(mean, error, out=np.zeros_like(mean), where=varies & (error > 0))
    sure = np.where((mean > 0) | ((mean == 0) & (not strict)), LARGEST, -LARGEST)
    return np.where(varies, t_process(t, n), sure), np.where(varies, t_process(-t, n), -sure)


def share_process(successes: int, n: int, share: float) -> float:
    """Log e-process of "P(success) <= share" against "> share", mixed uniformly over the probabilities above.

    Of k successes in n trials, the integral of p^k (1 - p)^(n - k) over p from the share to 1, divided by its length
    and by share^k (1 - share)^(n - k); it grows with k, so the share itself bounds all that are less. With share 1/2 it
    is a test of signs (Robbins 1970).
    """
    from scipy.special import betainc, betaln

    failures = n - successes
    above = float(betainc(failures + 1, successes + 1, 1 - share))
    if above == 0:
        return -LARGEST
    found = betaln(successes + 1, failures + 1) + math.log(above) - math.log(1 - share)
    return float(np.clip(found - successes * math.log(share) - failures * math.log(1 - share), -LARGEST, LARGEST))


@lru_cache(maxsize=4096)
def critical(n: int, error: float) -> float:
    """The least Student's statistic whose :func:`t_process` reaches 1/error; infinite if none of n values does."""
    from scipy.optimize import brentq

    aim = -math.log(error)
    largest = 1e8
    if n < 2 or float(t_process(largest, n)) < aim:
        return math.inf
    return float(brentq(lambda t: float(t_process(t, n)) - aim, 0.0, largest, xtol=1e-10))


def confidence_sequence(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """All means that no look so far has rejected: the intervals cover the expectation at every n together.

    Args:
        values: one per replication, shape (n,).
        level: probability that they all do, in (0, 1).

    Returns:
        (low, high); None where there are too few values to bound it.
    """
    n, centre = len(values), float(np.mean(values))
    t = critical(n, 0.5 * (1.0 - level))
    if math.isinf(t):
        return None
    half_width = t * float(np.std(values, ddof=1)) / math.sqrt(n)
    return centre - half_width, centre + half_width


def share_sequence(successes: int, n: int) -> tuple[float, float]:
    """All probabilities of success that no look so far has rejected, by :func:`share_process`: 95 % at all n together.

    Returns:
        (low, high); 0 or 1 where nothing bounds it.
    """
    from scipy.optimize import brentq

    aim, tiny = -math.log(0.5 * 0.05), 1e-9

    def least(k: int) -> float:
        if share_process(k, n, tiny) < aim:
            return 0.0
        return float(brentq(lambda share: share_process(k, n, share) - aim, tiny, 1.0 - tiny))

    return least(successes), 1.0 - least(n - successes)


def mean_of_logs(logs: Sequence[float]) -> float:
    """The logarithm of the mean of e-values."""
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def student(x: FloatArray, strict: bool = True) -> tuple[FloatArray, FloatArray]:
    """One-sided p-values of Student's t-test of E x > 0, of many samples at once.

    Args:
        x: samples, shape (..., n) with n >= 2.
        strict: whether a sample that is 0 throughout violates it (E x > 0) or not (E x >= 0).

    Returns:
        (holds, fails), each of shape (...): p-values of the hypothesis that it does not hold, and that it does.
    """
    from scipy.special import stdtr

    n = x.shape[-1]
    mean, error = x.mean(axis=-1), x.std(axis=-1, ddof=1) / math.sqrt(n)
    right = (mean > 0) | ((mean == 0) & (not strict))
    ratio = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)
    below = np.where(error > 0, stdtr(n - 1, ratio), right.astype(np.float64))
    return 1.0 - below, below
