"""Kernels: positive semidefinite functions k(x, y) of two points.

Each is a frozen dataclass whose fields are its parameters, so that one object is both the function and its
configuration: a validating reader finds ranges in the annotations and cross-field rules in ``__post_init__``.
``columns`` restricts a base kernel to some coordinates, so that a product can act on task and arm features apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

import numpy as np
from annotated_types import Ge

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import (
    BaseKernel,
    BoundKernel,
    Columns,
    CompositeKernel,
    NonNegative,
    Positive,
    StationaryKernel,
    check_nonnegative,
    check_positive,
    cut_at_zero,
    squared_norms,
)
from coband.simulator.maths.kernels.registry import AnyKernel
from coband.simulator.scenario_errors import BrokenOff

LARGEST = 1e150
"""From here on squares of a kernel's values overflow."""
_MATERN_ORDERS = (0.5, 1.5, 2.5)
_FAR = -5e2
"""Lifted norms below this (-norm^2/2 in length scales) make a Gaussian's exponent wrong by more than about 1e-13."""


class Kernel(Protocol):
    """What the posteriors need of a kernel."""

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """The matrix k(X, Y), shape (n, m), for X (n, d) and Y (m, d)."""

    def diag(self, X: FloatArray) -> FloatArray:
        """The exact k(x, x) of every row of X (n, d), shape (n,)."""

    def against(self, Y: FloatArray) -> BoundKernel:
        """This kernel with its second argument fixed to Y (m, d)."""


@dataclass(frozen=True)
class Gaussian(StationaryKernel):
    """k(x, y) = exp(-gamma ||x - y||^2) with gamma = 1/(2 l^2): give exactly one of ``gamma`` and ``length_scale`` (l).

    Raises:
        ValueError: both or none of the two are given, or the one given is not positive.
    """

    gamma: Positive | None = None
    """Factor of the squared distance, 1/(2 l^2); give either this or ``length_scale``."""
    length_scale: Positive | None = None
    """Length scale l; give either this or ``gamma``."""
    columns: Columns | None = None
    kind: Literal["gaussian"] = field(default="gaussian", kw_only=True)

    def __post_init__(self) -> None:
        if (self.gamma is None) == (self.length_scale is None):
            raise ValueError(
                f"exactly one of gamma(={self.gamma}) and length_scale(={self.length_scale}) must be given; "
                "gamma = 1 / (2 length_scale^2)."
            )
        check_positive(gamma=self.gamma, length_scale=self.length_scale)
        self.check_columns()

    def inverse_length(self) -> float:
        return 1.0 / self.length_scale if self.length_scale is not None else math.sqrt(2.0 * (self.gamma or 0.0))

    def cancels(self, right: FloatArray) -> bool:
        """Whether points lie so many length scales from the origin that the exponent loses digits."""
        return bool((right[:, -1] < _FAR).any())

    def finish(self, G: FloatArray) -> FloatArray:
        """exp(G), where G = -gamma ||x - y||^2."""
        cut_at_zero(G)
        return np.exp(G, out=G)


@dataclass(frozen=True)
class Matern(StationaryKernel):
    """Matern kernel of order nu in {0.5, 1.5, 2.5}, s = sqrt(2 nu) ||x - y|| / length_scale.

    k = exp(-s), (1 + s) exp(-s) and (1 + s + s^2/3) exp(-s) respectively (Rasmussen and Williams 2006, eq. 4.17).

    Raises:
        ValueError: nu is another number, or the length scale is not positive.
    """

    nu: Positive = 2.5
    """Order: 0.5, 1.5 or 2.5; the larger, the smoother."""
    length_scale: Positive = 1.0
    """Distances are divided by it."""
    columns: Columns | None = None
    kind: Literal["matern"] = field(default="matern", kw_only=True)

    def __post_init__(self) -> None:
        if self.nu not in _MATERN_ORDERS:
            raise ValueError(f"nu(={self.nu}) must be one of {', '.join(map(str, _MATERN_ORDERS))}.")
        check_positive(length_scale=self.length_scale)
        self.check_columns()

    def inverse_length(self) -> float:
        return math.sqrt(2.0 * self.nu) / self.length_scale

    def cancels(self, right: FloatArray) -> bool:
        """Always: the square root turns a rounding error of 1e-16 in s^2 into 1e-8 in s, wherever the points lie."""
        return True

    def finish(self, G: FloatArray) -> FloatArray:
        """The Matern function of s = sqrt(-2 G)."""
        cut_at_zero(G)
        G *= -2.0
        s = np.sqrt(G, out=G)
        decay = np.exp(-s)
        if self.nu == 0.5:
            return decay
        if self.nu == 1.5:
            s += 1.0
        else:
            s += s * s / 3.0 + 1.0
        s *= decay
        return s


@dataclass(frozen=True)
class Linear(BaseKernel):
    """k(x, y) = variance x.y + bias, with variance > 0 and bias >= 0."""

    variance: Positive = 1.0
    """Factor of the inner product."""
    bias: NonNegative = 0.0
    """Constant that is added."""
    columns: Columns | None = None
    kind: Literal["linear"] = field(default="linear", kw_only=True)

    def __post_init__(self) -> None:
        check_positive(variance=self.variance)
        check_nonnegative(bias=self.bias)
        self.check_columns()

    def diag(self, X: FloatArray) -> FloatArray:
        return self.finish(self.variance * squared_norms(X, self.columns))

    def left(self, X: FloatArray) -> FloatArray:
        return X * self.variance

    def finish(self, G: FloatArray) -> FloatArray:
        G += self.bias
        return G


@dataclass(frozen=True)
class Polynomial(BaseKernel):
    """k(x, y) = (scale x.y + bias)^degree, with degree >= 1, scale > 0 and bias >= 0."""

    degree: Annotated[int, Ge(1)] = 2
    """Power."""
    scale: Positive = 1.0
    """Factor of the inner product."""
    bias: NonNegative = 1.0
    """Constant that is added before the power is taken."""
    columns: Columns | None = None
    kind: Literal["polynomial"] = field(default="polynomial", kw_only=True)

    def __post_init__(self) -> None:
        if self.degree < 1 or int(self.degree) != self.degree:
            raise ValueError(f"degree(={self.degree}) must be an integer >= 1.")
        check_positive(scale=self.scale)
        check_nonnegative(bias=self.bias)
        self.check_columns()

    def diag(self, X: FloatArray) -> FloatArray:
        return self.finish(self.scale * squared_norms(X, self.columns))

    def left(self, X: FloatArray) -> FloatArray:
        return X * self.scale

    def finish(self, G: FloatArray) -> FloatArray:
        G += self.bias
        with np.errstate(over="ignore"):
            np.power(G, self.degree, out=G)
        if not np.abs(G).max(initial=0.0) < LARGEST:
            what = f"kernel polynomial: with degree {self.degree} its values are too large to compute with"
            raise BrokenOff(f"{what}, {LARGEST:g} or more; give a smaller degree, scale or bias, or shorter features.")
        return G


@dataclass(frozen=True)
class Product(CompositeKernel):
    """k(x, y) = product of the factors' k(x, y).

    Raises:
        ValueError: no factor is given.
    """

    _combine, _field = np.multiply, "factors"
    factors: tuple[AnyKernel, ...]
    """The kernels that are multiplied, at least one."""
    kind: Literal["product"] = field(default="product", kw_only=True)


@dataclass(frozen=True)
class Sum(CompositeKernel):
    """k(x, y) = sum of the terms' k(x, y).

    Raises:
        ValueError: no term is given.
    """

    _combine, _field = np.add, "terms"
    terms: tuple[AnyKernel, ...]
    """The kernels that are added, at least one."""
    kind: Literal["sum"] = field(default="sum", kw_only=True)
