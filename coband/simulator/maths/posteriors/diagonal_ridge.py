"""Ridge regression on explicit features of which the diagonal of V = lam I + sum g g^T alone is kept, as for the large
networks of Dai et al. 2023 (figures 2(c) and 5); for the rest see `maths.posteriors.ridge`.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.linalg.growing_rows import GrowingRows
from coband.simulator.maths.linalg.quadratic_forms import quadratic
from coband.simulator.maths.posteriors.ridge import Ridge


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
