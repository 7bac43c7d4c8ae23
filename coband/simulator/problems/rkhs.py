"""Rewards drawn from the RKHS (reproducing kernel Hilbert space) of a kernel, with a known norm (our construction)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.maths.kernels.base import BoundKernel
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.kernels.registry import AnyKernel
from coband.simulator.problems.rewards import Reward
from coband.simulator.problems.world import InstanceError, check_columns

if TYPE_CHECKING:
    from coband.simulator.problems.arms import ArmSource

ENTRIES = 1 << 15
"""Values of the kernel that are computed at once, at most, unless one turn has more: so many fit the cache."""


@dataclass(frozen=True)
class RkhsFunction:
    """f = sum_j a_j k(c_j, .) with centres c, (m, d), and weights a, (m,)."""

    kernel: Kernel
    centres: FloatArray
    weights: FloatArray

    def __call__(self, arms: FloatArray) -> FloatArray:
        # The values of a turn do not depend on the turns drawn with it: each has a matrix of its own in the stack.
        at_once = max(1, ENTRIES // (arms.shape[1] * len(self.weights)))
        parts = [arms[start : start + at_once] for start in range(0, len(arms), at_once)]
        return np.concatenate([np.vecdot(self._bound.evaluate(part), self.weights) for part in parts])

    @cached_property
    def _bound(self) -> BoundKernel:
        return self.kernel.against(self.centres)

    @property
    def norm(self) -> float:
        """||f||_k = sqrt(a^T k(c, c) a)."""
        return math.sqrt(max(0.0, float(self.weights @ self.kernel(self.centres, self.centres) @ self.weights)))

    def describe(self) -> JsonObject:
        return {"centres": self.centres.tolist(), "weights": self.weights.tolist()}


class RkhsReward(Reward):
    """f = sum_j a_j k(c_j, .), scaled to a given norm; a_j standard normal, c_j from the arms' domain (ours)."""

    kind: Literal["rkhs"]
    """A function of the kernel's RKHS: sum_j a_j k(c_j, x)."""
    kernel: AnyKernel
    """The kernel k."""
    norm: float = Field(default=1.0, gt=0)
    """||f||_k; f is scaled to it, so that |f(x)| <= norm sqrt(k(x, x))."""
    centres: int = Field(default=30, ge=1)
    """Number of centres c_j, drawn uniformly from the region or the pool that arms come from."""

    def draw(self, rng: np.random.Generator, source: ArmSource) -> RkhsFunction:
        """Draw centres and weights.

        Raises:
            InstanceError: the kernel names columns that arms do not have, or the drawn f is zero, as with arms that
                the kernel maps to 0, and cannot be scaled.
        """
        centres = np.ascontiguousarray(source.domain(rng, self.centres))
        check_columns(self.kernel, centres.shape[1], "problem.reward.kernel")
        function = RkhsFunction(self.kernel, centres, rng.standard_normal(self.centres))
        norm = function.norm
        if not norm > 0.0:
            raise InstanceError(f"norm(={self.norm}) is out of reach: {self.kernel} vanishes on the arms' domain.")
        return RkhsFunction(self.kernel, centres, function.weights * (self.norm / norm))
