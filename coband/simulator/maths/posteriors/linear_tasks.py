"""Linear kernels of arms, and many tasks: exact posteriors whose cost does not grow with the data (Dubey and Pentland
2020, "Kernel Methods for Cooperative Multi-Agent Contextual Bandits", equation 9 for K = K_z K_x with a linear K_x).

Task u has f_u(x) = w_u^T phi(x), and w has the prior N(0, K_z (x) I). All that its observations (Phi_u, y_u) say is the
triangle R_u, (a, a), and the vector c_u, (a,), of a QR factorisation of [Phi_u | y_u]: the log-likelihood depends on
Phi_u^T Phi_u = R_u^T R_u and Phi_u^T y_u = R_u^T c_u. With R = diag(R_u), B = I + R (K_z (x) I) R^T / lam and
D = R (K_z e_v (x) I), what is known of the tasks N gives w_v the

    mean D_N^T B_NN^(-1) c_N / lam   and covariance   K_z(v, v) I - D_N^T B_NN^(-1) D_N / lam.

Who knows nearly all tasks takes the rest O out of a solution for all: with P = B^(-1) and W = chol(P_OO)^(-1) P_O,

    B_NN^(-1) = P_NN - W_N^T W_N,   which costs |O|^3 in place of |N|^3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.linalg.matrices import dpotrf, dpotri, dtrtrs
from coband.simulator.maths.posteriors.linear_features import ArmFeatures
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior

LARGEST_ENTRY = 1e6
"""Largest entry of a B whose inverse is used: its rounding makes up about 1e-16 of the square of this of a variance."""

Weights = tuple[FloatArray, FloatArray]
"""Mean (a,) and covariance (a, a) of w_v."""

LARGEST_SOLUTION = 4096
"""Rows of the largest B that is solved for all tasks together: 128 MiB, and seconds."""


class Triangles:
    """[R_u | c_u] of numbered tasks.

    Args:
        features: number of features a.
    """

    def __init__(self, tasks: int, features: int) -> None:
        self._rows = np.zeros((tasks, features, features + 1))

    @property
    def roots(self) -> FloatArray:
        """R_u of all tasks, (tasks, a, a)."""
        return self._rows[:, :, :-1]

    @property
    def rewards(self) -> FloatArray:
        """c_u of all tasks, (tasks, a)."""
        return self._rows[:, :, -1]

    def add(self, numbers: IndexArray, Phi: FloatArray, y: FloatArray) -> None:
        """Learn an observation each of different tasks (n,): features (n, a) and rewards (n,)."""
        observed = np.hstack([Phi, y[:, None]])[:, None, :]
        below = np.concatenate([self._rows[numbers], observed], axis=1)
        triangle = np.asarray(np.linalg.qr(below, mode="r"))
        self._rows[numbers] = triangle[:, :-1]  # the last row is the residual's

    def copy(self, numbers: IndexArray, other: Triangles) -> None:
        """Take over what another one has of some tasks."""
        self._rows[numbers] = other._rows[numbers]


def ridge_matrix(R: FloatArray, table: FloatArray, lam: float) -> FloatArray:
    """B, (n a, n a), of n tasks with triangles R (n, a, a) and their K_z (n, n)."""
    tasks, features, _ = R.shape
    stacked = R.reshape(-1, features)
    B: FloatArray = stacked @ stacked.T
    blocks = B.reshape(tasks, features, tasks, features)
    blocks *= table[:, None, :, None] / lam
    B.flat[:: len(B) + 1] += 1.0
    return B


def weights(R: FloatArray, c: FloatArray, table: FloatArray, own: int, lam: float) -> Weights:
    """The posterior of one of n tasks by itself.

    Args:
        R: triangles (n, a, a).
        c: vectors (n, a).
        table: K_z, (n, n).
        own: which task.
        lam: ridge parameter.
    """
    features = R.shape[-1]
    L, info = dpotrf(ridge_matrix(R, table, lam).T, lower=1, clean=0, overwrite_a=1)  # symmetric
    assert info == 0, "B is positive definite"
    D = (R * table[:, own, None, None]).reshape(-1, features)
    solved, _ = dtrtrs(L, np.column_stack([D, c.ravel()]), lower=1)
    V, z = solved[:, :-1], solved[:, -1]
    return V.T @ z / lam, table[own, own] * np.eye(features) - V.T @ V / lam


@dataclass(frozen=True)
class Solution:
    """All tasks' B solved once.

    Attributes:
        R, c, table, lam: as for `weights`.
        inverse: P = B^(-1), (n a, n a).
        gains: P D for each task as the own one, (n, n a, a).
        whitened: P c, (n a,).
    """

    R: FloatArray
    c: FloatArray
    table: FloatArray
    lam: float
    inverse: FloatArray
    gains: FloatArray
    whitened: FloatArray

    @classmethod
    def of(cls, R: FloatArray, c: FloatArray, table: FloatArray, lam: float) -> Solution | None:
        """Solve; None where the table is not positive semidefinite, as when nobody knows K_z of some tasks, or B^(-1)
        would lose too many digits.
        """
        tasks, features, _ = R.shape
        B = ridge_matrix(R, table, lam)
        if not B.diagonal().max() <= LARGEST_ENTRY:
            return None
        L, info = dpotrf(B.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return None
        lower, _ = dpotri(L, lower=1, overwrite_c=1)
        P = np.tril(lower)
        P += np.tril(P, -1).T
        by_task = P.reshape(len(P), tasks, features).transpose(1, 0, 2) @ R
        gains = (table @ by_task.reshape(tasks, -1)).reshape(by_task.shape)
        return cls(R, c, table, lam, P, gains, P @ c.ravel())

    def weights(self, own: int, without: IndexArray) -> Weights:
        """The posterior of task ``own`` when nothing is known of the tasks ``without`` (in ascending order)."""
        features, Q = self.R.shape[-1], self.gains[own]
        D = (self.R * self.table[:, own, None, None]).reshape(-1, features)
        mean, covariance = Q.T @ self.c.ravel(), -D.T @ Q
        if len(without):
            rows = (without[:, None] * features + np.arange(features)).ravel()
            corner = self.inverse[rows].reshape(len(rows), -1, features).take(without, axis=1)
            L, info = dpotrf(corner.reshape(len(rows), -1).T, lower=1, clean=0, overwrite_a=1)
            assert info == 0, "a diagonal block of a positive definite matrix"
            W, _ = dtrtrs(L, np.column_stack([Q[rows], self.whitened[rows]]), lower=1)
            mean -= W[:, :-1].T @ W[:, -1]
            covariance += W[:, :-1].T @ W[:, :-1]
        return mean / self.lam, self.table[own, own] * np.eye(features) + covariance / self.lam


class TasksInCommon:
    """What is known of all tasks together, for agents that know most of it.

    A pure cache: `weights` answers only who knows the same observations of its tasks and the
    same K_z of them, and leaves the other tasks out.

    Args:
        features: number of features a.
    """

    def __init__(self, tasks: int, features: int, lam: float) -> None:
        self.triangles = Triangles(tasks, features)
        self._lam = lam
        self._counts = np.zeros(tasks, dtype=np.intp)
        self._table = np.eye(tasks)
        self._small = tasks * features <= LARGEST_SOLUTION
        self._solution: Solution | None = None
        self._current = False

    def add(self, numbers: IndexArray, trials: IndexArray, Phi: FloatArray, y: FloatArray) -> None:
        """Take up observations of different tasks that come next in their tasks' order of trials."""
        new = self._counts[numbers] + 1 == trials
        if new.any():
            self.triangles.add(numbers[new], Phi[new], y[new])
            self._counts[numbers[new]] += 1
            self._current = False

    def follow(self, tasks: IndexArray, table: FloatArray) -> None:
        """Take up K_z (n, n) of some tasks (n,)."""
        at = np.ix_(tasks, tasks)
        if not np.array_equal(self._table[at], table):
            self._table[at] = table
            self._current = False

    def holds(self, tasks: IndexArray, counts: IndexArray, table: FloatArray) -> bool:
        """Whether it has so many observations of the tasks (n,), and this K_z of them (n, n)."""
        same = np.array_equal(self._counts[tasks], counts)
        return same and np.array_equal(self._table[np.ix_(tasks, tasks)], table)

    def weights(self, own: int, tasks: IndexArray) -> Weights | None:
        """The posterior from the tasks (n,) alone; None where it takes less work by itself."""
        without = np.setdiff1d(np.flatnonzero(self._counts), tasks)
        if not self._small or len(without) >= len(tasks):
            return None
        if not self._current:
            R, c = self.triangles.roots, self.triangles.rewards
            self._solution, self._current = Solution.of(R, c, self._table, self._lam), True
        return None if self._solution is None else self._solution.weights(own, without)


class TaskwisePosterior(MultitaskPosterior):
    """What one agent knows of its own task and others'; the keys of observations say of which tasks, and when.

    Args:
        kernel: K_x.
        network: K_z as a function of tasks; None where ``follow`` gives it as a table of numbered tasks.
        own: the number of its own.
        task: its own as ``network`` sees it, (s,).
        common: shared with others, or None.
    """

    def __init__(
        self,
        kernel: Linear,
        network: Kernel | None,
        dimension: int,
        lam: float,
        tasks: int,
        own: int,
        task: FloatArray,
        common: TasksInCommon | None,
    ) -> None:
        self._features, self._lam, self._own, self._common = ArmFeatures(kernel, dimension), lam, own, common
        self._triangles = Triangles(tasks, self._features.count)
        self._late: list[tuple[IndexArray, FloatArray, FloatArray]] = []
        self._counts = np.zeros(tasks, dtype=np.intp)  # -1 once trials are missing or out of order
        self._network, self._contexts = network, np.zeros((tasks, len(task)))
        self._contexts[own] = task
        self._heard = np.arange(tasks) == own
        self._table = np.eye(tasks) if network is None else network(self._contexts, self._contexts)

    def follow(self, table: FloatArray) -> bool:
        """K_z (tasks, tasks) from now on; entries of unknown tasks do not matter."""
        self._table = table
        self._tell_common()
        return True

    def update(self, observations: Observations) -> None:
        """Learn observations of any tasks at trials counted from 1."""
        if not len(observations):
            return
        assert observations.keys is not None, "observations of numbered tasks have keys"
        trials, numbers = np.array(observations.keys).T
        if self._network is not None and not self._heard[numbers].all():
            self._meet(numbers, observations.tasks, self._network)
        Phi, y = self._features.of(observations.features), observations.rewards
        for chosen in _different(numbers):
            tasks, when = numbers[chosen], trials[chosen]
            self._counts[tasks] = np.where(self._counts[tasks] + 1 == when, when, -1)
            self._late.append((tasks, Phi[chosen], y[chosen]))
            if self._common is not None:
                self._common.add(tasks, when, Phi[chosen], y[chosen])
        self._tell_common()

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        Phi = self._features.of(features_of(arms))
        mean, covariance = self._weights()
        variance = np.einsum("ij,ij->i", Phi @ covariance, Phi) / self._lam
        return Phi @ mean, np.maximum(variance, 0.0)

    @property
    def log_det(self) -> float:
        """log det(I + K/lam) = log det B of all known tasks."""
        known = self._known()
        if not len(known):
            return 0.0
        table = self._table[np.ix_(known, known)]
        self._gather(known, table)
        self._take_late()
        L, info = dpotrf(ridge_matrix(self._triangles.roots[known], table, self._lam).T, lower=1, clean=0)
        assert info == 0, "B is positive definite"
        return float(2.0 * np.log(np.diagonal(L)).sum())

    def _meet(self, numbers: IndexArray, tasks: FloatArray | None, network: Kernel) -> None:
        """Take in K_z of agents that are heard for the first time."""
        assert tasks is not None, "observations say of which tasks they are"
        self._heard[numbers] = True
        self._contexts[numbers] = tasks
        self.follow(network(self._contexts, self._contexts))

    def _tell_common(self) -> None:
        if self._common is not None:
            known = self._known()
            self._common.follow(known, self._table[np.ix_(known, known)])

    def _known(self) -> IndexArray:
        """The tasks of which something is known, in ascending order."""
        return np.flatnonzero(self._counts)

    def _gather(self, known: IndexArray, table: FloatArray) -> bool:
        """Take the triangles from the shared part, if it knows the same; whether it does."""
        common = self._common
        shared = common is not None and common.holds(known, self._counts[known], table)
        if common is not None and shared:
            self._triangles.copy(known, common.triangles)
            self._late.clear()
        return shared

    def _take_late(self) -> None:
        for tasks, Phi, y in self._late:
            self._triangles.add(tasks, Phi, y)
        self._late.clear()

    def _weights(self) -> Weights:
        known = self._known()
        # The shared part knows K_z of those tasks alone that somebody knows something of.
        if self._gather(known, self._table[np.ix_(known, known)]) and self._counts[self._own]:
            assert self._common is not None
            found = self._common.weights(self._own, known)
            if found is not None:
                return found
        self._take_late()
        with_own = np.union1d(known, [self._own])
        place = int(np.searchsorted(with_own, self._own))
        R, c = self._triangles.roots[with_own], self._triangles.rewards[with_own]
        return weights(R, c, self._table[np.ix_(with_own, with_own)], place, self._lam)


def _different(numbers: IndexArray) -> Iterator[IndexArray]:
    """Places in ``numbers`` (n,), in turns such that no number comes twice in one, the first occurrences first."""
    left = np.arange(len(numbers))
    while len(left):
        _, first = np.unique(numbers[left], return_index=True)
        yield left[first]
        left = np.delete(left, first)
