"""The information gain of a run's pulls, from a trace that keeps what was pulled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.audit.trace import CHOOSE
from coband.simulator.experiments.store.store import StoredJob

MOST_PULLS = 4000
"""With more pulls the determinant of their kernel matrix would take too long."""
CHOICES = f"SELECT value, detail FROM events WHERE job = ? AND event = {CHOOSE} ORDER BY seq LIMIT ?"


@dataclass(frozen=True)
class Pulls:
    """What was pulled in one replication.

    Attributes:
        points: features of the arms in the order of the pulls, shape (T, d).
    """

    points: FloatArray

    def gain(self, kernel: Any, scale: float) -> FloatArray:
        """1/2 log det(I + K_t/scale) after each pull t, shape (T,), by one Cholesky factor of I + K_T/scale.

        Args:
            kernel: k(X, Y).
            scale: above 0.
        """
        K = kernel(self.points, self.points)
        factor = np.linalg.cholesky(np.eye(len(K)) + K / scale)
        found: FloatArray = np.cumsum(np.log(np.diag(factor)))
        return found

    def variances(self, kernel: Any) -> tuple[float, float]:
        """The least and the largest k(x, x)."""
        diagonal = kernel.diag(self.points)
        return float(diagonal.min()), float(diagonal.max())


def pulls(job: StoredJob) -> Pulls | str:
    """What was pulled in a job, or why that is not known."""
    rows = job.part.execute(CHOICES, (job.id, MOST_PULLS + 1)).fetchall() if job.trace == "full" else []
    if not rows:
        return "the trace does not say what was pulled (run with --trace full)"
    if len(rows) > MOST_PULLS:
        return f"there are more than {MOST_PULLS:,} pulls"
    details = [json.loads(detail) if detail else {} for _, detail in rows]
    if any("arms" not in detail for detail in details):
        return "pulls in batches do not say what was pulled"
    points = [detail["arms"][detail["arm"]] for detail in details]
    return Pulls(np.array(points, dtype=np.float64))
