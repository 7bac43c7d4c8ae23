"""Exact kernel ridge regression of many agents that know prefixes of one shared log of observations.

Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment"), eq. 1: with
K = k(X, X), k(x) = k(X, x) and rewards y,

    mu(x)      = k(x)^T (K + lam I)^(-1) y
    sigma(x)^2 = (k(x, x) - k(x)^T (K + lam I)^(-1) k(x)) / lam.

With the growing factor L of K + lam I these are mu = v^T z and sigma^2 = (k(x, x) - ||v||^2)/lam, where
v = L^(-1) k(x) and z = L^(-1) y; both v and z keep their entries when data are appended.
"""

from __future__ import annotations

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import BoundKernel
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.caches import SolveCache
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import repeat_alike
from coband.simulator.maths.posteriors.look_ahead import LookAhead, OwnPoints, solve_lower
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior

FEW = 64
"""Points that are looked up one by one among those solved for already."""


class SharedLog:
    """The factor over one canonical, append-only log of observations, of which many agents know prefixes.

    A pure cache: what is asked about the first ``known`` rows depends on those rows alone.
    """

    def __init__(self, kernel: Kernel, lam: float) -> None:
        self.kernel = kernel
        self.lam = lam
        self.factor = GrowingCholesky(lam)
        self.scale = 1.0
        self._points: GrowingRows | None = None
        self._bound: BoundKernel | None = None
        self._rewards = GrowingRows(1)
        self._whitened = GrowingRows(1)
        self.size = 0
        self._solve_cache = SolveCache(self._compute)
        self._look_ahead = LookAhead(self)

    @property
    def points(self) -> FloatArray:
        """The points in order, a read-only view (n, d); (0, 0) while there are none."""
        return np.empty((0, 0)) if self._points is None else self._points.leading(self.size)

    @property
    def rewards(self) -> FloatArray:
        """The rewards in order, a read-only view (n,)."""
        return self._rewards.leading(self.size)[:, 0]

    def extend(self, start: int, observations: Observations) -> None:
        """Make sure that rows ``start``, ``start + 1``, ... of the log are held; rows held already are skipped.

        Args:
            start: number of the first row given.
            observations: the rows; those held already are not looked at.

        Raises:
            ValueError: ``start`` leaves a gap after the rows held.
        """
        held = self.size - start
        if held < 0:
            raise ValueError(f"start(={start}) must be at most the {self.size} rows held.")
        if held < len(observations):
            X = np.array(observations.features[held:], dtype=np.float64)
            self._append(X, np.array(observations.rewards[held:], dtype=np.float64))

    def solve(self, arms: Points, known: int) -> FloatArray:
        """V = L^(-1) k(X_known, X) of n arms X, read-only (known, n), over the first ``known`` rows of the log.

        Raises:
            ValueError: fewer than ``known`` rows are held.
        """
        if not 0 <= known <= self.size:
            raise ValueError(f"known(={known}) must be between 0 and the {self.size} rows held.")
        if self._look_ahead.solves.active and len(arms) <= FEW:
            V = self._look_ahead.solves.solved(features_of(arms), known)
            if V is not None:
                return V
        return self._solve_cache(arms, known)

    def look_ahead(self, arms: ArmSet) -> None:
        """Announce the arm set of a coming turn, so that it can be prepared together with others."""
        self._look_ahead.look_ahead(arms)

    def scores(self, arms: ArmSet, alpha: float, known: int, own: OwnPoints | None = None) -> FloatArray | None:
        """mu + alpha sigma (n,) over the first ``known`` rows and own points: see :class:`LookAhead`."""
        return self._look_ahead.scores(arms, alpha, known, own)

    def cross(self, X: FloatArray, known: int) -> FloatArray:
        """The matrix k(X, X_known), shape (n, known)."""
        return np.empty((len(X), 0)) if self._bound is None else self._bound.leading(known).evaluate(X)

    def log_det(self, known: int) -> float:
        """log det(I + K/lam) of the first ``known`` rows."""
        return self.factor.log_det(known)

    def whitened_rewards(self, known: int) -> FloatArray:
        """z = L^(-1) y over the first ``known`` rows, shape (known,)."""
        return self._whitened.leading(known)[:, 0]

    def posterior(self) -> LogPosterior:
        """The posterior of an agent that knows nothing yet."""
        return LogPosterior(self)

    def _compute(self, X: FloatArray, known: int) -> FloatArray:
        V = self.factor.solve(self.cross(X, known).T, overwrite=True)
        repeat_alike(V.T, X)
        return V

    def _append(self, X: FloatArray, y: FloatArray) -> None:
        V = self.solve(X, self.size)
        C = self.factor.append_solved(V, self.kernel(X, X))
        self._whitened.append(solve_lower(C, y - V.T @ self.whitened_rewards(self.size))[:, None])
        if self._points is None:
            self._points = GrowingRows(X.shape[1])
        self._points.append(X)
        self._rewards.append(y[:, None])
        self._bound = self.kernel.against(X) if self._bound is None else self._bound.appended(X)
        self.size += len(y)
        self.scale = max(self.scale, float(np.abs(y).max()), float(self.kernel.diag(X).max()) / self.lam)
        self._look_ahead.solves.appended(X)


class LogPosterior(Posterior):
    """Exact posterior of one agent that knows the first ``known`` rows of a log and has own observations besides.

    ``update`` adds own observations, ``adopt`` learns more of the log. The own points are a small factor on top of the
    log's: with W = L^(-1) k(X_known, X_own), it is the factor of the Schur complement
    k(X_own, X_own) + lam I - W^T W.

    Attributes:
        known: number of leading rows of the log that this agent knows.
    """

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self.known = 0
        self._own: OwnPoints | None = None

    @property
    def known_alike(self) -> tuple[int, int] | None:
        """The log and its rows that are known; None with own points besides."""
        return (id(self._log), self.known) if self._own is None else None

    @property
    def own_size(self) -> int:
        """Number of own points that are not (known to be) among those rows."""
        return 0 if self._own is None else self._own.size

    @property
    def log_det(self) -> float:
        return self._log.log_det(self.known) + self.log_det_gain

    @property
    def log_det_gain(self) -> float:
        """log det(I + K_all/lam) - log det(I + K_known/lam), the own points' share."""
        return 0.0 if self._own is None else self._own.log_det

    def update(self, observations: Observations) -> None:
        if len(observations):
            self._extend_own(observations.points, observations.rewards)

    def adopt(self, known: int, own_taken: int) -> None:
        """Learn the log up to row ``known``; the first ``own_taken`` own observations are among those rows.

        Raises:
            ValueError: ``known`` shrinks or exceeds the rows held, or ``own_taken`` exceeds the own points.
        """
        if not self.known <= known <= self._log.size:
            raise ValueError(f"known(={known}) must be between {self.known} and the {self._log.size} rows held.")
        if not 0 <= own_taken <= self.own_size:
            raise ValueError(f"own_taken(={own_taken}) must be between 0 and the {self.own_size} own points.")
        own, self._own = self._own, None
        self.known = known
        if own is not None and own.size > own_taken:
            self._extend_own(own.points[own_taken:], own.rewards[own_taken:])

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        log, X = self._log, features_of(arms)
        V = log.solve(arms, self.known)
        mean: FloatArray = np.vecdot(V.T, log.whitened_rewards(self.known))  # equal columns give equal bits
        variance = log.kernel.diag(X) - column_squares(V)
        if self._own is not None:
            U = self._own.solve(X, V)
            mean += U.T @ self._own.whitened
            variance -= column_squares(U)
        return mean, scaled(variance, log.lam)

    def look_ahead(self, arms: ArmSet) -> None:
        self._log.look_ahead(arms)

    def scores(self, arms: ArmSet, alpha: float) -> FloatArray:
        scores = self._log.scores(arms, alpha, self.known, self._own)
        return super().scores(arms, alpha) if scores is None else scores

    def _extend_own(self, points: Points, y: FloatArray) -> None:
        log, X = self._log, features_of(points)
        V = log.solve(points, self.known)
        if self._own is None:
            self._own = OwnPoints(log.kernel, log.lam, log.whitened_rewards(self.known), X.shape[1])
        self._own.append(X, y, V)


def column_squares(V: FloatArray) -> FloatArray:
    """The squared norm of every column of V (known, n), shape (n,)."""
    squares: FloatArray = np.einsum("ij,ij->i", V.T, V.T)
    return squares


def scaled(unscaled: FloatArray, lam: float) -> FloatArray:
    """sigma^2 from lam sigma^2, clipped at 0, in place."""
    np.maximum(unscaled, 0.0, out=unscaled)
    unscaled *= 1.0 / lam
    return unscaled


class ExactPosterior(LogPosterior):
    """Exact posterior of one agent on its own growing data (Li et al. 2023, eq. 1): it knows all of its own log."""

    def __init__(self, kernel: Kernel, lam: float) -> None:
        super().__init__(SharedLog(kernel, lam))

    @property
    def size(self) -> int:
        return self.known

    def update(self, observations: Observations) -> None:
        """Learn observations. A single arm of the last ``predict`` costs no second solve."""
        self._log.extend(self.known, observations)
        self.known = self._log.size
