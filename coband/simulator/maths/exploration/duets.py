"""Uniform exploration of a shrinking finite domain: what the nodes of DUETS compute alike.

Pavlovic et al. 2024: "Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with Shared
Randomness".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.linalg.caches import RecentCache
from coband.simulator.maths.linalg.matrices import solve_definite
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.finite_domain import Domain


@dataclass(frozen=True)
class Epoch:
    """What an agent draws in one epoch.

    Attributes:
        regions: numbers of the points, by region.
        counts: how many points it draws from each region.
        last: whether nothing is left after it.
    """

    regions: tuple[IndexArray, ...]
    counts: tuple[int, ...]
    last: bool

    def draw(self, coin: np.random.Generator) -> IndexArray:
        """The epoch's points, each uniform in its region, region after region."""
        return np.concatenate(
            [drawn(region, coin, count) for region, count in zip(self.regions, self.counts, strict=True)]
        )


class Epochs:
    """The epochs of an agent: T_j points of each region, T_(j+1) = floor(sqrt(T T_j)), until T pulls are used up.

    The last epoch is cut; what is left is then shared out evenly among the regions, the first ones a pull more.

    Args:
        horizon: T >= 0.
        first: T_1 >= 1.
    """

    def __init__(self, horizon: int, first: int) -> None:
        self._horizon, self._length, self._left = horizon, first, horizon

    def begin(self, regions: tuple[IndexArray, ...]) -> Epoch:
        """The next epoch, on a set of points that falls into these regions."""
        number, length = len(regions), self._length
        last = self._left <= number * length
        share, over = divmod(self._left, number)
        counts = tuple(share + (k < over) for k in range(number)) if last else (length,) * number
        self._left -= sum(counts)
        self._length = max(length, math.isqrt(self._horizon * length))
        return Epoch(regions, counts, last)


def most_epochs(horizon: int, agents: int) -> float:
    """log log max(N, T) + 4, a bound on the number of epochs (Pavlovic et al. 2024, lemma 4.4; natural logarithms)."""
    return math.log(math.log(max(horizon, agents, 3))) + 4.0


def theoretical_rate(agents: int, horizon: int, delta: float) -> float:
    """p0 = 72 log(4 N T/delta') (Pavlovic et al. 2024, section 3 and lemma A.3); T counts as 1 where nobody is sure of
    a turn."""
    return 72.0 * math.log(4.0 * agents * max(horizon, 1) / delta)


def theoretical_width(norm: float, noise: float, lam: float, delta: float) -> float:
    """beta(delta) = B + R sqrt(2/lam log(2/delta)) (Pavlovic et al. 2024, lemma 2.5)."""
    return norm + noise * math.sqrt(2.0 / lam * math.log(2.0 / delta))


def drawn(active: IndexArray, coin: np.random.Generator, number: int) -> IndexArray:
    """So many arms, each uniform among the ``active`` ones, from one call of the coin."""
    return active[coin.integers(len(active), size=number)]


class Induced:
    """The active points of an epoch embedded in its inducing set; immutable, a function of the two alone.

    Args:
        active: numbers of the active ones, ascending (n,).
        inducing: the inducing set S (m, d).
    """

    def __init__(self, domain: Domain, active: IndexArray, inducing: FloatArray) -> None:
        self.active = active
        points = domain.points[active]
        self._dictionary = Dictionary(domain.kernel).appended(inducing)
        self.Z = self._dictionary.embed(points)
        self._prior = domain.kernel.diag(points)

    @property
    def skipped(self) -> int:
        """Number of inducing points that add nothing to the span of the others."""
        return self._dictionary.skipped

    def projection(self, arms: IndexArray, y: FloatArray) -> FloatArray:
        """v = Z^T Y (m,) of pulls of active ``arms`` (p,) with rewards y (p,) (Pavlovic et al. 2024, eq. 7)."""
        return self.Z[np.searchsorted(self.active, arms)].T @ y

    def gram(self, arms: IndexArray) -> FloatArray:
        """Z^T Z (m, m) of pulls of active ``arms`` (p,)."""
        counts = np.bincount(np.searchsorted(self.active, arms), minlength=len(self.active))
        weighted = self.Z * counts[:, None]
        G: FloatArray = weighted.T @ self.Z
        return (G + G.T) / 2.0

    def kept_by_mean(self, vbar: FloatArray, margin: float) -> IndexArray:
        """The active arms with mu >= max mu - margin, mu = Z vbar (Pavlovic et al. 2024, eq. 9: margin = 2 beta
        sigma_max)."""
        mean = self.Z @ vbar
        kept: IndexArray = self.active[mean >= mean.max() - margin]
        return kept

    def kept_by_bounds(self, vbar: FloatArray, gram: FloatArray, lam: float, beta: float) -> IndexArray:
        """The active arms whose upper bound mu + beta sigma reaches the best lower bound, max(mu - beta sigma).

        sigma^2 = k(x,x) - z^T G (G + lam I)^(-1) z is Pavlovic et al. 2024, eq. 6, on the scale of its eq. 4.
        """
        mean = self.Z @ vbar
        smoothed = ridge_solve(gram, lam, gram @ self.Z.T)
        variance = self._prior - np.einsum("ij,ji->i", self.Z, smoothed)
        width = beta * np.sqrt(np.maximum(variance, 0.0))
        kept: IndexArray = self.active[mean + width >= (mean - width).max()]
        return kept


def ridge_solve(gram: FloatArray, lam: float, B: FloatArray) -> FloatArray:
    """(gram + lam I)^(-1) B for a positive semidefinite ``gram`` (m, m) and B (m, ...)."""
    ridge = np.array(gram)
    ridge.flat[:: len(ridge) + 1] += lam
    try:
        return solve_definite(ridge, B)
    except np.linalg.LinAlgError:  # lam below the rounding of the entries
        return np.linalg.lstsq(ridge, B, rcond=None)[0].astype(np.float64)


class Regions:
    """Splits subsets of a domain into connected regions.

    On a continuous domain a set falls into its connected components. Of finitely many points this keeps the notion:
    two points are linked when they are no further apart than the longest link of a minimum spanning tree of the whole
    domain, the smallest distance at which the whole domain is connected; a region is a set of points that links
    connect.

    Args:
        points: the domain (M, d).

    Attributes:
        reach: distance up to which points are linked.
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self.reach = float(_grown(points)[1].max(initial=0.0))
        self._found = RecentCache[tuple[IndexArray, ...]](2)

    def of(self, active: IndexArray) -> tuple[IndexArray, ...]:
        """The regions of the points with those numbers, ascending, in the order of their first points."""
        return self._found.get(active.tobytes(), lambda: self._split(active))

    def _split(self, active: IndexArray) -> tuple[IndexArray, ...]:
        order, links = _grown(self._points[active])
        starts = np.flatnonzero(
            links > self.reach
        )  # a tree grows from one region to the next only when one is complete
        parts = [np.sort(active[part]) for part in np.split(order, starts)]
        return tuple(sorted(parts, key=lambda part: int(part[0])))


def _grown(points: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Prim's minimum spanning tree of n points (n, d): the order in which it takes them in, and the length of the link
    that each is taken in by (0 for the first), both (n,)."""
    n = len(points)
    order, links = np.zeros(n, dtype=np.intp), np.zeros(n)
    nearest = np.full(n, np.inf)
    newest = 0
    for number in range(1, n):
        nearest = np.minimum(nearest, np.sqrt(((points - points[newest]) ** 2).sum(axis=1)))
        nearest[order[:number]] = np.inf
        newest = int(nearest.argmin())
        order[number], links[number] = newest, nearest[newest]
    return order, links
