"""Sufficient statistics of data embedded by a dictionary, as they are exchanged in Li et al. 2023.

Li et al. 2023: "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.linalg.matrices import add_outer, padded
from coband.simulator.maths.posteriors.dictionary import Dictionary, transformation


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
