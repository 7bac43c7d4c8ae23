"""Posteriors as the papers print them: mean and deviation."""

import numpy as np

from coband.simulator.arms import Points
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.posteriors.protocol import Predictor


def evaluated(posterior: Predictor, X: Points) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of X (n, d), each (n,)."""
    mean, variance = posterior.predict(X)
    return mean, np.sqrt(variance)
