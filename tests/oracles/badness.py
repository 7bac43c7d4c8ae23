"""When an agent's rewards no longer fit what its pulls let expect (dLinUCB, Wu et al. 2018), as a plain loop."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfinv


class Watch:
    """Keeps all pulls since it began, and works everything out afresh at each one."""

    def __init__(self, lam: float, norm: float, noise: float, window: int, delta: float, delta_share: float) -> None:
        self.lam, self.norm, self.noise, self.window = lam, norm, noise, window
        self.delta, self.delta_share = delta, delta_share
        self.fitting: list[tuple[np.ndarray, float]] = []
        self.outside: list[bool] = []

    def changed(self, x: np.ndarray, y: float) -> bool:
        d, n = len(x), len(self.fitting)
        V, b = self.lam * np.eye(d), np.zeros(d)
        for x_s, y_s in self.fitting:
            V += np.outer(x_s, x_s)
            b += y_s * x_s
        theta = np.linalg.solve(V, b)
        width = math.sqrt(x @ np.linalg.solve(V, x))
        beta = math.sqrt(self.lam) * self.norm + self.noise * math.sqrt(
            2 * math.log(1 / self.delta) + d * math.log(1 + n / (self.lam * d))
        )
        epsilon = math.sqrt(2) * self.noise * erfinv(1 - self.delta)  # noise beyond it has probability delta
        fits = abs(y - x @ theta) <= beta * width + epsilon
        if fits:
            self.fitting.append((x, y))
        self.outside.append(not fits)
        last = self.outside[-self.window :]
        return sum(last) / len(last) >= self.delta + math.sqrt(math.log(1 / self.delta_share) / (2 * len(last)))
