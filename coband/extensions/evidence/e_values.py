"""Evidence for statements: e-values of conditions, which of several statements to publish, and ratios of means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband.extending import mean_of_logs, mean_processes, share_process


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
"""The log e-value that `Evidence.needed` is about: published among 200 others at a false discovery rate of 5 % if half
of these are decided too, since closed e-BH asks for about m / (0.05 r) of r out of m."""
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
        same: e-values for "no practical difference"; empty if the claim declares no margin.
    """
    found = [requirement.evidence() for requirement in requirements]
    holds, fails = min(one.holds for one in found), mean_of_logs([one.fails for one in found])
    late = [one for one in found if (one.holds if holds >= fails else one.fails) < ENOUGH]
    counts = [one.needed for one in late if holds >= fails or one.fails > one.holds]
    pick = max if holds >= fails else min
    needed = None if not counts or None in counts else pick(n for n in counts if n is not None)
    return Evidence(holds, fails, min((one.evidence().holds for one in same), default=None), needed)


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
