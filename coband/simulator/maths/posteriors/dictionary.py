"""Nystrom dictionaries, the embedding they define, and sufficient statistics of embedded data.

For an ordered list of points S with kernel matrix K_SS = L L^T, the embedding of a point is z(x) = L^(-1) k_S(x).
Li et al. 2023 ("Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment") writes
K_SS^(-1/2) k_S(x); the two differ by a rotation, which no mean or deviation sees. The Cholesky root is nested: points
appended at the end leave the coordinates of the others alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import BoundKernel, symmetric
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.linalg.matrices import add_outer, dpotrf, dtrmm, dtrtri, padded

SKIP_BELOW = 1e-10
"""A point whose pivot k(x,x) - z^T z is below this share of k(x,x) adds nothing to the span of those before it."""


class Dictionary:
    """An immutable ordered list of points with its Newton (Cholesky) basis.

    A point whose pivot is negligible is *skipped*: it stays in ``points``, and its coordinate is zero in every
    embedding, so that all shapes follow the number of points.

    Args:
        kernel: the kernel; the dictionary starts empty.

    Attributes:
        points: in order, read-only (m, d); (0, 0) while there are none.
        bound: the kernel bound to the points; None while there are none.
        inverse_root: L^(-1), read-only (m, m), with zero rows and columns for skipped points.
        skipped: number of points whose coordinate is always zero.
        smallest_pivot: of a point that was kept, as a share of its k(x,x); 1 for an empty dictionary.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.points: FloatArray = np.empty((0, 0))
        self.bound: BoundKernel | None = None
        self.inverse_root: FloatArray = np.empty((0, 0))
        self.skipped = 0
        self.smallest_pivot = 1.0

    @property
    def size(self) -> int:
        """Number of points m, skipped ones included."""
        return len(self.points)

    def appended(self, points: FloatArray) -> Dictionary:
        """The dictionary with ``points`` (p, d) appended; the embedding's old coordinates stay as they are."""
        if len(points) == 0:
            return self
        points = np.array(points, dtype=np.float64)
        grown = Dictionary(self.kernel)
        grown.points = _read_only(np.vstack([self.points, points]) if self.size else points)
        grown.bound = self.kernel.against(points) if self.bound is None else self.bound.appended(points)
        K, scale = grown.bound.evaluate(points), self.kernel.diag(points)
        Z = self._whitened(np.ascontiguousarray(K[:, : self.size]))
        schur = symmetric(K[:, self.size :], scale) - Z @ Z.T
        corner, pivots = _inverse_of_kept(schur, scale)
        kept = pivots[pivots > 0.0]
        grown.inverse_root = _read_only(_bordered(self.inverse_root, self.dual(Z.T).T, corner))
        grown.skipped = self.skipped + len(pivots) - len(kept)
        grown.smallest_pivot = float(kept.min(initial=self.smallest_pivot))
        return grown

    def cross(self, X: FloatArray) -> FloatArray:
        """The kernel rows k_S(x) of X (n, d), shape (n, m). The caller owns the result."""
        return np.empty((len(X), 0)) if self.bound is None else self.bound.evaluate(X)

    def embed(self, X: FloatArray) -> FloatArray:
        """The embeddings z(x) = L^(-1) k_S(x) of X (n, d), as rows (n, m)."""
        return self._whitened(self.cross(X))

    def dual(self, H: FloatArray) -> FloatArray:
        """L^(-T) H for H (m,) or (m, p): weights of kernel rows k_S(x) for weights of embeddings."""
        if H.ndim == 1 or not H.size:
            return self.inverse_root.T @ H
        return dtrmm(1.0, self.inverse_root.T, H, lower=0)  # half of the multiplications

    def _whitened(self, K: FloatArray) -> FloatArray:
        """The rows L^(-1) k of kernel rows K (n, m), in place."""
        if not K.size:
            return K
        columns: FloatArray = dtrmm(1.0, self.inverse_root.T, K.T, lower=0, trans_a=1, overwrite_b=1)
        return columns.T

    def is_prefix_of(self, other: Dictionary) -> bool:
        """Whether ``other`` has the same kernel and starts with this dictionary's points."""
        if self is other or self.size == 0:
            return self.kernel == other.kernel
        return self.kernel == other.kernel and np.array_equal(self.points, other.points[: self.size])


def transformation(old: Dictionary, new: Dictionary) -> FloatArray:
    """T = L_old^(-1) K_old,new L_new^(-T), shape (m_old, m_new): embeddings satisfy z_old ~ T z_new.

    Li et al. 2023, eq. 5, in the Cholesky root (-1/2 is the exponent of the old eigenvalues; another one is
    printed).
    """
    return old.embed(new.points).T @ new.inverse_root.T if old.size and new.size else np.zeros((old.size, new.size))


def _inverse_of_kept(schur: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverse lower root of a Schur complement (p, p) without its negligible pivots, and the pivots over ``scale``.

    Rows and columns of skipped pivots are zero in the inverse, and so are their entries among the pivots.
    """
    scale = np.maximum(scale, np.finfo(np.float64).tiny)
    C, info = dpotrf(schur, lower=1, clean=1)
    pivots: FloatArray = np.diagonal(C) ** 2 / scale
    if info == 0 and pivots.min() >= SKIP_BELOW:
        inverse, _ = dtrtri(C, lower=1)
        return inverse, pivots
    C, pivots = np.eye(len(schur)), np.zeros(len(schur))
    for i in range(len(schur)):
        pivot = (schur[i, i] - C[i, :i] @ C[i, :i]) / scale[i]
        if not pivot >= SKIP_BELOW:
            C[i, :i] = 0.0
            continue
        pivots[i] = pivot
        C[i, i] = math.sqrt(pivot * scale[i])
        C[i + 1 :, i] = (schur[i + 1 :, i] - C[i + 1 :, :i] @ C[i, :i]) / C[i, i]
    inverse, _ = dtrtri(C, lower=1)
    inverse[np.diag_indices_from(inverse)] *= pivots > 0.0
    return inverse, pivots


def _bordered(inverse_root: FloatArray, W: FloatArray, corner: FloatArray) -> FloatArray:
    """The inverse of [[L, 0], [Z, C]], given L^(-1), W = Z L^(-1) and the corner C^(-1)."""
    m, p = len(inverse_root), len(corner)
    bordered = np.empty((m + p, m + p))
    bordered[:m, :m], bordered[:m, m:] = inverse_root, 0.0
    bordered[m:, :m] = -corner @ W
    bordered[m:, m:] = corner
    return bordered


def _read_only(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Statistics:
    """A = sum z z^T (m, m) and b = sum z y (m,) of a data set, over a dictionary of m points."""

    A: FloatArray
    b: FloatArray

    def __post_init__(self) -> None:
        if self.A.shape != (len(self.b), len(self.b)):
            raise ValueError(f"A of shape {self.A.shape} must be square and as large as b of shape {self.b.shape}.")

    @classmethod
    def zero(cls, m: int) -> Statistics:
        """The statistics of no data over m points."""
        return cls(np.zeros((m, m)), np.zeros(m))

    @classmethod
    def of(cls, Z: FloatArray, y: FloatArray) -> Statistics:
        """The statistics of embeddings Z (p, m) with rewards y (p,): Z^T Z and Z^T y."""
        return cls(Z.T @ Z, Z.T @ y)

    @property
    def size(self) -> int:
        return len(self.b)

    def padded(self, m: int) -> Statistics:
        """The same statistics over a dictionary that continues the present one to m points.

        Raises:
            ValueError: m is less than the present size.
        """
        if m == self.size:
            return self
        if m < self.size:
            raise ValueError(f"m(={m}) must be at least the present size {self.size}.")
        b = np.zeros(m)
        b[: self.size] = self.b
        return Statistics(padded(self.A, m), b)

    def extended(self, Z: FloatArray, y: FloatArray) -> Statistics:
        """The statistics with p more observations, embedded as Z (p, m) in the present dictionary or a continuation."""
        A, b = padded(self.A, Z.shape[1]), Z.T @ y
        add_outer(A, 1.0, Z.T)
        b[: self.size] += self.b
        return Statistics(A, b)

    def reexpressed(self, old: Dictionary, new: Dictionary) -> Statistics:
        """The statistics over ``old`` re-expressed over ``new``: T^T A T and T^T b (Li et al. 2023, eq. 5).

        Where ``new`` continues ``old`` this is zero padding.
        """
        if old.is_prefix_of(new):
            return self.padded(new.size)
        T = transformation(old, new)
        return Statistics(T.T @ self.A @ T, T.T @ self.b)

    def __add__(self, other: Statistics) -> Statistics:
        """The statistics of both data sets, over the same dictionary."""
        if self.size != other.size:
            raise ValueError(f"statistics over {self.size} and {other.size} points cannot be added; pad the shorter.")
        return Statistics(self.A + other.A, self.b + other.b)
