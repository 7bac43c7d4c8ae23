"""The rational quadratic kernel (Rasmussen and Williams 2006, equation 4.19): a plugin of coband."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coband import Columns, FloatArray, Positive, StationaryKernel


@dataclass(frozen=True)
class RationalQuadratic(StationaryKernel):
    """k(x, y) = (1 + ||x - y||^2 / (2 alpha l^2))^(-alpha), Gaussian kernels of many length scales added up.

    Raises:
        ValueError: a column is negative.
    """

    alpha: Positive = 1.0
    length_scale: Positive = 1.0
    columns: Columns | None = None
    kind: Literal["rational_quadratic"] = "rational_quadratic"

    def __post_init__(self) -> None:
        self.check_columns()

    def inverse_length(self) -> float:
        """1/l."""
        return 1.0 / self.length_scale

    def finish(self, G: FloatArray) -> FloatArray:
        """(1 - G/alpha)^(-alpha), where G = -||x - y||^2 / (2 l^2)."""
        np.minimum(G, 0.0, out=G)
        G /= -self.alpha
        G += 1.0
        return np.power(G, -self.alpha, out=G)
