"""Linear kernels in the primal: ridge regression on explicit features, exact, in memory that does not grow.

A kernel that is linear in the arm is an inner product of features of task and arm together, so its posterior is that of
``maths.posteriors.ridge``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from weakref import WeakSet

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.posteriors.dictionary import SKIP_BELOW, Dictionary
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior
from coband.simulator.maths.posteriors.ridge import RidgeRegression


class ArmFeatures:
    """Features of a linear kernel variance x.y + bias: sqrt(variance) x, and sqrt(bias) where there is a bias."""

    def __init__(self, kernel: Linear, dimension: int) -> None:
        self._columns = None if kernel.columns is None else list(kernel.columns)
        self._root, self._bias = math.sqrt(kernel.variance), math.sqrt(kernel.bias)
        self.count = (dimension if self._columns is None else len(self._columns)) + (kernel.bias > 0)

    def of(self, X: FloatArray) -> FloatArray:
        """Features (n, count) of arms X (n, d)."""
        seen = self._root * (X if self._columns is None else X[:, self._columns])
        return np.hstack([seen, np.full((len(X), 1), self._bias)]) if self._bias else seen


MOST_REMEMBERED = 10_000
"""Tasks that are recognised as met; where there are more of them, the others are looked at each time they come."""


class TaskFeatures:
    """Features of a kernel of tasks: the Newton basis over the different tasks met so far; none where K_z = 1.

    Args:
        kernel: K_z as a function of the task's columns; None for K_z = 1.
    """

    def __init__(self, kernel: Kernel | None) -> None:
        self._dictionary = None if kernel is None else Dictionary(kernel)
        self._met: set[bytes] = set()

    def copied(self) -> TaskFeatures:
        """The same, to go on with apart."""
        other = copy(self)
        other._met = set(self._met)
        return other

    @property
    def basis(self) -> Dictionary | None:
        """The tasks of the Newton basis, another object when they become more; None where K_z = 1."""
        return self._dictionary

    @property
    def count(self) -> int:
        """Number of features: the rank of K_z on the tasks met."""
        return 1 if self._dictionary is None else self._dictionary.size

    def meet(self, tasks: FloatArray) -> None:
        """Take up tasks (n, s) that those met so far do not span."""
        if self._dictionary is None:
            return
        new = [task for task in np.ascontiguousarray(tasks) if task.tobytes() not in self._met]
        for task in np.unique(new, axis=0) if new else ():
            if len(self._met) < MOST_REMEMBERED:
                self._met.add(task.tobytes())
            kernel, z = self._dictionary.kernel, self._dictionary.embed(task[None])[0]
            prior = float(kernel.diag(task[None])[0])
            if prior - z @ z > SKIP_BELOW * prior:
                self._dictionary = self._dictionary.appended(task[None])

    def of(self, tasks: FloatArray) -> FloatArray:
        """Features (n, count) of tasks (n, s)."""
        return np.ones((len(tasks), 1)) if self._dictionary is None else self._dictionary.embed(tasks)

    def norms(self, tasks: FloatArray) -> FloatArray:
        """K_z(z, z) of tasks (n, s), shape (n,)."""
        return np.ones(len(tasks)) if self._dictionary is None else self._dictionary.kernel.diag(tasks)


class PrimalKnowledge:
    """What some agents know of all tasks: features of tasks and arms, and a ridge regression on them.

    Args:
        kernel: K_x.
        network: K_z as a function of tasks; None for 1.
        add_up: K_z + K_x in place of the product.

    Attributes:
        holders: the posteriors of the agents that know exactly this.
    """

    def __init__(self, kernel: Linear, network: Kernel | None, dimension: int, lam: float, add_up: bool) -> None:
        self.kernel, self.add_up = kernel, add_up and network is not None
        self.tasks = TaskFeatures(network)
        self.holders: WeakSet[PrimalPosterior] = WeakSet()
        self._arms = ArmFeatures(kernel, dimension)
        self.ridge = RidgeRegression(self._features(), lam, block=1)

    def forked(self) -> PrimalKnowledge:
        """The same, for agents that are about to know more than its holders."""
        fork = copy(self)
        fork.tasks, fork.ridge, fork.holders = self.tasks.copied(), self.ridge.forked(), WeakSet()
        return fork

    def _features(self) -> int:
        count = self.tasks.count
        return self._arms.count + count if self.add_up else self._arms.count * count

    def update(self, observations: Observations) -> None:
        """Learn observations of any tasks."""
        assert observations.tasks is not None, "observations of several tasks say which"
        self.tasks.meet(observations.tasks)
        self.ridge.grow(self._features())
        Phi = self._phi(self.tasks.of(observations.tasks), observations.features)
        self.ridge.update(Observations(Phi, observations.rewards))

    def predict(self, of_tasks: FloatArray, norms: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of n arms X (n, d), each (n,), on tasks with features (n, count) and K_z(z, z) (n,)."""
        Phi = self._phi(of_tasks, X)
        mean, variance = self.ridge.predict(Phi)
        if self.tasks.basis is None:  # features of arms are the kernel
            return mean, variance
        prior = self.kernel.diag(X)
        prior = prior + norms if self.add_up else prior * norms
        unseen = np.maximum(prior - np.einsum("ij,ij->i", Phi, Phi), 0.0)
        unseen[unseen < SKIP_BELOW * prior] = 0.0
        return mean, variance + unseen / self.ridge.lam

    def _phi(self, of_tasks: FloatArray, X: FloatArray) -> FloatArray:
        """Features (n, p) of arms X (n, d) on tasks with features (n, count)."""
        of_arms = self._arms.of(X)
        if self.add_up:
            return np.hstack([of_arms, of_tasks])
        if self.tasks.basis is None:
            return of_arms
        products: FloatArray = of_tasks[:, :, None] * of_arms[:, None, :]
        return products.reshape(len(X), of_tasks.shape[1] * of_arms.shape[1])


class PrimalPosterior(MultitaskPosterior):
    """The posterior of K_z K_x, or of K_z + K_x, with a linear K_x: zeta(z) (x) x, or [x | zeta(z)], as features.

    Args:
        knowledge: in common with agents that know the same, until one of them learns something by itself.
        task: the agent's own, (s,).
    """

    def __init__(self, knowledge: PrimalKnowledge, task: FloatArray) -> None:
        self.task = task
        self._own: tuple[Dictionary | None, FloatArray, FloatArray] | None = None
        self._knowledge = knowledge
        knowledge.holders.add(self)

    def copied(self, task: FloatArray) -> PrimalPosterior:
        """The same on an agent with this task (s,), to go on with apart."""
        return PrimalPosterior(self._knowledge, task)

    @property
    def log_det(self) -> float:
        return self._knowledge.ridge.log_det

    @property
    def known_alike(self) -> int:
        return id(self._knowledge)

    def update(self, observations: Observations) -> None:
        self.update_alike([self], observations)

    @classmethod
    def update_alike(cls, posteriors: Sequence[PrimalPosterior], observations: Observations) -> None:
        if not len(observations):
            return
        knowledge = posteriors[0]._knowledge
        if len(knowledge.holders) > len(posteriors):
            fork = knowledge.forked()
            for posterior in posteriors:
                knowledge.holders.discard(posterior)
                fork.holders.add(posterior)
                posterior._knowledge = fork
            knowledge = fork
        knowledge.update(observations)

    def predict(self, arms: Points) -> tuple[FloatArray, FloatArray]:
        X = features_of(arms)
        return self._knowledge.predict(*self._of_own_task(len(X)), X)

    def scores_alike(
        self, posteriors: Sequence[MultitaskPosterior], arm_sets: Sequence[ArmSet], alpha: FloatArray
    ) -> FloatArray:
        of_own = [posterior._of_own_task(len(arms)) for posterior, arms in zip(posteriors, arm_sets, strict=True)]  # type: ignore[attr-defined]
        of_tasks, norms = (np.concatenate(parts) for parts in zip(*of_own, strict=True))
        X = np.concatenate([arms.features for arms in arm_sets])
        mean, variance = self._knowledge.predict(of_tasks, norms, X)
        return mean + np.repeat(alpha, [len(arms) for arms in arm_sets]) * np.sqrt(variance)

    def _of_own_task(self, arms: int) -> tuple[FloatArray, FloatArray]:
        """Features (n, count) and K_z(z, z), (n,), of the own task, repeated for n arms; kept until the basis grows."""
        of_tasks = self._knowledge.tasks
        if self._own is None or self._own[0] is not of_tasks.basis or len(self._own[1]) != arms:
            tasks = np.repeat(self.task[None], arms, axis=0)
            self._own = of_tasks.basis, of_tasks.of(tasks), of_tasks.norms(tasks)
        return self._own[1:]
