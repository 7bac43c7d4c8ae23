"""Test functions of Bayesian optimisation, normalised and maximised as Pavlovic et al. 2024, section 5, uses them.

Source: Picheny, Wagner and Ginsbourger 2013, "A benchmark of kriging-based infill criteria for noisy optimization",
appendix; their functions are minimised and scaled to about mean 0 and deviation 1 over the domain. Here they carry the
opposite sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import JsonObject
from coband.simulator.problems.arms import ArmSource
from coband.simulator.problems.rewards import Reward

BRANIN_MAXIMUM = 1.0473938910927865
"""Largest value of `branin` on [0, 1]^2, at three points; by search, see tests/problems/test_benchmarks.py."""

HARTMANN_MAXIMUM = 3.1344941412223988
"""Largest value of `hartmann` on [0, 1]^4; by search, see tests/problems/test_benchmarks.py."""

_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_A = np.array([[10.0, 3.0, 17.0, 3.5], [0.05, 10.0, 17.0, 0.1], [3.0, 3.5, 1.7, 10.0], [17.0, 8.0, 0.05, 10.0]])
_P = 1e-4 * np.array(
    [[1312, 1696, 5569, 124], [2329, 4135, 8307, 3736], [2348, 1451, 3522, 2883], [4047, 8828, 8732, 5743]]
)


def branin(x: FloatArray) -> FloatArray:
    """Branin-Hoo at points (..., 2) of the unit square, shape (...).

    With u = 15 x1 - 5 and v = 15 x2:
    -[(v - 5.1 u^2/(4 pi^2) + 5 u/pi - 6)^2 + (10 - 10/(8 pi)) cos(u) - 44.81] / 51.95.
    """
    u, v = 15.0 * x[..., 0] - 5.0, 15.0 * x[..., 1]
    bowl = v - 5.1 / (4.0 * np.pi**2) * u**2 + 5.0 / np.pi * u - 6.0
    return (44.81 - bowl**2 - (10.0 - 10.0 / (8.0 * np.pi)) * np.cos(u)) / 51.95


def hartmann(x: FloatArray) -> FloatArray:
    """Hartmann-4D at points (..., 4) of the unit cube, shape (...).

    (sum_i alpha_i exp(-sum_j A_ij (x_j - P_ij)^2) - 1.1) / 0.839, with the first four columns of the usual A and P.
    """
    exponents = -(_A * (x[..., None, :] - _P) ** 2).sum(axis=-1)
    value: FloatArray = ((_ALPHA * np.exp(exponents)).sum(axis=-1) - 1.1) / 0.839
    return value


@dataclass(frozen=True)
class BenchmarkFunction:
    """A test function together with its largest value over the region."""

    function: Callable[[FloatArray], FloatArray]
    maximum: float

    def __call__(self, arms: FloatArray) -> FloatArray:
        return self.function(arms)

    def describe(self) -> JsonObject:
        """The largest value over the region; the largest value over a finite set of points may be a little lower."""
        return {"maximum_over_region": self.maximum}


class BenchmarkReward(Reward):
    """A reward that is a fixed test function; it draws no random numbers."""

    benchmark: ClassVar[BenchmarkFunction]

    def draw(self, rng: np.random.Generator, source: ArmSource) -> BenchmarkFunction:
        return self.benchmark


class BraninReward(BenchmarkReward):
    """Branin on [0, 1]^2."""

    unit_cube = 2
    benchmark = BenchmarkFunction(branin, BRANIN_MAXIMUM)
    kind: Literal["branin"]
    """Branin-Hoo on [0, 1]^2, normalised and maximised (Picheny et al. 2013); largest value 1.0474."""


class HartmannReward(BenchmarkReward):
    """Hartmann-4D on [0, 1]^4."""

    unit_cube = 4
    benchmark = BenchmarkFunction(hartmann, HARTMANN_MAXIMUM)
    kind: Literal["hartmann"]
    """Hartmann-4D on [0, 1]^4, normalised and maximised (Picheny et al. 2013); largest value 3.1345."""
