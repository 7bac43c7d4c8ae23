"""Trainings of a network that diverge (Dai et al. 2023, algorithm 1, line 14), and what becomes of the network.

Where the inputs of few data are long, a step of gradient descent overshoots by more than it corrects; the weights grow
with every step, and are no longer numbers in the end. Whatever such a network says, the first arm seems best from then
on. The papers and their public codes do not provide for that. Here the network starts again from theta_0 at its next
training, which has more data, and the run says how often this happened.
"""

from __future__ import annotations

from coband.simulator.arrays import FloatArray
from coband.simulator.maths.neural.training import has_diverged
from coband.simulator.metrics import Metric

METRICS = (
    Metric(
        "restarts", "trainings", "trainings that diverged, after which the network starts again from its first weights"
    ),
    Metric(
        "trainings_converge",
        "0 or 1",
        "0: a training ended with weights that are no numbers or beyond 1e30",
        aggregate="min",
        caution="training diverged, and networks started again from their first weights; give lr a smaller value, or "
        "scale the inputs",
    ),
)


class Restarts:
    """Counts the trainings of one agent that diverged."""

    def __init__(self) -> None:
        self.count = 0

    def checked(self, trained: FloatArray, first: FloatArray) -> FloatArray:
        """The weights after a training (p,), or ``first``, those of theta_0, if it has diverged."""
        if not has_diverged(trained):
            return trained
        self.count += 1
        return first

    def report(self) -> dict[str, float | int]:
        """What METRICS declares."""
        return {"restarts": self.count, "trainings_converge": int(not self.count)}
