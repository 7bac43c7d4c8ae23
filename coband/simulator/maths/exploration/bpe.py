"""Batched pure exploration of a finite domain: what every node computes alike.

Li and Scarlett 2022, "Gaussian Process Bandit Optimization with Few Batches", Algorithm 1. Deviations are on the scale
of Pavlovic et al. 2024, eq. 4 (not divided by lambda).
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.posteriors.counts import CountFactor
from coband.simulator.maths.posteriors.finite_domain import Domain, DomainLog
from coband.simulator.maths.posteriors.observations import Observations

EQUAL = 1e-9
"""Relative difference up to which two variances count as equal."""


def batch_lengths(horizon: int) -> tuple[int, ...]:
    """N_1, N_2, ... with N_i = ceil(sqrt(T N_(i-1))) and N_0 = 1, the last one cut so that they add up to T.

    At least one batch, for T = 0 an empty one.
    """
    lengths, length, left = list[int](), 1, horizon
    while left > 0 or not lengths:
        length = math.isqrt(max(horizon * length - 1, 0)) + 1
        lengths.append(min(length, left))
        left -= length
    return tuple(lengths)


class Batch:
    """A batch on the active points: a sequence in which each point has the largest variance given those before it.

    Variances do not depend on rewards, so the sequence follows from the active points alone; it is worked out as far as
    it is asked for. Of variances that are equal but for rounding the point of the lowest number is taken, as all nodes
    must find the same; a few points that are pulled in turn are as well known as each other, again and again.

    Args:
        active: numbers of the active ones, ascending (n,).
    """

    def __init__(self, domain: Domain, active: IndexArray, lam: float) -> None:
        self._lam, self._active = lam, active
        self._arms = ArmSet.fixed(domain.points[active])
        self._domain = Domain(domain.kernel, self._arms)
        self._entry_of = self._domain.number(np.arange(len(active)))
        self._first = np.unique(self._entry_of, return_index=True)[1]
        self._log = DomainLog(self._domain, lam, prefixes=False)
        self._chosen: list[int] = []  # entries of the domain of active points

    def arm(self, place: int) -> int:
        """Number of the point at that place of the sequence, from 0."""
        while len(self._chosen) <= place:
            variance = self._log.unscaled
            entry = int(np.argmax(variance >= (1.0 - EQUAL) * variance.max()))
            self._chosen.append(entry)
            point = self._domain.distinct[entry : entry + 1]
            self._log.extend(self._log.size, Observations(point, np.zeros(1)))
        return int(self._active[self._first[self._chosen[place]]])

    def sums(self, rewards: FloatArray) -> FloatArray:
        """Sums of the rewards (n,) of the first n places by point, in the order of the points' first places, (p,)."""
        entries, numbers = self._pulled(len(rewards))
        return np.bincount(numbers, rewards, len(entries)).astype(np.float64)

    def kept(self, pulls: int, sums: FloatArray, beta: float) -> IndexArray:
        """The points that can be the best by the batch: mu + beta sigma >= max(mu - beta sigma).

        mu and sigma are exact (Pavlovic et al. 2024, eqs. 3 and 4) for the first ``pulls`` places with rewards of these
        ``sums``.
        """
        entries, numbers = self._pulled(pulls)
        distinct = self._domain.distinct
        points, kernel = distinct[entries], self._domain.kernel
        factor = CountFactor.of(kernel(points, points), np.bincount(numbers).astype(np.float64), self._lam)
        V = factor.solve(kernel.against(points).evaluate(distinct))
        mean = V.T @ factor.whiten(sums)
        width = beta * np.sqrt(np.maximum(self._domain.diag - np.einsum("ij,ij->j", V, V), 0.0))
        possible = mean + width >= (mean - width).max()
        kept: IndexArray = self._active[possible[self._entry_of]]
        return kept

    def _pulled(self, pulls: int) -> tuple[IndexArray, IndexArray]:
        """The distinct entries of the first places in the order of their first ones, and the number of each place's."""
        if pulls:
            self.arm(pulls - 1)
        number: dict[int, int] = {}
        numbers = [number.setdefault(entry, len(number)) for entry in self._chosen[:pulls]]
        return np.array(list(number), dtype=np.intp), np.array(numbers, dtype=np.intp)
