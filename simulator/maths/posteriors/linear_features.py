"""Linear kernels in the primal: ridge regression on explicit features, exact, in memory that does not grow.

With features phi, V = sum phi phi^T + lam I and b = sum phi y,

    mu(x) = phi^T V^(-1) b,   sigma(x)^2 = phi^T V^(-1) phi = (k(x, x) - k(x)^T (K + lam I)^(-1) k(x)) / lam.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.linalg.matrices import padded
from coband.simulator.maths.posteriors.dictionary import SKIP_BELOW, Dictionary


class RidgeRegression:
    """Ridge regression whose features may grow in number; data without a feature have it at zero.

    Args:
        features: number of features p to start with.
        lam: ridge parameter lam > 0.
    """

    def __init__(self, features: int, lam: float) -> None:
        self.lam = lam
        self._inverse = np.eye(features) / lam
        self._b = np.zeros(features)
        self._theta = np.zeros(features)
        self._log_det = 0.0

    @property
    def features(self) -> int:
        """Number of features p."""
        return len(self._b)

    @property
    def log_det(self) -> float:
        """log det(V / lam) = log det(I + K/lam)."""
        return self._log_det

    @property
    def inverse(self) -> FloatArray:
        """V^(-1), (p, p)."""
        return self._inverse

    def grow(self, features: int) -> None:
        """Add features, up to so many."""
        if features > self.features:
            self._inverse = padded(self._inverse, features, 1.0 / self.lam)
            self._b = np.concatenate([self._b, np.zeros(features - len(self._b))])
            self._theta = np.concatenate([self._theta, np.zeros(features - len(self._theta))])

    def add(self, Phi: FloatArray, y: FloatArray) -> None:
        """Learn observations: features (n, p) with rewards (n,)."""
        block = max(1, self.features)  # the Woodbury formula costs n p^2 where blocks have at most p rows
        for start in range(0, len(y), block):
            self._add_block(Phi[start : start + block])
        self._b += Phi.T @ y
        self._theta = self._inverse @ self._b

    def _add_block(self, Phi: FloatArray) -> None:
        U = Phi @ self._inverse
        M = U @ Phi.T
        M.flat[:: len(M) + 1] += 1.0
        C, _ = dpotrf(M, lower=1)
        solved, _ = dpotrs(C, U, lower=1)
        self._inverse -= U.T @ solved
        self._log_det += 2.0 * float(np.log(np.diagonal(C)).sum())

    def copied(self) -> RidgeRegression:
        """The same, to go on with apart."""
        copy = RidgeRegression(0, self.lam)
        copy._inverse, copy._b, copy._theta = self._inverse.copy(), self._b.copy(), self._theta.copy()
        copy._log_det = self._log_det
        return copy

    def moments(self, Phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at features Phi (n, p), each (n,)."""
        variance = np.einsum("ij,ij->i", Phi @ self._inverse, Phi)
        return Phi @ self._theta, np.maximum(variance, 0.0)


class ArmFeatures:
    """Features of a linear kernel variance x.y + bias: sqrt(variance) x, and sqrt(bias) where there is a bias."""

    def __init__(self, kernel: Linear, dimension: int) -> None:
        self._columns = None if kernel.columns is None else list(kernel.columns)
        self._root, self._bias = math.sqrt(kernel.variance), math.sqrt(kernel.bias)
        self.count = (dimension if self._columns is None else len(self._columns)) + (kernel.bias > 0)

    def of(self, X: FloatArray) -> FloatArray:
        """Features (n, count) of arms X (n, d)."""
        seen = self._root * (X if self._columns is None else X[:, self._columns])
        return np.hstack([seen, np.full((len(X), 1), self._bias)]) if self._bias else seen


class TaskFeatures:
    """Features of a kernel of tasks: the Newton basis over the different tasks met so far; none where K_z = 1.

    Args:
        kernel: K_z as a function of the task's columns; None for K_z = 1.
    """

    def __init__(self, kernel: Kernel | None) -> None:
        self._dictionary = None if kernel is None else Dictionary(kernel)

    def copied(self) -> TaskFeatures:
        """The same, to go on with apart."""
        copy = TaskFeatures(None)
        copy._dictionary = self._dictionary
        return copy

    @property
    def count(self) -> int:
        """Number of features: the rank of K_z on the tasks met."""
        return 1 if self._dictionary is None else self._dictionary.size

    def meet(self, tasks: FloatArray) -> None:
        """Take up tasks (n, s) that those met so far do not span."""
        if self._dictionary is None:
            return
        for task in np.unique(tasks, axis=0):
            kernel, z = self._dictionary.kernel, self._dictionary.embed(task[None])[0]
            prior = float(kernel.diag(task[None])[0])
            if prior - z @ z > SKIP_BELOW * prior:
                self._dictionary = self._dictionary.appended(task[None])

    def of(self, tasks: FloatArray) -> FloatArray:
        """Features (n, count) of tasks (n, s)."""
        return np.ones((len(tasks), 1)) if self._dictionary is None else self._dictionary.embed(tasks)

    def norms(self, tasks: FloatArray) -> FloatArray:
        """K_z(z, z) of tasks (n, s), shape (n,)."""
        return np.ones(len(tasks)) if self._dictionary is None else self._dictionary.kernel.diag(tasks)


class PrimalPosterior:
    """The posterior of K_z K_x, or of K_z + K_x, with a linear K_x: zeta(z) (x) x, or [x | zeta(z)], as features.

    Args:
        kernel: K_x.
        network: K_z as a function of tasks; None for 1.
        dimension: d.
        lam: ridge parameter.
        add_up: K_z + K_x in place of the product.
    """

    def __init__(self, kernel: Linear, network: Kernel | None, dimension: int, lam: float, add_up: bool) -> None:
        self._arms = ArmFeatures(kernel, dimension)
        self._tasks = TaskFeatures(network)
        self._kernel = kernel
        self._add_up = add_up and network is not None
        self._ridge = RidgeRegression(self._features(), lam)

    def copied(self) -> PrimalPosterior:
        """The same, to go on with apart."""
        copy = object.__new__(PrimalPosterior)
        copy.__dict__.update(self.__dict__, _tasks=self._tasks.copied(), _ridge=self._ridge.copied())
        return copy

    def _features(self) -> int:
        count = self._tasks.count
        return self._arms.count + count if self._add_up else self._arms.count * count

    @property
    def log_det(self) -> float:
        """log det(I + K/lam)."""
        return self._ridge.log_det

    def add(self, tasks: FloatArray, X: FloatArray, y: FloatArray) -> None:
        """Learn observations of tasks (n, s): arms X (n, d) with rewards y (n,)."""
        self._tasks.meet(tasks)
        self._ridge.grow(self._features())
        self._ridge.add(self._phi(tasks, X), y)

    def moments(self, tasks: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at arms X (n, d) of tasks (n, s), each (n,)."""
        Phi = self._phi(tasks, X)
        mean, variance = self._ridge.moments(Phi)
        prior, of_tasks = self._kernel.diag(X), self._tasks.norms(tasks)
        prior = prior + of_tasks if self._add_up else prior * of_tasks
        unseen = np.maximum(prior - np.einsum("ij,ij->i", Phi, Phi), 0.0)
        unseen[unseen < SKIP_BELOW * prior] = 0.0
        return mean, variance + unseen / self._ridge.lam

    def _phi(self, tasks: FloatArray, X: FloatArray) -> FloatArray:
        of_tasks, of_arms = self._tasks.of(tasks), self._arms.of(X)
        if self._add_up:
            return np.hstack([of_arms, of_tasks])
        products: FloatArray = of_tasks[:, :, None] * of_arms[:, None, :]
        return products.reshape(len(X), -1)
