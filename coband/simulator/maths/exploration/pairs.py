"""What pure exploration with a kernel computes: designs over task-arm pairs, samples per pair, estimated rewards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from coband.simulator.arrays import BoolArray, FloatArray, IntArray
from coband.simulator.maths.exploration import design as designs
from coband.simulator.maths.exploration.design import Design
from coband.simulator.maths.exploration.gaussian_width import width_design
from coband.simulator.maths.linalg.matrices import solve_definite

EQUAL = 1e-4
"""Relative difference up to which two values of a design count as equal: that of values with and without a small xi."""

REMEMBERED, MASKS = 1000, 16
"""Designs, and sets of arms whose differences are in memory."""


def pairs_of(gram: FloatArray, agents: int) -> Pairs:
    """The pairs with a kernel matrix (V n, V n) of V agents; the same object for the same matrix."""
    return _pairs(gram.tobytes(), len(gram), agents)


@lru_cache(maxsize=64)
def _pairs(gram: bytes, size: int, agents: int) -> Pairs:
    return Pairs(np.frombuffer(gram).reshape(size, size), agents)


class Pairs:
    """All task-arm pairs (agent v, arm i), numbered v n + i, and their kernel matrix.

    Designs are remembered: agents with equal arms, and replications of an instance, ask for the same ones again.

    Args:
        gram: k(x~, x~'), (V n, V n).
        agents: V.
    """

    def __init__(self, gram: FloatArray, agents: int) -> None:
        self.gram, self.agents = gram, agents
        self.arms = len(gram) // agents
        self.features = designs.root(gram)
        self._designs: dict[Hashable, Design] = {}
        self._differences = lru_cache(maxsize=MASKS)(self._differences_of)
        self._planned = lru_cache(maxsize=REMEMBERED)(self._planned_of)

    def of(self, agent: int) -> Pairs:
        own = slice(agent * self.arms, (agent + 1) * self.arms)
        return pairs_of(self.gram[own, own], 1)

    def _differences_of(self, alive: bytes) -> FloatArray:
        """Differences between alive arms of the same agent; ``alive``: a mask (V, n)."""
        rows = np.frombuffer(alive, dtype=np.bool_).reshape(self.agents, self.arms)
        groups = [[agent * self.arms + int(arm) for arm in np.flatnonzero(row)] for agent, row in enumerate(rows)]
        found = designs.differences(self.features, groups)
        found.flags.writeable = False
        return found

    def _planned_of(self, weights: bytes, alive: bytes, xi: float) -> float:
        """The largest ||y||^2 of differences between alive arms at the weights of a design."""
        found = designs.norms(self.features, np.frombuffer(weights), self._differences(alive), xi)
        return float(found.max(initial=0.0))

    def design(self, alive: BoolArray, xi: float, start: FloatArray | None = None) -> Design:
        """Du et al. 2023, Algorithm 1, line 4: lambda* and rho* over all pairs for the differences that are alive."""
        mask = alive.tobytes()
        key = ("alive", mask, xi, None if start is None else start.tobytes())
        return self._remembered(key, lambda: designs.min_max_design(self.features, self._differences(mask), xi, start))

    def g_optimal(self, arms: Sequence[int]) -> Design:
        """min over the weights of ``arms`` of max over them of ||phi||^2_{A^-1}, in the span of their features."""
        chosen = list(arms)
        features = designs.root(self.gram[np.ix_(chosen, chosen)])
        return self._remembered(("g", *chosen), lambda: designs.min_max_design(features, features, 0.0))

    def omega(self, arms: Sequence[int], xi: float) -> float:
        """Principle dimension omega(xi, S) of pairs S: min over lambda of max over S x S of ||phi - phi'||^2."""
        among = list(arms)
        return self.towards(("omega", *among), lambda: designs.differences(self.features, [among]), xi).value

    def gaussian_width(self, arms: Sequence[int]) -> Design:
        """gamma(S) of arms S, the square of their Gaussian width, and the design over all arms that makes it small."""
        among = list(arms)
        return self._remembered(("gamma", *among), lambda: width_design(self.features, among))

    def towards(self, name: Hashable, directions: Callable[[], FloatArray], xi: float) -> Design:
        """The min-max design for directions (p, r) of one's own, remembered under a name."""
        return self._remembered((name, xi), lambda: designs.min_max_design(self.features, directions(), xi))

    def _remembered(self, key: Hashable, solve: Callable[[], Design]) -> Design:
        if key not in self._designs:
            if len(self._designs) >= REMEMBERED:
                self._designs.clear()
            self._designs[key] = solve()
            self._designs[key].weights.flags.writeable = False
        return self._designs[key]

    def allot(self, design: Design, total: int, alive: BoolArray, xi: float, epsilon: float) -> IntArray:
        """ROUND: whole numbers (V, n) of ``total`` samples, for which equation 6 is verified.

        Raises:
            DesignError: equation 6 does not hold, for the alive differences or for all.
        """
        counts = designs.apportion(design.weights, total)
        weights = design.weights.tobytes()
        for mask in (alive.tobytes(), np.ones_like(alive).tobytes()):
            planned = self._planned(weights, mask, xi)
            designs.check_rounding(self.features, self._differences(mask), xi, planned, counts, epsilon)
        return counts.reshape(self.agents, self.arms)

    def estimate(self, counts: IntArray, means: FloatArray, xi: float) -> FloatArray:
        """F(x~) of all pairs, (V, n), from counts and means (V, n): Du et al. 2023, equation 3.

        k_r(x~)^T (K + N xi I)^-1 y with K_ij = sqrt(N_i N_j) k(x~_i, x~_j), k_r(x~)_i = sqrt(N_i) k(x~, x~_i) and
        y_i = sqrt(N_i) mean_i; pairs that were not pulled have no part in it.
        """
        pulled = np.flatnonzero(counts.ravel())
        roots = np.sqrt(counts.ravel()[pulled])
        k = self.gram[:, pulled] * roots
        K = k[pulled] * roots[:, None]
        K[np.diag_indices_from(K)] += counts.sum() * xi
        found: FloatArray = k @ solve_definite(K, roots * means.ravel()[pulled])
        return found.reshape(counts.shape)

    def least_squares(self, counts: IntArray, means: FloatArray) -> FloatArray:
        """Ordinary least squares F of all pairs, (V, n); its span must have been pulled."""
        weights = counts.ravel().astype(np.float64)
        theta = designs.solved(self.features, weights, 0.0, self.features.T @ (weights * means.ravel()))
        found: FloatArray = self.features @ theta
        return found.reshape(counts.shape)

    def covariance(self, weights: FloatArray) -> FloatArray:
        """Phi (sum_i w_i phi_i phi_i^T)^-1 Phi^T, (V n, V n): of least squares with w_i pulls of unit noise."""
        return self.features @ designs.solved(self.features, weights, 0.0, self.features.T)
