"""Ridge regression on explicit features: V = lam I + W, W = sum g g^T, b = sum y g, theta = V^(-1) b, and

    mu(g) = g^T theta,   sigma(g)^2 = g^T V^(-1) g,

which for features with k(x, y) = g(x)^T g(y) is the exact posterior of Li et al. 2023, eq. 1, at a cost that does not
grow with the data. V is a precision matrix, V^(-1) the covariance of theta up to the noise.

`DiagonalRidge` keeps only the diagonal of V, as for the large networks of Dai et al. 2023 (figures 2(c) and 5).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import (
    BLOCK,
    CADENCE,
    Base,
    Downdate,
    Gram,
    GramOf,
    GrowingGram,
    ScaledIdentity,
    entries,
)
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.matrices import dpotrf, dpotri, dtrtrs, lam_is_lost, padded
from coband.simulator.maths.linalg.quadratic_forms import is_sparse, quadratic, times
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior

SMALL = 1e-6
"""Of lam: updates leave errors of about 1e-16/lam in V^(-1), which stay there until V is factored afresh."""
STEEP = 1e9
"""g^T V^(-1) g of an observation from which on V is factored afresh: what is left of V^(-1) loses as many digits."""
FEW = 3
"""Observations up to which one product with a vector for each takes less time than a product of matrices."""


class Ridge(Posterior):
    """What ridge regression with a full and with a diagonal V have in common.

    ``update`` and ``predict`` take features (n, p) as points, ``predict`` also stacks of them, (..., n, p).

    Args:
        dimension: p.
        lam: ridge parameter lam > 0.

    Attributes:
        b: sum y g, (p,).

    Raises:
        ValueError: lam is not positive.
    """

    __slots__ = ("_theta", "b", "lam")

    def __init__(self, dimension: int, lam: float) -> None:
        if not lam > 0:
            raise ValueError(f"lam(={lam}) must be > 0.")
        self.lam = lam
        self.b = np.zeros(dimension)
        self._theta: FloatArray | None = np.zeros(dimension)

    @property
    def dimension(self) -> int:
        return len(self.b)

    @property
    def theta(self) -> FloatArray:
        """V^(-1) b, (p,)."""
        if self._theta is None:
            self._theta = self.solve(self.b)
        return self._theta

    def update(self, observations: Observations) -> None:
        """W += G^T G and b += G^T y for observations with features G (n, p)."""
        G = observations.features
        self.add_squares(G)
        self.b = self.b + G.T @ observations.rewards
        self._theta = None

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        """G theta and ||g||^2 in the norm of V^(-1), for the rows of G (..., n, p), each (..., n)."""
        G = features_of(arms)
        return G @ self.theta, self.variance(G)

    @abstractmethod
    def add_squares(self, G: FloatArray) -> None:
        """W += G^T G alone, for observations with features G (r, p) whose rewards nobody asks about."""

    @abstractmethod
    def follow(self, W: Gram | FloatArray, b: FloatArray) -> None:
        """Make W and b the sums.

        Args:
            W: a :class:`Gram` that has grown out of the one followed so far, or a diagonal (p,); see ``squares_of``.
            b: (p,).
        """

    @abstractmethod
    def squares_of(self, G: FloatArray) -> Gram | FloatArray:
        """G^T G in the form that ``follow`` takes."""

    @abstractmethod
    def solve(self, b: FloatArray) -> FloatArray:
        """V^(-1) b, (p,)."""

    @abstractmethod
    def variance(self, G: FloatArray) -> FloatArray:
        """||g||^2 in the norm of V^(-1) for the rows of G (..., n, p), clipped at 0; shape (..., n)."""

    @property
    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Diagonal of V, (p,)."""

    @abstractmethod
    def inverse(self) -> FloatArray | Gram:
        """V^(-1) as it is now and stays, (p, p), or its diagonal (p,)."""

    def forked(self, rows: GrowingRows | None = None) -> Self:
        """A copy that grows by itself; ``rows``: where somebody keeps the observations that it is told of."""
        return self.copied()

    def copied(self) -> Self:
        """A copy that can ``follow`` sums which have grown out of the same ones; this one stays as it is."""
        other = object.__new__(type(self))
        for name in (*Ridge.__slots__, *self.__slots__):
            setattr(other, name, getattr(self, name))
        return other


class RidgeRegression(Ridge):
    """The full V^(-1) by updates of low rank: with U = V^(-1) G^T, V^(-1) -= U (I + G U)^(-1) U^T.

    That is O(p^2) per observation; V is factored afresh every ``cadence`` observations, which bounds the drift, every
    time where lam is small, and where a direction that is new has a length that lam is small beside.

    Args:
        cadence: observations between two factorisations of V.
        block: rows of updates that are kept apart before they are added to V^(-1), p^2 numbers; 1 where many
            observations come at a time.
    """

    __slots__ = ("_base", "_before", "_diagonal", "_followed", "_held", "_log_det", "_own", "_rows", "block", "cadence")

    def __init__(self, dimension: int, lam: float, cadence: int = CADENCE, block: int = BLOCK) -> None:
        super().__init__(dimension, lam)
        self.cadence, self.block = cadence if lam >= SMALL else 1, block
        self._base: Base = ScaledIdentity(dimension, 1.0 / lam)
        self._held = False  # whether somebody else holds the base, which must not change then
        self._rows = GrowingRows(dimension, 4)
        self._diagonal: FloatArray | None = np.full(dimension, float(lam))  # None: it follows from the sums
        self._log_det = 0.0
        self._own = GrowingGram(dimension, self.cadence)
        self._followed = self._own.matrix
        self._before: tuple[Gram, ...] = ()

    def add_squares(self, G: FloatArray) -> None:
        if not len(G):
            return
        base = self._followed.base
        self._own.add(G)
        W = self._own.matrix
        if W.base is base and len(G) <= self.dimension:
            self._update(G, W)
            self._followed, self._theta = W, None
        else:
            self._follow(W)

    def follow(self, W: Gram | FloatArray, b: FloatArray) -> None:
        assert isinstance(W, Gram)
        self.b = b
        self._follow(W)

    def squares_of(self, G: FloatArray) -> Gram:
        return Gram(G)

    def grow(self, dimension: int) -> None:
        """Add features, up to so many; observations so far have them at zero. Not for one that has followed a W."""
        more = dimension - self.dimension
        if more <= 0:
            return
        self._add_up()
        self._restart(padded(entries(self._base), dimension, 1.0 / self.lam), dimension)
        self._diagonal = None if self._diagonal is None else np.append(self._diagonal, np.full(more, float(self.lam)))
        self.b, self._theta = np.concatenate([self.b, np.zeros(more)]), None
        self._before = tuple(part.padded(dimension) for part in self._before)
        self._own = self._own.padded(dimension)
        self._followed = self._own.matrix

    def _follow(self, W: Gram) -> None:
        news = W.rows[len(self._followed.rows) :]
        if W.base is not self._followed.base or len(news) > self.dimension:
            self._factor(self._sum(W))
        elif len(news):
            self._diagonal = self.diagonal  # which changes by few numbers now, and before the sums do
            self._update(news, W)
        self._followed, self._theta = W, None

    def _sum(self, W: Gram) -> FloatArray:
        """lam I + all sums of squares, the last of them W, (p, p)."""
        V = sum((part.dense() for part in self._before), start=W.dense())
        V.flat[:: len(V) + 1] += self.lam
        return V

    def _update(self, G: FloatArray, W: Gram) -> None:
        """Take in rows G, with which the last of the sums becomes W."""
        small = self._update_once(G[0]) if len(G) == 1 else self._update_together(G)
        if not small:
            self._factor(self._sum(W))
        elif self._rows.size >= self.block:
            self._add_up()

    def _update_once(self, g: FloatArray) -> bool:
        u = self._times(g)
        pivot = 1.0 + float(g @ u)
        if not pivot > 0.0:
            raise lam_is_lost(self.lam, 1)
        if pivot > STEEP:
            return False
        u /= math.sqrt(pivot)
        self._rows.append(u[None])
        self._log_det += math.log(pivot)
        if self._diagonal is not None:
            self._diagonal = self._diagonal + g * g
        return True

    def _update_together(self, G: FloatArray) -> bool:
        one_by_one = len(G) <= FEW or is_sparse(G)
        U = np.array([self._times(g) for g in G]).T if one_by_one else self._base_times(G.T) - self._rows_times(G.T)
        M = G @ U
        M.flat[:: len(M) + 1] += 1.0
        C, info = dpotrf(M, lower=1, clean=1)
        if info:
            raise lam_is_lost(self.lam, info)
        if np.diagonal(C).max() ** 2 > STEEP:
            return False
        S, _ = dtrtrs(C, U.T, lower=1)
        self._rows.append(S)
        self._log_det += 2.0 * float(np.log(np.diagonal(C)).sum())
        if self._diagonal is not None:
            self._diagonal = self._diagonal + np.einsum("ij,ij->j", G, G)
        return True

    def _times(self, g: FloatArray) -> FloatArray:
        """V^(-1) g, (p,)."""
        return times(self._base, g) - self._rows_times(g) if self._rows.size else times(self._base, g)

    def _base_times(self, columns: FloatArray) -> FloatArray:
        base = self._base
        return np.multiply(columns, base.scale, order="C") if isinstance(base, ScaledIdentity) else base @ columns

    def _rows_times(self, g: FloatArray) -> FloatArray:
        S = self._rows.all
        return S.T @ (S @ g)

    def _add_up(self) -> None:
        """Take the rows of updates into the base, in place unless somebody else holds it."""
        S, base = self._rows.all, entries(self._base)
        held = self._held and base is self._base
        self._restart(np.subtract(base, S.T @ S, out=None if held else base), self.dimension)

    def _restart(self, inverse: FloatArray, dimension: int) -> None:
        self._base, self._rows, self._held = inverse, GrowingRows(dimension, 4), False

    def _factor(self, V: FloatArray) -> None:
        """V^(-1) and log det from scratch."""
        self._diagonal = None
        C, info = dpotrf(V, lower=1)
        if info:
            raise lam_is_lost(self.lam, info)
        self._log_det = 2.0 * float(np.log(np.diagonal(C)).sum()) - len(V) * float(np.log(self.lam))
        P, _ = dpotri(C, lower=1)  # zero above the diagonal, as C is
        inverse = P + P.T
        inverse.flat[:: len(P) + 1] = np.diagonal(P)
        self._restart(inverse, self.dimension)

    def solve(self, b: FloatArray) -> FloatArray:
        return self._times(b) if len(b) else b

    def variance(self, G: FloatArray) -> FloatArray:
        return quadratic(G, self._inverse())

    @property
    def log_det(self) -> float:
        return self._log_det

    @property
    def diagonal(self) -> FloatArray:
        if self._diagonal is None:
            self._diagonal = np.diagonal(self._sum(self._followed)).copy()
        return self._diagonal

    def inverse(self) -> Gram:
        self._held = True
        return self._inverse()

    def _inverse(self) -> Gram:
        return Downdate(self._rows.all, self._base)

    def copied(self) -> Self:
        other = super().copied()
        other._rows = self._rows.forked(self._rows.size)
        other._held = self._held = True
        return other

    def forked(self, rows: GrowingRows | None = None) -> Self:
        fork = super().forked()
        fork._before = (*self._before, self._followed) if self._followed.grown else self._before
        fork._own = GrowingGram(self.dimension, self.cadence) if rows is None else GramOf(rows, self.cadence)
        fork._followed, fork._diagonal = fork._own.matrix, None
        return fork


class DiagonalRidge(Ridge):
    """Only the diagonal of W is kept."""

    __slots__ = ("_V",)

    def __init__(self, dimension: int, lam: float) -> None:
        super().__init__(dimension, lam)
        self._V = np.full(dimension, float(lam))

    def add_squares(self, G: FloatArray) -> None:
        self._V += np.einsum("ij,ij->j", G, G)
        self._theta = None

    def follow(self, W: Gram | FloatArray, b: FloatArray) -> None:
        assert isinstance(W, np.ndarray)
        self._V, self.b, self._theta = self.lam + W, b, None

    def squares_of(self, G: FloatArray) -> FloatArray:
        return Gram(G).diagonal

    def solve(self, b: FloatArray) -> FloatArray:
        solved: FloatArray = b / self._V
        return solved

    def variance(self, G: FloatArray) -> FloatArray:
        return quadratic(G, 1.0 / self._V)

    @property
    def log_det(self) -> float:
        return float(np.log(self._V / self.lam).sum())

    @property
    def diagonal(self) -> FloatArray:
        return self._V

    def inverse(self) -> FloatArray:
        return 1.0 / self._V

    def forked(self, rows: GrowingRows | None = None) -> Self:
        fork = super().forked()
        fork._V = self._V.copy()
        return fork
