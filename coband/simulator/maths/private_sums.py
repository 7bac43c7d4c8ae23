"""Sums of pulls that are released again and again under differential privacy.

The privatiser of FedUCB (Dubey and Pentland 2020, section 4), after Shariff and Sheffet 2018, section 4.2. Of
M = sum (x, y) (x, y)^T an agent releases W = sum x x^T and b = sum y x. A binary tree over the releases (Chan, Shi and
Song 2011) has noise in each node, so that a release is a sum of at most m = 1 + ceil(log2 n) nodes, and a pull is in as
many. The noise of a node is (N + N^T) / sqrt(2) with entries of N from N(0, sigma^2): off the diagonal its variance is
sigma^2, on it twice that. All is shifted by 2 Y I, so that what is added to W has its eigenvalues between Y and 3 Y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coband.simulator.arrays import FloatArray


@dataclass(frozen=True)
class Calibration:
    """How much noise there is.

    Attributes:
        dimension: d.
        releases: n, that there are at most.
        epsilon, delta: what all of them together promise.
        points: L, the largest length of an arm.
        rewards: B, the largest absolute value of a reward.
        confidence: alpha: the eigenvalues are as promised with probability 1 - alpha.
        exact: the least noise that keeps the promise, in place of the paper's.
    """

    dimension: int
    releases: int
    epsilon: float
    delta: float
    points: float
    rewards: float
    confidence: float
    exact: bool

    @property
    def nodes(self) -> int:
        """m = 1 + ceil(log2 n)."""
        return 1 + math.ceil(math.log2(self.releases))

    @property
    def sensitivity(self) -> float:
        """sqrt(L^4 / 2 + L^2 B^2): what one pull changes, in units of the noise of each entry.

        (x x^T, y x) against the density of the noise: the sum of squares of the entries of x x^T over 2, and those of
        y x.
        """
        return self.points * math.sqrt(0.5 * self.points**2 + self.rewards**2)

    @property
    def sigma(self) -> float:
        """4 sqrt(m) (L^2 + B^2) log(2/delta) / epsilon; of ``exact`` from the Gaussian mechanism's own formula."""
        if self.exact:
            return self.sensitivity * math.sqrt(self.nodes) / gaussian_mu(self.epsilon, self.delta)
        bound = self.points**2 + self.rewards**2
        return 4.0 * math.sqrt(self.nodes) * bound * math.log(2.0 / self.delta) / self.epsilon

    @property
    def shift(self) -> float:
        """Y = sqrt(2 m) sigma (4 sqrt(d) + 2 log(2 n / alpha)); rho_min = Y and rho_max = 3 Y."""
        return math.sqrt(2.0 * self.nodes) * self.sigma * (4.0 * math.sqrt(self.dimension) + 2.0 * self._log)

    @property
    def kappa(self) -> float:
        """The most of ||h||_(H^-1): sigma sqrt(m / Y) (sqrt(d) + sqrt(2 log(2 n / alpha))), h the noise of b."""
        spread = math.sqrt(self.dimension) + math.sqrt(2.0 * self._log)
        return self.sigma * math.sqrt(self.nodes / self.shift) * spread

    @property
    def _log(self) -> float:
        return math.log(2.0 * self.releases / self.confidence)


class PrivateSums:
    """The sums of one agent, released with noise.

    Args:
        calibration: how much.
        rng: draws it: (d + 1, d + 1) standard normal numbers for each release.

    Attributes:
        released: how often.
    """

    def __init__(self, calibration: Calibration, rng: np.random.Generator) -> None:
        self._calibration, self._rng = calibration, rng
        self.released = 0
        self._nodes: list[FloatArray] = []  # noise of the tree's nodes that make up what was released, largest first

    def release(self, sums: FloatArray) -> FloatArray:
        """(W | b) of all pulls so far, (d, d + 1), with noise and shift.

        Release n has one node that is new: over the last 2^j releases, for the largest 2^j that divides n.
        """
        d, scale = self._calibration.dimension, self._calibration.sigma / math.sqrt(2.0)
        self.released += 1
        merged = (self.released & -self.released).bit_length() - 1
        del self._nodes[len(self._nodes) - merged :]
        drawn = self._rng.standard_normal((d + 1, d + 1))
        self._nodes.append(scale * (drawn + drawn.T)[:d])
        found: FloatArray = sums + sum(self._nodes)
        found.flat[:: d + 2] += 2.0 * self._calibration.shift
        return found


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu, sensitivity over deviation, with which Gaussian noise is (epsilon, delta)-private.

    delta(mu) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018, theorem 8).
    """
    from scipy.special import log_ndtr  # takes long to load

    def spent(mu: float) -> float:
        lost, kept = 0.5 * mu - epsilon / mu, -0.5 * mu - epsilon / mu
        return math.exp(log_ndtr(lost)) - math.exp(epsilon + log_ndtr(kept))

    low, high = 0.0, 1.0
    while spent(high) <= delta:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spent(middle) <= delta else (low, middle)
    return low
