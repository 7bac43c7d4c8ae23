"""Evidence for and against a condition on means or shares, and several of them together, by tests that may look at any
time: e-processes, confidence sequences, closed e-BH.

An e-value of a hypothesis has an expectation of at most 1 where the hypothesis is true. An e-process is one at every
stopping time, so that the chance that it ever reaches 1/a is at most a (Ville 1939). All values here are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

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


def share_sequence(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """All probabilities of success that no look so far has rejected, by :func:`share_process`.

    Args:
        level: probability that these intervals cover it at every n together, in (0, 1).

    Returns:
        (low, high); 0 or 1 where nothing bounds it.
    """
    from scipy.optimize import brentq

    aim, tiny = -math.log(0.5 * (1.0 - level)), 1e-9

    def least(k: int) -> float:
        if share_process(k, n, tiny) < aim:
            return 0.0
        return float(brentq(lambda share: share_process(k, n, share) - aim, tiny, 1.0 - tiny))

    return least(successes), 1.0 - least(n - successes)


def closed_ebh(wrong: Sequence[float], right: Sequence[float], rate: float) -> list[bool]:
    """Which of several statements to publish, so that the expected share of false ones is at most a rate.

    Closed e-BH (Xu, Fischer and Ramdas 2025): a set R is published if for every state of the world S that is possible,
    the e-value of S, here the mean over all statements, is at least |R and false in S| / (rate |R|). It holds under any
    dependence. Worlds are free combinations of the two sides of every statement, so that those matter in which the j
    statements of R with the least evidence are false, j = 1, ..., |R|.

    Args:
        wrong: log e-value, for each statement, of the hypothesis that it is false.
        right: log e-value of the hypothesis that it is true.
        rate: the false discovery rate.
    """
    m, e_wrong, e_right = len(wrong), np.exp(wrong), np.exp(right)
    gain, least = e_wrong - e_right, np.minimum(e_wrong, e_right).sum()
    order = np.argsort(-gain, kind="stable")
    for size in range(m, 0, -1):
        chosen = order[:size]
        total = least + np.cumsum(gain[chosen][::-1])
        if gain[chosen[-1]] > 0 and (total >= m * np.arange(1, size + 1) / (rate * size)).all():
            return [index in set(chosen.tolist()) for index in range(m)]
    return [False] * m


Test = Literal["mean", "signs"]
ENOUGH = math.log(40)
"""The log e-value that `Evidence.needed` is about: it stands beside 200 others at a false discovery rate of 5 % if half
of those are decided too, since closed e-BH asks for about m / (0.05 r) of r out of m."""
PRIOR_GROWTH, PRIOR_COUNT = 0.5 * math.log1p(0.25), 2
"""What growth is shrunk towards: that of half a standard deviation, which weighs as much as two replications."""
MOST_NEEDED = 1_000_000


@dataclass(frozen=True)
class Evidence:
    """What a sample says about a condition, at whatever time one looks.

    Attributes:
        holds: log e-value of the hypothesis that the condition does not hold; large values speak for the condition.
        fails: log e-value of the hypothesis that it holds; large values speak against it.
        same: log e-value of the hypothesis that there is a practical difference; None where no margin is declared.
        needed: about how many replications decide it (`ENOUGH`); None if it seems to be at the border, or if there is
            no more than one replication.
    """

    holds: float
    fails: float
    same: float | None = None
    needed: int | None = None

    def after(self, before: Evidence, n: int, earlier: int) -> Evidence:
        """The evidence of n replications and of those before them: e-values of parts that follow one another multiply.

        Args:
            before: of the earlier ones; what it does not say counts as 1.
            n: replications of this evidence.
            earlier: replications before.
        """
        holds, fails = self.holds + before.holds, self.fails + before.fails
        same = None if self.same is None else self.same + (before.same or 0.0)
        needed = before.needed
        if n > 1:
            missing = max(0.0, ENOUGH - max(self.holds, self.fails))
            share = max(0.0, ENOUGH - max(holds, fails)) / missing if missing else 0.0
            needed = None if self.needed is None else earlier + n + math.ceil(share * (self.needed - n))
        return Evidence(holds, fails, same, needed)


UNKNOWN = Evidence(0.0, 0.0)
"""Of fewer than two replications."""


@dataclass(frozen=True, eq=False)
class Requirement:
    """One inequality: E x > 0, or P(x > 0) >= share.

    Attributes:
        values: x, one per replication, shape (n,).
        share: the probability that the inequality is about; None for the mean.
        strict: whether a mean that is exactly 0 in all replications violates it.
        coarse: the numbers behind it can take a few values only, such as 0 and 1. Equal values in all replications are
            then no certainty, as they are for counts that follow from the scenario, and their signs decide.
        test: ``signs`` asks whether x > 0 is more likely than x < 0, whatever its distribution.
    """

    values: Sequence[float]
    share: float | None = None
    strict: bool = True
    coarse: bool = False
    test: Test = "mean"

    def evidence(self) -> Evidence:
        """The e-processes of it: of Student's statistic for a mean, of the number of successes for a share."""
        x = np.asarray(self.values, dtype=np.float64)
        if len(x) < 2:
            return UNKNOWN
        if self.share is not None:
            return _of_share(int((x > 0).sum()), len(x), self.share, len(x))
        if self.test == "signs" or (self.coarse and (x == x[0]).all()):
            return _of_share(int((x > 0).sum()), int((x != 0).sum()), 0.5, len(x))
        holds, fails = map(float, mean_processes(x, self.strict))
        spread = float(x.std(ddof=1))
        growth = math.inf if spread == 0 else 0.5 * math.log1p((float(x.mean()) / spread) ** 2)
        return Evidence(holds, fails, None, _needed(len(x), max(holds, fails), growth))


def together(requirements: Sequence[Requirement], same: Sequence[Requirement] = ()) -> Evidence:
    """The evidence for a condition that holds if all of its inequalities hold.

    It holds by intersection, the least of their e-values (Berger 1982), and fails by union: the mean of the e-values
    against each of them, with equal weights.

    Args:
        requirements: the inequalities.
        same: those that say that there is no practical difference; empty where no margin is declared.
    """
    found = [requirement.evidence() for requirement in requirements]
    holds, fails = min(one.holds for one in found), mean_of_logs([one.fails for one in found])
    late = [one for one in found if (one.holds if holds >= fails else one.fails) < ENOUGH]
    counts = [one.needed for one in late if holds >= fails or one.fails > one.holds]
    pick = max if holds >= fails else min
    needed = None if not counts or None in counts else pick(n for n in counts if n is not None)
    return Evidence(holds, fails, min((one.evidence().holds for one in same), default=None), needed)


def mean_of_logs(logs: Sequence[float]) -> float:
    """The logarithm of the mean of e-values."""
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def _of_share(successes: int, n: int, share: float, count: int) -> Evidence:
    """Of trials that are some of the replications; the others say nothing."""
    holds, fails = share_process(successes, n, share), share_process(n - successes, n, 1 - share)
    p = successes / n if n else share
    parts = ((p, share), (1 - p, 1 - share))
    growth = n / count * sum(one * math.log(one / other) for one, other in parts if one > 0)
    return Evidence(holds, fails, None, _needed(count, max(holds, fails), growth))


def _needed(n: int, log_e: float, growth: float) -> int | None:
    """When a log e-value reaches `ENOUGH` if it goes on growing by so much with every replication."""
    shrunk = (n * growth + PRIOR_COUNT * PRIOR_GROWTH) / (n + PRIOR_COUNT)
    wanted = n + max(0.0, ENOUGH - log_e) / shrunk
    return None if wanted > MOST_NEEDED else math.ceil(wanted)


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


def fieller(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Fieller's 95 % confidence interval of the ratio of two means of paired values (Fieller 1954).

    All r with |m_1 - r m_2| <= t_{0.975, n - 1} sqrt((s_11 - 2 r s_12 + r^2 s_22)/n).

    Returns:
        (low, high); None for fewer than two pairs, or if the second mean is not told from 0, so that the set of such r
        is not an interval.
    """
    from scipy.special import stdtrit

    n = len(first)
    if n < 2:
        return None
    (s11, s12), (_, s22) = np.cov(first, second) / n
    m1, m2 = float(np.mean(first)), float(np.mean(second))
    q = float(stdtrit(n - 1, 0.975)) ** 2
    a, b, c = m2 * m2 - q * s22, m1 * m2 - q * s12, m1 * m1 - q * s11
    if a <= 0:
        return None
    root = math.sqrt(max(0.0, b * b - a * c))
    return float((b - root) / a), float((b + root) / a)
