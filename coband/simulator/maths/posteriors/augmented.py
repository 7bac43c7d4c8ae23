"""Posteriors of several tasks as posteriors of augmented points [task | x | place] (``maths.kernels.multitask``)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.multitask import Augmented
from coband.simulator.maths.posteriors.observations import Key, Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior, Posterior

NOWHERE = np.empty(0, dtype=np.intp)


class AugmentedPosterior(MultitaskPosterior):
    """Any posterior with a kernel of augmented points, asked about arms of one task.

    Args:
        kernel: how points are augmented.
        task: the agent's own, (s,).
        posterior: with ``kernel.kernel``, on augmented points.
    """

    def __init__(self, kernel: Augmented, task: FloatArray, posterior: Posterior) -> None:
        self.kernel, self.posterior = kernel, posterior
        self.task = task
        self._latest: tuple[ArmSet, ArmSet] | None = None

    @property
    def log_det(self) -> float:
        return self.posterior.log_det

    def update(self, observations: Observations) -> None:
        self.posterior.update(AugmentedObservations(self.kernel, observations))

    @classmethod
    def update_alike(cls, posteriors: Sequence[Self], observations: Observations) -> None:
        augmented = AugmentedObservations(posteriors[0].kernel, observations)
        for posterior in posteriors:
            posterior.posterior.update(augmented)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        return self.posterior.predict(self._augmented(arms))

    @property
    def known_alike(self) -> Hashable | None:
        return self.posterior.known_alike

    def scores_alike(
        self, posteriors: Sequence[MultitaskPosterior], arm_sets: Sequence[ArmSet], alpha: FloatArray
    ) -> FloatArray:
        counts = [len(arms) for arms in arm_sets]
        of_arms = np.repeat(np.array([posterior.task for posterior in posteriors]), counts, axis=0)
        X = np.concatenate([arms.features for arms in arm_sets])
        places = np.concatenate([arms.ids for arms in arm_sets]) if self.kernel.places else NOWHERE
        points = ArmSet(self.kernel.points(of_arms, X, places))
        mean, variance = self.posterior.predict(points)
        return mean + np.repeat(alpha, counts) * np.sqrt(variance)

    def _augmented(self, arms: Points) -> Points:
        if not isinstance(arms, ArmSet):
            return self._points(arms)
        if self._latest is None or self._latest[0] is not arms:
            self._latest = arms, ArmSet(self._points(arms))
        return self._latest[1]

    def _points(self, arms: Points) -> FloatArray:
        X = features_of(arms)
        places = arms.ids if isinstance(arms, ArmSet) else np.arange(len(X))
        return self.kernel.points(np.repeat(self.task[None], len(X), axis=0), X, places)


class AugmentedObservations(Observations):
    """Observations with augmented points, which are put together when they are first asked for.

    Args:
        kernel: how points are augmented.
        observations: with tasks.
    """

    def __init__(self, kernel: Augmented, observations: Observations) -> None:
        self._kernel, self._plain = kernel, observations

    def __len__(self) -> int:
        return len(self._plain)

    @cached_property
    def points(self) -> FloatArray:
        """Rows [task | x | place]."""
        plain = self._plain
        assert plain.tasks is not None, "observations of several tasks say which"
        places = np.zeros(len(plain), dtype=np.intp) if plain.places is None else plain.places
        return self._kernel.points(plain.tasks, plain.features, places)

    @property
    def rewards(self) -> FloatArray:
        return self._plain.rewards

    @property
    def keys(self) -> Sequence[Key] | None:
        return self._plain.keys
