"""Ridge regression on explicit features: V = lam I + W, W = sum g g^T, b = sum y g, theta = V^(-1) b.

With p features a full matrix keeps V^(-1) by updates of low rank, O(p^2) per observation, and factors afresh every
``cadence`` observations, which bounds its drift; a diagonal one keeps diag(W) alone. V is a precision matrix, V^(-1)
the covariance of theta up to the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import BLOCK, CADENCE, Downdate, Gram, GrowingGram
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.quadratic_forms import is_sparse, quadratic, times


class Ridge(ABC):
    """V = lam I + W for a growing W.

    Args:
        dimension: p.
        lam: ridge parameter lam > 0.

    Raises:
        ValueError: lam is not positive.
    """

    def __init__(self, dimension: int, lam: float) -> None:
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        self.dimension, self.lam = dimension, lam

    @abstractmethod
    def add(self, G: FloatArray) -> None:
        """W += G^T G (its diagonal) for observations with features G (r, p)."""

    @abstractmethod
    def follow(self, W: Gram | FloatArray) -> None:
        """Make W the sum: a :class:`Gram` that has grown out of the one followed so far, or a diagonal (p,)."""

    @abstractmethod
    def solve(self, b: FloatArray) -> FloatArray:
        """V^(-1) b, (p,)."""

    @abstractmethod
    def squares(self, G: FloatArray) -> FloatArray:
        """||g||^2 in the norm of V^(-1) for the rows of G (..., n, p), clipped at 0; shape (..., n)."""

    @property
    @abstractmethod
    def log_det(self) -> float:
        """log det(V / lam) = log det(I + W/lam)."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Diagonal of V, (p,)."""

    @abstractmethod
    def inverse(self) -> FloatArray | Gram:
        """V^(-1) as it is now and stays, (p, p), or its diagonal (p,)."""

    @abstractmethod
    def forked(self) -> Self:
        """A copy that grows by itself."""


class DiagonalRidge(Ridge):
    """Only the diagonal of W is kept."""

    def __init__(self, dimension: int, lam: float) -> None:
        super().__init__(dimension, lam)
        self._V = np.full(dimension, float(lam))

    def add(self, G: FloatArray) -> None:
        self._V += np.einsum("ij,ij->j", G, G)

    def follow(self, W: Gram | FloatArray) -> None:
        assert isinstance(W, np.ndarray)
        self._V = self.lam + W

    def solve(self, b: FloatArray) -> FloatArray:
        solved: FloatArray = b / self._V
        return solved

    def squares(self, G: FloatArray) -> FloatArray:
        return quadratic(G, 1.0 / self._V)

    @property
    def log_det(self) -> float:
        return float(np.log(self._V / self.lam).sum())

    @property
    def diagonal(self) -> FloatArray:
        return self._V

    def inverse(self) -> FloatArray:
        inverse: FloatArray = 1.0 / self._V
        return inverse

    def forked(self) -> Self:
        copy = type(self)(self.dimension, self.lam)
        copy._V = self._V.copy()
        return copy


class FullRidge(Ridge):
    """V^(-1) by updates of low rank: with U = V^(-1) G^T, V^(-1) -= U (I + G U)^(-1) U^T.

    Args:
        dimension: p.
        lam: ridge parameter lam > 0.
        cadence: observations between two factorisations of V.
    """

    def __init__(self, dimension: int, lam: float, cadence: int = CADENCE) -> None:
        super().__init__(dimension, lam)
        self.cadence = cadence
        self._base = np.eye(dimension) / lam
        self._rows = GrowingRows(dimension, 4)
        self._diagonal = np.full(dimension, float(lam))
        self._log_det = 0.0
        self._own = GrowingGram(dimension, cadence)
        self._followed = self._own.matrix
        self._before: tuple[Gram, ...] = ()

    def add(self, G: FloatArray) -> None:
        base = self._followed.base
        self._own.add(G)
        W = self._own.matrix
        if W.base is base and len(G) <= self.dimension:
            self._update(G)
            self._followed = W
        else:
            self.follow(W)

    def follow(self, W: Gram | FloatArray) -> None:
        assert isinstance(W, Gram)
        news = W.rows[len(self._followed.rows) :]
        if W.base is not self._followed.base or len(news) > self.dimension:
            self._factor(sum((part.dense() for part in self._before), start=W.dense()))
        elif len(news):
            self._update(news)
        self._followed = W

    def _update(self, G: FloatArray) -> None:
        if len(G) == 1:
            self._update_once(G[0])
        else:
            self._update_together(G)
        if self._rows.size >= BLOCK:
            self._restart(self.inverse().dense())

    def _update_once(self, g: FloatArray) -> None:
        u = self._times(g)
        pivot = 1.0 + float(g @ u)
        u /= math.sqrt(pivot)
        self._rows.append(u[None])
        self._log_det += math.log(pivot)
        self._diagonal += g * g

    def _update_together(self, G: FloatArray) -> None:
        U = np.array([self._times(g) for g in G]).T if is_sparse(G) else self._base @ G.T - self._rows_times(G.T)
        M = G @ U
        M.flat[:: len(M) + 1] += 1.0
        C, _ = dpotrf(M, lower=1, clean=1)
        S, _ = dtrtrs(C, U.T, lower=1)
        self._rows.append(S)
        self._log_det += 2.0 * float(np.log(np.diagonal(C)).sum())
        self._diagonal += np.einsum("ij,ij->j", G, G)

    def _times(self, g: FloatArray) -> FloatArray:
        """V^(-1) g, (p,)."""
        return times(self._base, g) - self._rows_times(g)

    def _rows_times(self, g: FloatArray) -> FloatArray:
        S = self._rows.leading(self._rows.size)
        product: FloatArray = S.T @ (S @ g)
        return product

    def _restart(self, inverse: FloatArray) -> None:
        self._base, self._rows = inverse, GrowingRows(self.dimension, 4)

    def _factor(self, W: FloatArray) -> None:
        """V^(-1) and log det from scratch."""
        W.flat[:: len(W) + 1] += self.lam
        self._diagonal = np.diagonal(W).copy()
        C, info = dpotrf(W, lower=1)
        if info:
            raise np.linalg.LinAlgError(f"lam I + W is not positive definite (pivot {info}), lam(={self.lam}).")
        self._log_det = 2.0 * float(np.log(np.diagonal(C)).sum()) - len(W) * float(np.log(self.lam))
        P, _ = dpotri(C, lower=1)
        lower = np.tril(P)
        self._restart(lower + np.tril(lower, -1).T)

    def solve(self, b: FloatArray) -> FloatArray:
        return self._times(b)

    def squares(self, G: FloatArray) -> FloatArray:
        return quadratic(G, self.inverse())

    @property
    def log_det(self) -> float:
        return self._log_det

    @property
    def diagonal(self) -> FloatArray:
        return self._diagonal

    def inverse(self) -> Gram:
        return Downdate(self._rows.leading(self._rows.size), self._base)

    def forked(self) -> Self:
        copy = type(self)(self.dimension, self.lam, self.cadence)
        copy._before = (*self._before, self._followed)
        copy._base, copy._rows = self._base, self._rows.forked(self._rows.size)
        copy._diagonal = self._diagonal.copy()
        copy._log_det = self._log_det
        return copy


def ridge(dimension: int, lam: float, diagonal: bool) -> FullRidge | DiagonalRidge:
    """V = lam I, full or diagonal."""
    return DiagonalRidge(dimension, lam) if diagonal else FullRidge(dimension, lam)
