"""Posteriors as the papers print them: mean and deviation."""

from typing import Protocol

import numpy as np

from coband.simulator.arrays import FloatArray


class Posterior(Protocol):
    """Anything with moments."""

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]: ...


def evaluated(posterior: Posterior, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of X (n, d), each (n,)."""
    mean, variance = posterior.moments(X)
    return mean, np.sqrt(variance)
