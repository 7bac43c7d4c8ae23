"""Which arms of several arm sets may be the best of their set, found without a solve for each of them.

The means of all arms follow from the weights a = (K + lam I)^(-1) y of the log, mu(x) = k(x)^T a, and sigma^2 is at
most k(x, x)/lam. An arm that with this bound does not reach the largest mean of its set cannot have the largest score.
Means from weights serve only to leave arms out, with a margin for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.posteriors.prepared_solves import Rows

FEWEST_ROWS = 192
"""With fewer rows than these a solve for all arms takes no longer."""


def contenders(log: Rows, known: int, X: FloatArray, counts: Sequence[int], alpha: FloatArray) -> IndexArray | None:
    """Places of the arms whose score mu + alpha sigma may be the largest of their set.

    Args:
        known: how many of them are known.
        X: arms of several arm sets, one after the other, (n, d).
        counts: arms of each arm set.
        alpha: of each arm, (n,).

    Returns:
        The places in ascending order; None where it is better to solve for all arms.
    """
    margin = rounding(log, known)
    if known < FEWEST_ROWS or margin > 1e-3 * alpha.min():
        return None
    weights = log.factor.solve_transposed(log.whitened_rewards(known)[:, None])[:, 0]
    mean = log.cross(X, known) @ weights
    bounds = mean + alpha * np.sqrt(log.kernel.diag(X) / log.lam) + 2.0 * margin
    largest = np.maximum.reduceat(mean, np.cumsum([0, *counts[:-1]]))
    return np.flatnonzero(bounds >= np.repeat(largest, counts))


def rounding(log: Rows, known: int) -> float:
    """Far more than the rounding of a score from weights: the condition of K + lam I is at most n k(x, x)/lam."""
    return 1e-12 * (known + 1) * log.scale * log.scale
