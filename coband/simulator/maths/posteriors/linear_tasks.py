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

from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.linalg.lapack import dpotrf, dpotri, dtrtrs

LARGEST_ENTRY = 1e6
"""Of a B whose inverse is used: its rounding makes up about 1e-16 of the square of this of a variance."""

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
