"""A finite domain, and exact posteriors over it, kept up to date instead of recomputed at each turn. Equal points of a
domain share one entry in everything that is computed, so that a tie between them is exact.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment"), eq. 1, for all
M points of a domain at once. One more observation (u, y) changes the posterior by a rank-one term: with the covariance
c = C(., u) of all points with u before it and s = C(u, u) + lam,

    v = c / sqrt(s),  z = (y - mu(u)) / sqrt(s),  mu += z v,  lam sigma^2 -= v^2,  C -= v v^T.

The rows v are those of L^(-1) k(X, U), L the Cholesky factor of K + lam I, and z = L^(-1) y. C is not kept up to date:
it is a base minus the rows since, and the rows are flushed into the base in blocks, by one matrix product. While there
are few rows the base is the kernel itself, of which one column at a time is enough, so that n observations take n M
numbers and no M x M matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import BoolArray, FloatArray, IndexArray, require_room
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import add_outer, lam_is_lost
from coband.simulator.maths.posteriors.counts import CountFactor
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior

WHOLE_GRAM = 512
"""Domains of at most so many points keep their kernel matrix from the start."""

POINTS_AT_ONCE = 4096
"""Points whose variances are computed together: with n observations that takes n times as many numbers."""


class Domain:
    """The points of a finite domain and the kernel between them; immutable, so that many agents can hold one.

    Args:
        arms: the domain, ``ArmSet.fixed``: what an agent is offered at each turn.
    """

    def __init__(self, kernel: Kernel, arms: ArmSet) -> None:
        self.kernel = kernel
        self.arms = arms
        self.points = arms.features
        self.distinct, self._places = distinct(self.points)
        self.diag = kernel.diag(self.distinct)
        self._bound = kernel.against(self.distinct)

    @property
    def size(self) -> int:
        """Number of distinct points M."""
        return len(self.distinct)

    @cached_property
    def gram(self) -> FloatArray:
        """The kernel matrix of the distinct points, read-only (M, M).

        Raises:
            TooLarge: this machine cannot hold it.
        """
        what = f"a matrix of all pairs of {self.size:,} points of a domain"
        require_room(what, self.size, self.size, instead="take fewer points")
        K = self.kernel(self.distinct, self.distinct)
        K.flags.writeable = False
        return K

    def column(self, entry: int) -> FloatArray:
        """k(U, u) of all distinct points U with the one of that number, (M,). The caller owns the result."""
        if self.size <= WHOLE_GRAM:
            return np.array(self.gram[entry])
        column: FloatArray = self._bound.evaluate(self.distinct[entry : entry + 1])[0]
        column[entry] = self.diag[entry]
        return column

    def entries(self, points: Points) -> IndexArray:
        """Numbers, among the distinct points, of p points of the domain, (p,).

        Those of the domain's arms follow from their ids; other points are looked up.

        Raises:
            ValueError: a point is not one of the domain.
        """
        if points is self.arms:
            return points.ids if self._places is None else self._places
        if isinstance(points, ArmSet) and points.domain is self.arms:
            return self.number(points.ids)
        try:
            rows = np.ascontiguousarray(features_of(points)) + 0.0  # turns -0 into 0
            return np.array([self._numbers[row.tobytes()] for row in rows], dtype=np.intp)
        except KeyError:
            raise ValueError(f"a point is not one of the {self.size} points of the domain.") from None

    def number(self, arms: IndexArray) -> IndexArray:
        """Numbers, among the distinct points, of the arms with those ids."""
        return arms if self._places is None else self._places[arms]

    def at(self, points: Points, *values: FloatArray) -> tuple[FloatArray, ...]:
        """What ``values`` (M,) of the distinct points are at p points of the domain, each (p,)."""
        if points is self.arms and self._places is None:
            return values
        entries = self.entries(points)
        return tuple(value[entries] for value in values)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(self.distinct) + 0.0)}


def distinct(points: FloatArray) -> tuple[FloatArray, IndexArray | None]:
    """The distinct points in order of first appearance, and the number of each point among them (None: its own)."""
    found, first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    if len(found) == len(points):
        return points, None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return found[order], rank[place.reshape(-1)]


def first_appearances(points: FloatArray, known: FloatArray) -> BoolArray:
    """Which of ``points`` (p, d) equal none of ``known`` (m, d) and none of ``points`` before them, (p,)."""
    start = len(known)
    _, places = distinct(np.concatenate([known, points]) if start else points)
    if places is None:
        return np.ones(len(points), dtype=np.bool_)
    highest = np.maximum.accumulate(np.concatenate([[-1], places]))
    new: BoolArray = places > highest[:-1]
    return new[start:]


def exact_variance(
    kernel: Kernel, lam: float, points: FloatArray, counts: Sequence[int] | IndexArray, X: FloatArray
) -> FloatArray:
    """k(x,x) - k(x)^T (K + lam I)^(-1) k(x) at X (n, d) given each of p ``points`` observed ``counts`` times, (n,).

    Pavlovic et al. 2024, eq. 4 (lam sigma^2 of Li et al. 2023, eq. 1). Repeated observations enter by their number, so
    the cost is O(p^3 + p^2 n) however many there are (``maths.posteriors.counts``).
    """
    variance = kernel.diag(X)
    if not len(points):
        return variance
    factor = CountFactor.of(kernel(points, points), np.asarray(counts, dtype=np.float64), lam)
    bound = kernel.against(points)
    for start in range(0, len(X), POINTS_AT_ONCE):
        part = slice(start, start + POINTS_AT_ONCE)
        V = factor.solve(bound.evaluate(X[part]))
        variance[part] -= np.einsum("ij,ij->j", V, V)
    return np.maximum(variance, 0.0, out=variance)


BLOCK = 64
"""Rows per flush."""

WHOLE_COVARIANCE = 8192
"""Domains of more points get a covariance matrix only when it takes no more memory than the rows it replaces."""


class DomainLog:
    """The posterior over one canonical, append-only log of observations, of which many agents know prefixes.

    A pure cache: what is asked about the first ``known`` rows depends on those rows alone.

    Args:
        prefixes: whether prefixes will be asked about; if not, rows are dropped when they have been flushed.

    Attributes:
        mean, unscaled: mu and lam sigma^2 of the distinct points given all rows, (M,); replaced, never changed.
    """

    def __init__(self, domain: Domain, lam: float, *, prefixes: bool = True) -> None:
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        self.domain, self.lam = domain, lam
        self.size = 0
        self._log_dets = [0.0]
        self.mean: FloatArray = np.zeros(domain.size)
        self.unscaled: FloatArray = domain.diag
        self._prefixes = prefixes
        self._rows = GrowingRows(domain.size)
        self._first = 0  # number of the first row held
        self._whitened: list[float] = []
        self._base: FloatArray | None = None  # C given the first `_flushed` rows; None: the kernel, given none
        self._flushed = 0
        most = domain.size // 4 if domain.size <= WHOLE_COVARIANCE else domain.size
        self._without_base = max(BLOCK, most)

    def extend(self, start: int, observations: Observations) -> None:
        """Make sure that rows ``start``, ``start + 1``, ... of the log are held; rows held already are skipped.

        Args:
            start: number of the first row given.
            observations: the rows, points of the domain; those held already are not looked at.

        Raises:
            ValueError: ``start`` leaves a gap after the rows held, or a point is unknown.
        """
        held = self.size - start
        if held < 0:
            raise ValueError(f"start(={start}) must be at most the {self.size} rows held.")
        if held < len(observations):
            points = observations.features[held:] if held else observations.points
            entries = self.domain.entries(points).tolist()
            for entry, reward in zip(entries, observations.rewards[held:].tolist(), strict=True):
                self._append(entry, reward)

    def covariance(self, entry: int, known: int) -> FloatArray:
        """C(., u) of all distinct points with one of them, given the first ``known`` rows, (M,)."""
        flushed = self._flushed
        if self._base is None or (known < flushed - known and self._prefixes):
            column, start, end, sign = self.domain.column(entry), 0, known, -1.0
        else:
            column = self._base[entry].copy()
            start, end, sign = (flushed, known, -1.0) if known >= flushed else (known, flushed, 1.0)
        if end > start:
            V = self._rows.leading(end - self._first)[start - self._first :]
            column += (sign * V[:, entry]) @ V
        return column

    def advance(self, mean: FloatArray, unscaled: FloatArray, start: int, known: int) -> tuple[FloatArray, FloatArray]:
        """Mean and unscaled variance given the first ``known`` rows, from those given the first ``start``."""
        if known == self.size:
            return self.mean, self.unscaled
        V = self._rows.leading(known - self._first)[start - self._first :]
        for v, z in zip(V, self._whitened[start:known], strict=True):
            mean, unscaled = mean + z * v, unscaled - v * v
        return mean, unscaled

    def log_det(self, known: int) -> float:
        """log det(I + K/lam) of the first ``known`` rows."""
        return self._log_dets[known]

    def posterior(self) -> DomainLogPosterior:
        """The posterior of an agent that knows nothing yet."""
        return DomainLogPosterior(self)

    def _append(self, entry: int, y: float) -> None:
        v, z, gain = whiten(self.covariance(entry, self.size), entry, y - float(self.mean[entry]), self.lam)
        self._rows.append(v[None])
        self._whitened.append(z)
        self.mean, self.unscaled = self.mean + z * v, self.unscaled - v * v
        self._log_dets.append(self._log_dets[-1] + gain)
        self.size += 1
        if self.size - self._flushed >= BLOCK and self.size > self._without_base:
            self._flush()

    def _flush(self) -> None:
        V = self._rows.all[self._flushed - self._first :]
        if self._base is None:
            self._base = self.domain.gram.copy()
        add_outer(self._base, -1.0, V.T)
        self._flushed = self.size
        if not self._prefixes:
            self._rows = GrowingRows(self.domain.size, BLOCK)
            self._first = self.size


class DomainLogPosterior(Posterior):
    """``LogPosterior`` for the points of a domain: one agent that knows a prefix of a log, and own observations.

    ``update`` adds own observations, further rows v on top of the prefix; ``adopt`` learns more of the log.

    Attributes:
        known: number of leading rows of the log that this agent knows.
        log_det_gain: log det(I + K_all/lam) - log det(I + K_known/lam), the own points' share.
    """

    def __init__(self, log: DomainLog) -> None:
        self._log = log
        self.known = 0
        self._prefix = self._predicted = (log.domain.diag * 0.0, log.domain.diag)
        self._own: list[tuple[int, float]] = []
        self._rows = GrowingRows(log.domain.size, 4)
        self.log_det_gain = 0.0

    @property
    def own_size(self) -> int:
        """Number of own points that are not (known to be) among those rows."""
        return len(self._own)

    @property
    def log_det(self) -> float:
        return self._log.log_det(self.known) + self.log_det_gain

    def update(self, observations: Observations) -> None:
        entries = self._log.domain.entries(observations.points).tolist()
        for entry, reward in zip(entries, observations.rewards.tolist(), strict=True):
            self._append(entry, reward)

    def adopt(self, known: int, own_taken: int) -> None:
        """Learn the log up to row ``known``; the first ``own_taken`` own observations are among those rows.

        Raises:
            ValueError: ``known`` shrinks or exceeds the rows held, or ``own_taken`` exceeds the own points.
        """
        if not self.known <= known <= self._log.size:
            raise ValueError(f"known(={known}) must be between {self.known} and the {self._log.size} rows held.")
        if not 0 <= own_taken <= self.own_size:
            raise ValueError(f"own_taken(={own_taken}) must be between 0 and the {self.own_size} own points.")
        self._prefix = self._predicted = self._log.advance(*self._prefix, self.known, known)
        self.known = known
        kept, self._own = self._own[own_taken:], []
        self._rows, self.log_det_gain = GrowingRows(self._log.domain.size, 4), 0.0
        for entry, y in kept:
            self._append(entry, y)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        mean, unscaled = self._log.domain.at(arms, *self._predicted)
        return mean, np.maximum(unscaled, 0.0) * (1.0 / self._log.lam)

    def _append(self, entry: int, y: float) -> None:
        mean, unscaled = self._predicted
        W = self._rows.leading(self.own_size)
        covariance = self._log.covariance(entry, self.known) - W[:, entry] @ W
        v, z, gain = whiten(covariance, entry, y - float(mean[entry]), self._log.lam)
        self._predicted = mean + z * v, unscaled - v * v
        self._own.append((entry, y))
        self._rows.append(v[None])
        self.log_det_gain += gain


class DomainPosterior(DomainLogPosterior):
    """``ExactPosterior`` for the points of a domain: one agent on its own growing data."""

    def __init__(self, domain: Domain, lam: float) -> None:
        super().__init__(DomainLog(domain, lam, prefixes=False))

    @property
    def size(self) -> int:
        return self.known

    def update(self, observations: Observations) -> None:
        self._log.extend(self.known, observations)
        self.known = self._log.size
        self._predicted = self._log.mean, self._log.unscaled


def whiten(covariance: FloatArray, entry: int, residual: float, lam: float) -> tuple[FloatArray, float, float]:
    """Row v (M,) and whitened reward z of an observation, and what it adds to log det(I + K/lam).

    Args:
        covariance: C(., u) before the observation (M,); it is overwritten.
        entry: number of u.
        residual: y - mu(u).

    Raises:
        NotDefiniteError: rounding is as large as lam.
    """
    if not covariance[entry] >= -0.5 * lam:
        raise lam_is_lost(lam, entry + 1)
    s = max(float(covariance[entry]), 0.0) + lam
    covariance *= 1.0 / math.sqrt(s)
    return covariance, residual / math.sqrt(s), math.log(s / lam)
