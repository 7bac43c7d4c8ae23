"""ALBA as the public code of Fiez et al. 2019 has it, as a baseline of RAGE; it is not by ALBA's authors.

Step s = 1, 2, ... of a stage that begins with K arms draws n = ceil(l ln(5 K^2/(2 delta_s))) arms at random, one by
one, from the G-optimal design lambda over all arms in the span of those that are left, with

    l = c_0 (2 + (6 + e) d) / (e/2)^2,   e = 4 / 1.1^s,   M = sum_i lambda_i x_i x_i^T,   theta = (n M)^-1 sum x reward

and drops an arm where y^T theta, y the best arm minus this one, is above the smaller of two bounds; w = ||y||_{M^-1}:

    sqrt(2/l) L w + 2 L (||y|| + w sqrt(d)) / (3l) + v,                            v^2 = 2 (w^2/l) (1 + sqrt(3d/l))
    sqrt(2E/l) + (2 (|y^T theta| + 2^-s/2) + L w sqrt(d)) / (3l) + v,
    E = sum_i lambda_i (y^T M^-1 x_i)^2 (|x_i^T theta| + 2^-s/2)^2

Here the design is solved. That code tests a design and then takes one more step of Frank and Wolfe's method, which at
the first step of an instance with an optimal uniform design puts two thirds of all samples on one arm; on Du et al.
2023's instances it so needs about twice as many samples as this.
"""

from __future__ import annotations

import math

import numpy as np

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.maths.exploration.design import check_countable
from coband.simulator.maths.exploration.pairs import Pairs

BASE = 1.1
"""What the error of one step is divided by in the next."""
_OUTSIDE = 1e-9  # of the largest feature


class PublicCodeAlba:
    """The samples and eliminations of a step.

    Args:
        own: the agent's arms.
        norm: L, a bound of the norm of theta.
        c_0: max(4 L^2, 3).
        rng: the agent's private stream.
    """

    def __init__(self, own: Pairs, norm: float, c_0: float, rng: np.random.Generator) -> None:
        self._X, self._own, self._L, self._c_0, self._rng = own.features, own, norm, c_0, rng
        self._d = own.features.shape[1]
        self._weights = np.zeros(own.arms)

    def draw(self, left: list[int], step: int, log: float) -> IntArray:
        """How often each arm is drawn, ``log`` being ln(5 K^2/(2 delta_s))."""
        span = self._in_span(left)
        self._weights = np.zeros(self._own.arms)
        self._weights[span] = self._own.g_optimal(span).weights
        check_countable(samples := self._l(step) * log)
        return self._rng.multinomial(math.ceil(samples), self._weights / self._weights.sum())

    def _l(self, step: int) -> float:
        e = 4.0 / BASE**step
        return float(self._c_0 * (2 + (6 + e) * self._d) / (e / 2) ** 2)

    def _in_span(self, left: list[int]) -> list[int]:
        """The arms within the span of those that are left."""
        _, sizes, axes = np.linalg.svd(self._X[left], full_matrices=False)
        basis = axes[sizes > _OUTSIDE * sizes.max()]
        outside = np.linalg.norm(self._X - self._X @ basis.T @ basis, axis=1)
        return np.flatnonzero(outside <= _OUTSIDE * np.abs(self._X).max()).tolist()

    def kept(self, left: list[int], step: int, counts: IntArray, means: FloatArray) -> list[int]:
        """The arms whose gap to the best one is within its confidence interval."""
        inverse = np.asarray(np.linalg.pinv((self._X.T * self._weights) @ self._X, hermitian=True), dtype=np.float64)
        values = self._X @ inverse @ self._X.T @ (counts * means) / counts.sum()
        best = left[int(np.argmax(values[left]))]
        within = (values[best] - values[arm] <= self._interval(inverse, values, (best, arm), step) for arm in left)
        return [arm for arm, close in zip(left, within, strict=True) if arm == best or close]

    def _interval(self, inverse: FloatArray, values: FloatArray, two: tuple[int, int], step: int) -> float:
        """Half the confidence interval of the gap between two arms."""
        best, arm = two
        L, d, y, slack = self._L, self._d, self._X[best] - self._X[arm], 0.5 * 2.0**-step
        share = 1.0 / self._l(step)
        w = math.sqrt(max(float(y @ inverse @ y), 0.0))
        v = math.sqrt(2 * share * w**2 * (1 + math.sqrt(3 * d * share)))
        first = math.sqrt(2 * share) * L * w + 2 * L * (float(np.linalg.norm(y)) + w * math.sqrt(d)) * share / 3
        E = float(self._weights @ (self._X @ inverse @ y * (np.abs(values) + slack)) ** 2)
        gap = abs(float(values[best] - values[arm]))
        second = math.sqrt(2 * E * share) + (2 * (gap + slack) + L * w * math.sqrt(d)) * share / 3
        return v + min(first, second)
