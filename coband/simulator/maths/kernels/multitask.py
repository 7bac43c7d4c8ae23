"""Kernels of augmented points: the task of an agent and an arm (Dubey and Pentland 2020, "Kernel Methods for
Cooperative Multi-Agent Contextual Bandits", eq. 6 and appendix D).

    K((z, x), (z', x')) = K_z(z, z') * K_x(x, x')      or with + in place of *

An augmented point is a row [task | x]: the task is z, or the agent's number where K_z is a table of agents, or nothing
where K_z = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import BoundComposite, BoundKernel, KernelSpec
from coband.simulator.maths.kernels.library import Gaussian, Kernel

Composition = Literal["product", "sum"]


@dataclass(frozen=True, eq=False)
class Table:
    """k(p, q) = table[p_c, q_c]: a kernel of numbered things, their number in column c of the points.

    Args:
        table: positive semidefinite (s, s).
        column: c.
    """

    table: FloatArray
    column: int

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return self.against(Y).evaluate(X)

    def diag(self, X: FloatArray) -> FloatArray:
        numbers = X[:, self.column].astype(np.intp)
        return self.table[numbers, numbers]

    def against(self, Y: FloatArray) -> BoundKernel:
        return BoundTable(self, Y[:, self.column].astype(np.intp))


@dataclass(frozen=True, eq=False)
class BoundTable:
    """A table kernel with its second argument fixed to points of the given ``numbers``."""

    kernel: Table
    numbers: NDArray[np.intp]

    @property
    def size(self) -> int:
        return len(self.numbers)

    def evaluate(self, X: FloatArray) -> FloatArray:
        rows = self.kernel.table[X[..., self.kernel.column].astype(np.intp)]
        return rows[..., self.numbers]

    def appended(self, Y: FloatArray) -> BoundTable:
        return BoundTable(self.kernel, np.concatenate([self.numbers, Y[:, self.kernel.column].astype(np.intp)]))

    def leading(self, size: int) -> BoundTable:
        return BoundTable(self.kernel, self.numbers[:size])


@dataclass(frozen=True, eq=False)
class Combined:
    """The product or the sum of kernels of any kind, entry by entry."""

    combine: np.ufunc
    parts: tuple[Kernel, ...]

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        return reduce(self.combine, [part(X, Y) for part in self.parts])

    def diag(self, X: FloatArray) -> FloatArray:
        return reduce(self.combine, [part.diag(X) for part in self.parts])

    def against(self, Y: FloatArray) -> BoundKernel:
        return BoundComposite(self.combine, tuple(part.against(Y) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Augmented:
    """A kernel of augmented points, and how they are made.

    Attributes:
        kernel: K.
        scale: every point is multiplied by it, column by column; None for 1.
    """

    kernel: Kernel
    scale: FloatArray | None

    def points(self, tasks: FloatArray, X: FloatArray) -> FloatArray:
        """Rows [task | x] of tasks (n, s) and arms X (n, d)."""
        P = np.concatenate([tasks, X], axis=1)
        return P if self.scale is None else P * self.scale


def augmented(
    kernel: KernelSpec,
    network: KernelSpec | FloatArray | None,
    tasks: int,
    dimension: int,
    composition: Composition = "product",
) -> Augmented:
    """The kernel K of augmented points.

    Args:
        kernel: K_x.
        network: K_z as a function of z, or as a table of agents, or None for K_z = 1.
        tasks: number of columns that the task takes.
        dimension: d.
        composition: how K_z and K_x are joined.
    """
    of_arms = kernel.on_columns(tasks, dimension)
    scale, combine = None, np.multiply if composition == "product" else np.add
    joined: Kernel
    if network is None:
        joined = of_arms
    elif isinstance(network, np.ndarray):
        joined = Combined(combine, (Table(network, 0), of_arms))
    elif _merges(kernel, network, composition):
        joined = Gaussian(gamma=1.0)
        scale = np.repeat([_root(network), _root(kernel)], [tasks, dimension])
    else:
        joined = Combined(combine, (network.on_columns(0, tasks), of_arms))
    return Augmented(joined, scale)


def _merges(kernel: KernelSpec, network: KernelSpec, composition: Composition) -> bool:
    """Whether both are Gaussian, so that their product is one Gaussian of scaled coordinates (below Corollary 1)."""
    return composition == "product" and all(
        isinstance(part, Gaussian) and part.columns is None for part in (kernel, network)
    )


def _root(kernel: KernelSpec) -> float:
    """sqrt(gamma)."""
    assert isinstance(kernel, Gaussian)
    return (
        math.sqrt(kernel.gamma) if kernel.gamma is not None else 1.0 / (math.sqrt(2.0) * (kernel.length_scale or 1.0))
    )
