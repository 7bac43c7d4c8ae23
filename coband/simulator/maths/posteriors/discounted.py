"""Sums over pulls whose weights fade, and the ridge regression that follows from them (Russac et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.matrices import definite
from coband.simulator.maths.linalg.quadratic_forms import quadratic


@dataclass(frozen=True, slots=True, eq=False)
class DiscountedSums:
    """Sums over pulls (x, y) with weights w; immutable.

    Attributes:
        W: sum w x x^T, (d, d).
        W_tilde: sum w^2 x x^T, (d, d).
        b: sum w y x, (d,).
    """

    W: FloatArray
    W_tilde: FloatArray
    b: FloatArray

    @classmethod
    def none(cls, dimension: int) -> Self:
        """Over no pulls."""
        return cls(np.zeros((dimension, dimension)), np.zeros((dimension, dimension)), np.zeros(dimension))

    def discounted(self, factor: float) -> Self:
        """All weights times a factor."""
        return type(self)(factor * self.W, factor * factor * self.W_tilde, factor * self.b)

    def __add__(self, other: DiscountedSums) -> Self:
        """Over the pulls of both."""
        return type(self)(self.W + other.W, self.W_tilde + other.W_tilde, self.b + other.b)

    def with_pull(self, x: FloatArray, y: float) -> Self:
        """Over one more pull, of weight 1."""
        square = np.outer(x, x)
        return type(self)(self.W + square, self.W_tilde + square, self.b + y * x)

    def predict(self, X: FloatArray, lam: float) -> tuple[FloatArray, FloatArray]:
        """x^T theta and x^T V^(-1) V~ V^(-1) x for the rows of X (n, d), each (n,).

        With theta = V^(-1) b, V = lam I + W and V~ = lam I + W~.
        """
        ridge = lam * np.eye(len(self.b))
        inverse = definite(np.linalg.inv, self.W + ridge)
        return X @ (inverse @ self.b), quadratic(X, inverse @ (self.W_tilde + ridge) @ inverse)

    def log_det(self, lam: float) -> float:
        """log det(I + W/lam)."""
        return float(np.linalg.slogdet(np.eye(len(self.b)) + self.W / lam)[1])
