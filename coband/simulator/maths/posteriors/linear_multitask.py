"""What one agent knows of many tasks, with linear kernels of arms: exact, at a cost that does not grow with the data.

The equations are those of ``maths.posteriors.linear_tasks``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coband.simulator.arms import Points, features_of
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.linalg.lapack import dpotrf
from coband.simulator.maths.posteriors.linear_features import ArmFeatures
from coband.simulator.maths.posteriors.linear_tasks import TasksInCommon, Triangles, Weights, ridge_matrix, weights
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior


class TaskwisePosterior(MultitaskPosterior):
    """What one agent knows of its own task and others'; the keys of observations say of which tasks, and when.

    Args:
        kernel: K_x.
        network: K_z as a function of tasks; None where ``follow`` gives it as a table of numbered tasks.
        own: the number of its own.
        task: its own as ``network`` sees it, (s,).
        common: shared with others, or None.
    """

    def __init__(
        self,
        kernel: Linear,
        network: Kernel | None,
        dimension: int,
        lam: float,
        tasks: int,
        own: int,
        task: FloatArray,
        common: TasksInCommon | None,
    ) -> None:
        self._features, self._lam, self._own, self._common = ArmFeatures(kernel, dimension), lam, own, common
        self._triangles = Triangles(tasks, self._features.count)
        self._late: list[tuple[IndexArray, FloatArray, FloatArray]] = []
        self._counts = np.zeros(tasks, dtype=np.intp)  # -1 once trials are missing or out of order
        self._network, self._contexts = network, np.zeros((tasks, len(task)))
        self._contexts[own] = task
        self._heard = np.arange(tasks) == own
        self._table = np.eye(tasks) if network is None else network(self._contexts, self._contexts)

    def follow(self, table: FloatArray) -> bool:
        """K_z (tasks, tasks) from now on; entries of tasks of which nothing is known do not matter."""
        self._table = table
        self._tell_common()
        return True

    def update(self, observations: Observations) -> None:
        """Learn observations of any tasks at trials counted from 1."""
        if not len(observations):
            return
        assert observations.keys is not None, "observations of numbered tasks have keys"
        trials, numbers = np.array(observations.keys).T
        if self._network is not None and not self._heard[numbers].all():
            self._meet(numbers, observations.tasks, self._network)
        Phi, y = self._features.of(observations.features), observations.rewards
        for chosen in _different(numbers):
            tasks, when = numbers[chosen], trials[chosen]
            self._counts[tasks] = np.where(self._counts[tasks] + 1 == when, when, -1)
            self._late.append((tasks, Phi[chosen], y[chosen]))
            if self._common is not None:
                self._common.add(tasks, when, Phi[chosen], y[chosen])
        self._tell_common()

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        Phi = self._features.of(features_of(arms))
        mean, covariance = self._weights()
        variance = np.einsum("ij,ij->i", Phi @ covariance, Phi) / self._lam
        return Phi @ mean, np.maximum(variance, 0.0)

    @property
    def log_det(self) -> float:
        """log det(I + K/lam) = log det B of all known tasks."""
        known = self._known()
        if not len(known):
            return 0.0
        table = self._table[np.ix_(known, known)]
        self._gather(known, table)
        self._take_late()
        L, info = dpotrf(ridge_matrix(self._triangles.roots[known], table, self._lam).T, lower=1, clean=0)
        assert info == 0, "B is positive definite"
        return float(2.0 * np.log(np.diagonal(L)).sum())

    def _meet(self, numbers: IndexArray, tasks: FloatArray | None, network: Kernel) -> None:
        """Take in K_z of agents that are heard for the first time."""
        assert tasks is not None, "observations say of which tasks they are"
        self._heard[numbers] = True
        self._contexts[numbers] = tasks
        self.follow(network(self._contexts, self._contexts))

    def _tell_common(self) -> None:
        if self._common is not None:
            known = self._known()
            self._common.follow(known, self._table[np.ix_(known, known)])

    def _known(self) -> IndexArray:
        """The tasks of which something is known, in ascending order."""
        return np.flatnonzero(self._counts)

    def _gather(self, known: IndexArray, table: FloatArray) -> bool:
        """Take the triangles from the shared part, if it knows the same; whether it does."""
        common = self._common
        shared = common is not None and common.holds(known, self._counts[known], table)
        if common is not None and shared:
            self._triangles.copy(known, common.triangles)
            self._late.clear()
        return shared

    def _take_late(self) -> None:
        for tasks, Phi, y in self._late:
            self._triangles.add(tasks, Phi, y)
        self._late.clear()

    def _weights(self) -> Weights:
        known = self._known()
        # The shared part knows K_z of those tasks alone that somebody knows something of.
        if self._gather(known, self._table[np.ix_(known, known)]) and self._counts[self._own]:
            assert self._common is not None
            found = self._common.weights(self._own, known)
            if found is not None:
                return found
        self._take_late()
        with_own = np.union1d(known, [self._own])
        place = int(np.searchsorted(with_own, self._own))
        R, c = self._triangles.roots[with_own], self._triangles.rewards[with_own]
        return weights(R, c, self._table[np.ix_(with_own, with_own)], place, self._lam)


def _different(numbers: IndexArray) -> Iterator[IndexArray]:
    """Places in ``numbers`` (n,), in turns such that no number comes twice in one, the first occurrences first."""
    left = np.arange(len(numbers))
    while len(left):
        _, first = np.unique(numbers[left], return_index=True)
        yield left[first]
        left = np.delete(left, first)
