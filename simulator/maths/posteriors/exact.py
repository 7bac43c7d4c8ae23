"""Exact kernel ridge regression of one agent (Li et al. 2023, eq. 1); see `shared_log` for the formulas."""

from __future__ import annotations

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import Posterior
from coband.simulator.maths.posteriors.shared_log import SharedLog, column_squares, scaled


class ExactPosterior(Posterior):
    """Exact posterior of one agent on its own growing data (Li et al. 2023, eq. 1), with ridge parameter lam > 0."""

    def __init__(self, kernel: Kernel, lam: float) -> None:
        self._log = SharedLog(kernel, lam)

    @property
    def size(self) -> int:
        return self._log.size

    @property
    def log_det(self) -> float:
        return self._log.log_det(self._log.size)

    def update(self, observations: Observations) -> None:
        """Learn observations. A single arm of the last ``predict`` costs no second solve."""
        self._log.extend(self._log.size, observations)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        log = self._log
        V = log.solve(arms, log.size)
        variance = log.kernel.diag(features_of(arms)) - column_squares(V)
        return V.T @ log.whitened_rewards(log.size), scaled(variance, log.lam)

    def look_ahead(self, arms: ArmSet) -> None:
        self._log.look_ahead(arms)

    def scores(self, arms: ArmSet, alpha: float) -> FloatArray:
        scores = self._log.scores(arms, alpha, self._log.size)
        return super().scores(arms, alpha) if scores is None else scores
