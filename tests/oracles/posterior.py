"""Posteriors by dense linear algebra: exact kernel ridge regression (eq. 1) and its Nystroem form (eq. 2).

Source: Li et al. 2023, "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment", section
3.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Kernel = Callable[[FloatArray, FloatArray], FloatArray]
Point = tuple[FloatArray, float]

DROPPED = 1e-13
"""Eigenvalues of K_SS at most this part of the largest count as zero.

Small, because what is dropped is lost: with a smooth kernel a cut at 1e-10 moves mu by some 1e-7 (50 points in 3
dimensions), and one at 1e-12 by some 1e-5 (37 points in 2 dimensions).
Rounding makes zero eigenvalues (repeated points) about 1e-16 to 1e-15 of the largest.
"""


class Dictionary:
    """An ordered list of points S and the root R = Lambda^(-1/2) U^T of the inverse of K_SS = U Lambda U^T (m, m).

    The root is taken once: statistics are coordinates, and mean something only together with the root they were
    computed with. Repeated points make K_SS singular; R then has rows of zeros (a pseudo-inverse root).
    """

    def __init__(self, points: Sequence[FloatArray], kernel: Kernel) -> None:
        self.points = list(points)
        self.kernel = kernel
        self.root = np.zeros((0, 0))
        if self.points:
            values, vectors = np.linalg.eigh(kernel(np.array(self.points), np.array(self.points)))
            inverse_roots = [1 / np.sqrt(v) if v > DROPPED * values.max() else 0.0 for v in values]
            self.root = np.diag(inverse_roots) @ vectors.T

    def __len__(self) -> int:
        return len(self.points)

    def embed(self, X: FloatArray) -> FloatArray:
        """Rows z(x; S) = Lambda^(-1/2) U^T k_S(x) for the rows of X (n, d); shape (n, m)."""
        if not self.points:
            return np.zeros((len(X), 0))
        return (self.root @ self.kernel(np.array(self.points), X)).T


@dataclass(frozen=True)
class Statistics:
    """A = sum z z^T (m, m) and b = sum z y (m,) of some data, with the dictionary S that z was taken over."""

    dictionary: Dictionary
    A: FloatArray
    b: FloatArray


def statistics(data: Sequence[Point], dictionary: Dictionary) -> Statistics:
    """Embedded statistics A(D; S), b(D; S) of the data D (Li et al. 2023, section 4.1)."""
    A = np.zeros((len(dictionary), len(dictionary)))
    b = np.zeros(len(dictionary))
    for x, y in data:
        z = dictionary.embed(x[None, :])[0]
        A += np.outer(z, z)
        b += z * y
    return Statistics(dictionary, A, b)


def transfer(old: Dictionary, new: Dictionary) -> FloatArray:
    """T (m_old, m_new) with Z_new = Z_old T, for data projected on the old span (Li et al. 2023, below eq. 5).

    T = Lambda_old^(-1/2) U_old^T K_{old,new} U_new Lambda_new^(-1/2). The paper prints Lambda_old^(+1/2), which would
    not give the identity for old = new.
    """
    if len(old) == 0 or len(new) == 0:
        return np.zeros((len(old), len(new)))
    K_old_new = old.kernel(np.array(old.points), np.array(new.points))
    return old.root @ K_old_new @ new.root.T


def prior_variance(X: FloatArray, kernel: Kernel) -> FloatArray:
    """k(x, x) for the rows of X; shape (n,)."""
    return np.diagonal(kernel(X, X)).copy()


def nystroem(X: FloatArray, model: Statistics, lam: float) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation at the rows of X (Li et al. 2023, eq. 2).

    mu = z^T (A + lam I)^(-1) b and sigma^2 = (k(x,x) - z^T A (A + lam I)^(-1) z) / lam; with an empty dictionary 0 and
    k(x,x) / lam.
    """
    Z = model.dictionary.embed(X)
    ridge = model.A + lam * np.eye(len(model.b))
    mu = Z @ np.linalg.solve(ridge, model.b)
    prior = prior_variance(X, model.dictionary.kernel)
    sigma2 = [(k - z @ model.A @ np.linalg.solve(ridge, z)) / lam for k, z in zip(prior, Z, strict=True)]
    return mu, np.sqrt(np.maximum(sigma2, 0.0))


def exact(X: FloatArray, data: Sequence[Point], kernel: Kernel, lam: float) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of kernel ridge regression on the data (Li et al. 2023, eq. 1).

    mu = k_D(x)^T (K + lam I)^(-1) y and sigma^2 = (k(x,x) - k_D(x)^T (K + lam I)^(-1) k_D(x)) / lam.
    """
    prior = prior_variance(X, kernel)
    if not data:
        return np.zeros(len(X)), np.sqrt(prior / lam)
    points = np.array([x for x, _ in data])
    y = np.array([y for _, y in data])
    ridge = kernel(points, points) + lam * np.eye(len(points))
    k_D = kernel(points, X)
    mu = k_D.T @ np.linalg.solve(ridge, y)
    sigma2 = (prior - np.sum(k_D * np.linalg.solve(ridge, k_D), axis=0)) / lam
    return mu, np.sqrt(np.maximum(sigma2, 0.0))


def log_det(data: Sequence[Point], kernel: Kernel, lam: float) -> float:
    """log det(I + K / lam) over the data's points; 0 without data."""
    if not data:
        return 0.0
    points = np.array([x for x, _ in data])
    sign, value = np.linalg.slogdet(np.eye(len(points)) + kernel(points, points) / lam)
    assert sign > 0
    return float(value)
