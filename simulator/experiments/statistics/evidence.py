"""Evidence for and against a condition on means or shares: one-sided tests, and several of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

POWER = 0.8
STRICT = 0.0005
"""Level at which `Evidence.needed` is estimated: of one test among those of several looks and of many claims."""
MOST_NEEDED = 1_000_000


@dataclass(frozen=True)
class Evidence:
    """What a sample says about a condition.

    Attributes:
        holds: p-value of the hypothesis that the condition does not hold; small values speak for the condition.
        fails: p-value of the hypothesis that it holds; small values speak against it.
        needed: about how many replications decide it at the level `STRICT` with a power of 0.8 if the means stay what
            they are; None if they are at the border, or if there is no more than one replication.
    """

    holds: float
    fails: float
    needed: int | None = None

    def decided(self, level: float) -> bool:
        """Whether either hypothesis is rejected at a level."""
        return min(self.holds, self.fails) <= level


UNKNOWN = Evidence(1.0, 1.0)
"""Of fewer than two replications."""


@dataclass(frozen=True, eq=False)
class Requirement:
    """One inequality: E x > 0, or P(x > 0) >= share.

    Attributes:
        values: x, one per replication, shape (n,).
        share: the probability that the inequality is about; None for the mean.
        strict: whether a mean that is exactly 0 in all replications violates it.
        coarse: the numbers behind it can take a few values only, such as 0 and 1. Equal values in all replications are
            then no certainty, as they are for counts that follow from the scenario, and the sign test decides.
    """

    values: Sequence[float]
    share: float | None = None
    strict: bool = True
    coarse: bool = False

    def evidence(self) -> Evidence:
        """The test of it: Student's t for a mean, the exact binomial test for a share."""
        if self.share is not None:
            return _binomial(sum(value > 0 for value in self.values), len(self.values), self.share)
        x = np.asarray(self.values, dtype=np.float64)
        if self.coarse and len(x) > 1 and (x == x[0]).all():
            return _sign(len(x), float(x[0]))
        return _student(x, self.strict)


def together(requirements: Sequence[Requirement]) -> Evidence:
    """The evidence for a condition that holds if all of its inequalities hold.

    It holds by an intersection-union test (Berger 1982): the largest p-value. It fails if one of k inequalities fails:
    k times the smallest p-value (Bonferroni).
    """
    found = [requirement.evidence() for requirement in requirements]
    undecided = [one.needed for one in found]
    needed = None if None in undecided else max(n for n in undecided if n is not None)
    return Evidence(max(one.holds for one in found), min(1.0, len(found) * min(one.fails for one in found)), needed)


def _student(x: np.ndarray[tuple[int], np.dtype[np.float64]], strict: bool) -> Evidence:
    n = len(x)
    if n < 2:
        return UNKNOWN
    mean, error = float(x.mean()), float(x.std(ddof=1)) / math.sqrt(n)
    if error == 0:
        right = mean > 0 or (mean == 0 and not strict)
        return Evidence(float(not right), float(right), n)
    from scipy.special import stdtr

    below = float(stdtr(n - 1, mean / error))
    return Evidence(1.0 - below, below, _needed(n, abs(mean) / error))


def _sign(n: int, value: float) -> Evidence:
    """The sign test of n equal values: all have one sign with probability 2^-n where both signs are as likely."""
    if value == 0:
        return UNKNOWN
    p, needed = 2.0**-n, max(n, math.ceil(-math.log2(STRICT)))
    return Evidence(p, 1.0, needed) if value > 0 else Evidence(1.0, p, needed)


def _needed(n: int, ratio: float) -> int | None:
    """The sample size at which a mean that many standard errors from the border is told from it."""
    from scipy.special import ndtri

    if ratio == 0:
        return None
    wanted = n * ((float(ndtri(1.0 - STRICT)) + float(ndtri(POWER))) / ratio) ** 2
    return None if wanted > MOST_NEEDED else max(2, math.ceil(wanted))


def _binomial(successes: int, n: int, share: float) -> Evidence:
    if n == 0:
        return UNKNOWN
    from scipy.special import bdtr, bdtrc

    at_least = 1.0 if successes == 0 else float(bdtrc(successes - 1, n, share))
    at_most = float(bdtr(successes, n, share))
    distance = abs(successes / n - share)
    spread = math.sqrt(share * (1 - share))
    return Evidence(at_least, at_most, None if spread == 0 else _needed(n, distance * math.sqrt(n) / spread))


def fieller(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Fieller's confidence interval of the ratio of two means of paired values (Fieller 1954).

    All r with |m_1 - r m_2| <= t_{(1 + level)/2, n - 1} sqrt((s_11 - 2 r s_12 + r^2 s_22)/n).

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
    q = float(stdtrit(n - 1, 0.5 * (1 + level))) ** 2
    a, b, c = m2 * m2 - q * s22, m1 * m2 - q * s12, m1 * m1 - q * s11
    if a <= 0:
        return None
    root = math.sqrt(max(0.0, b * b - a * c))
    return float((b - root) / a), float((b + root) / a)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Yekutieli's adjusted p-values (2001), which control the false discovery rate under any dependence.

    p_(i) becomes min over j >= i of c m p_(j) / j, at most 1, with c = 1 + 1/2 + ... + 1/m.
    """
    m = len(p_values)
    order = sorted(range(m), key=lambda index: p_values[index])
    factor, least = sum(1 / (i + 1) for i in range(m)), 1.0
    found = [1.0] * m
    for rank in range(m - 1, -1, -1):
        least = min(least, factor * m * p_values[order[rank]] / (rank + 1))
        found[order[rank]] = least
    return found
