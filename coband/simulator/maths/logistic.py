"""Logistic regression as generalised linear bandits use it: online Newton steps, and gradient descent shared by many.

The link is mu(z) = 1 / (1 + e^-z), the loss of an observation l(z, y) = log(1 + e^z) - y z with z = x^T theta, whose
derivative mu(z) - y has a meaning for every real y. Source: Li and Wang 2022 (FedGLB-UCB), the federated generalised
linear bandit that Li et al. 2023 compares with.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.scenario_errors import BrokenOff

STEEPEST = 0.25
"""k_mu, the largest derivative of the link, at z = 0."""

NEWTON_STEPS = 100
"""Most steps of a projection; about five are usual."""

Smoothness = Literal["unit_ball", "data"]


def flattest(radius: float) -> float:
    """c_mu: the smallest derivative of the link over |z| <= radius, mu(S) (1 - mu(S)) = mu(S) mu(-S)."""
    from scipy.special import expit  # slow to import, and only generalised linear models need it

    return float(expit(radius)) * float(expit(-radius))


def loss_gradient(X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
    """sum of (mu(x^T theta) - y) x over the rows of X (n, d) with rewards y (n,); shape (d,)."""
    from scipy.special import expit

    return (expit(X @ theta) - y) @ X


def newton_step(theta: FloatArray, direction: FloatArray, z: float, y: float, c_mu: float) -> FloatArray:
    """One online Newton step, theta - (1/c_mu) (mu(z) - y) A^(-1) x, before its projection.

    Args:
        theta: (d,).
        direction: A^(-1) x, (d,), A with the new x.
        z: x^T theta.
        y: reward.
        c_mu: lower bound on the link's derivative.
    """
    from scipy.special import expit

    return theta - (float(expit(z)) - y) / c_mu * direction


def project(theta: FloatArray, inverse: FloatArray, radius: float) -> FloatArray:
    """The point of the ball ||v|| <= radius that is nearest to theta in the norm of A.

    v = (A + nu I)^(-1) A theta, and nu >= 0 solves ||v|| = radius: in the eigenbasis of A^(-1) coordinates shrink by
    1 / (1 + nu p). As in trust-region methods Newton's method runs on 1/||v||, which is concave and nearly linear in
    nu, so that its steps from nu = 0 never overshoot.

    Args:
        theta: (d,).
        inverse: A^(-1), (d, d), positive definite.
        radius: S > 0.
    """
    if float(np.linalg.norm(theta)) <= radius:
        return theta
    p, Q = np.linalg.eigh(inverse)
    p = np.maximum(p, 0.0)  # rounding
    coordinates, nu = theta @ Q, 0.0
    for _ in range(NEWTON_STEPS):
        shrunk = coordinates / (1.0 + nu * p)
        norm = float(np.linalg.norm(shrunk))
        if norm <= radius * (1.0 + 1e-14):
            break
        nu += (norm / radius - 1.0) * norm**2 / float((p * shrunk**2 / (1.0 + nu * p)).sum())
    projected: FloatArray = Q @ shrunk
    return projected


class AcceleratedGradient:
    """Nesterov's method for F(theta) = 1/n [sum of l(x^T theta, y) + lam/2 ||theta||^2], a gradient at a time.

    y_(j+1) = x_j - grad/L,    x_(j+1) = y_(j+1) + (w_j - 1)/w_(j+1) (y_(j+1) - y_j),    w_1 = 1,
    w_(j+1) = (1 + sqrt(1 + 4 w_j^2)) / 2. It ends at an x_j with ||grad|| <= sqrt(2 lam / n^3), for which F is at most
    1/n^2 above its minimum, F being (lam/n)-strongly convex; or after a number of gradients at the last y.

    Args:
        start: x_1, (d,).
        W: sum of x x^T over all data, (d, d).
        n: number of data.
        lam: ridge parameter lam > 0.
        smoothness: L = k_mu max(1, largest eigenvalue of W/n) + lam/n, which is the paper's k_mu + lam/n for x in the
            unit ball, and a bound for all others; data: without the maximum, the tightest that W allows.
        most: gradients at most.

    Attributes:
        iterate: where the next gradient is wanted; the result in the end.
        rounds: gradients taken in.
        done: True in the end.
        converged: whether the last gradient was small enough.
    """

    def __init__(self, start: FloatArray, W: FloatArray, n: int, lam: float, smoothness: Smoothness, most: int) -> None:
        largest = float(np.linalg.eigvalsh(W)[-1]) / n
        steepest = STEEPEST * (max(1.0, largest) if smoothness == "unit_ball" else largest)
        self._step = 1.0 / (steepest + lam / n)
        self._n, self._lam, self._most = n, lam, most
        self._tolerance = math.sqrt(2.0 * lam / float(n) ** 3)
        self.iterate, self._descended, self._weight = start, start, 1.0
        self.rounds, self.done, self.converged = 0, False, False

    def descend(self, loss_gradient: FloatArray) -> None:
        """Take in the sum over all data of the gradients of the loss at the iterate, (d,)."""
        self.rounds += 1
        gradient = (loss_gradient + self._lam * self.iterate) / self._n
        if float(np.linalg.norm(gradient)) <= self._tolerance:
            self.done = self.converged = True
            return
        descended = self.iterate - self._step * gradient
        weight = (1.0 + math.sqrt(1.0 + 4.0 * self._weight**2)) / 2.0
        self.iterate = descended + (self._weight - 1.0) / weight * (descended - self._descended)
        self._descended, self._weight = descended, weight
        if self.rounds == self._most:
            self.iterate, self.done = descended, True
            if (needed := math.sqrt(self._n / (self._step * self._lam))) > 10.0 * self._most:  # hopeless
                what = f"gradient descent has not converged in max_rounds(={self._most}), and needs some {needed:.0e}"
                raise BrokenOff(
                    f"{what}: features are too large for lam(={self._lam:g}); scale them down, or raise lam."
                )
