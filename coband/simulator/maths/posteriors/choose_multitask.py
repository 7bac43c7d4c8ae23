"""Which posterior on the tasks of several agents when (`maths.posteriors.choose` has the table of all); posteriors of
several tasks as posteriors of augmented points [task | x] (``maths.kernels.multitask``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, Self

import numpy as np

from coband.simulator.arms import ArmSet, Points, features_of
from coband.simulator.arrays import FloatArray
from coband.simulator.maths.kernels.base import KernelSpec
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.kernels.multitask import Augmented, Composition, Table, augmented
from coband.simulator.maths.linalg.caches import RecentCache, Sharing, WeakCache
from coband.simulator.maths.posteriors.counts import Factors, RepeatsPosterior
from coband.simulator.maths.posteriors.group_log import CanonicalPosterior
from coband.simulator.maths.posteriors.growing_nystrom import GrowingNystrom, relevance_of
from coband.simulator.maths.posteriors.linear_features import ArmFeatures, PrimalKnowledge, PrimalPosterior
from coband.simulator.maths.posteriors.linear_tasks import TasksInCommon, TaskwisePosterior
from coband.simulator.maths.posteriors.observations import Key, Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior, Posterior
from coband.simulator.maths.posteriors.shared_log import SharedLog


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
        mean, variance = self.posterior.predict(ArmSet(self.kernel.points(of_arms, X)))
        return mean + np.repeat(alpha, counts) * np.sqrt(variance)

    def _augmented(self, arms: Points) -> Points:
        if not isinstance(arms, ArmSet):
            return self._points(arms)
        if self._latest is None or self._latest[0] is not arms:
            self._latest = arms, ArmSet(self._points(arms))
        return self._latest[1]

    def _points(self, arms: Points) -> FloatArray:
        X = features_of(arms)
        return self.kernel.points(np.repeat(self.task[None], len(X), axis=0), X)


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
        """Rows [task | x]."""
        plain = self._plain
        assert plain.tasks is not None, "observations of several tasks say which"
        return self._kernel.points(plain.tasks, plain.features)

    @property
    def rewards(self) -> FloatArray:
        return self._plain.rewards

    @property
    def keys(self) -> Sequence[Key] | None:
        return self._plain.keys


PRIMAL_FEATURES = 256
"""Largest number of features of all tasks together; with more of them a linear kernel is computed task by task."""

Form = Literal["primal", "taskwise", "nystrom", "counts", "log"]


@dataclass(frozen=True, eq=False)
class Multitask:
    """What decides about the posterior of one agent on the tasks of several (Dubey and Pentland 2020, eq. 9).

    Attributes:
        kernel: K_x of arms.
        network: K_z as a function of network contexts; None for 1, or if it is estimated.
        estimated: whether K_z is a table of agents that changes.
        composition: how K_z and K_x make K.
        members: the agents whose observations are learnt, in ascending order.
        own: the agent's number.
        task: its own task, as ``Observations.tasks`` has it, (s,).
        dictionary: points of a Nystrom dictionary; None for an exact posterior.
        domain: points of the arm set, if that is the same at all turns; else None.
        horizon: turns of each agent at least; None if nobody knows.
    """

    kernel: KernelSpec
    network: KernelSpec | None
    estimated: bool
    composition: Composition
    lam: float
    dimension: int
    agents: int
    members: tuple[int, ...]
    own: int
    task: FloatArray
    dictionary: int | None
    domain: int | None
    horizon: int | None

    @property
    def single(self) -> bool:
        """Whether all agents have one task, K_z = 1."""
        return self.network is None and not self.estimated

    @property
    def form(self) -> Form:
        if isinstance(self.kernel, Linear):
            if self._features <= PRIMAL_FEATURES:
                return "primal"
            if not self.single and self.composition == "product" and self.dictionary is None:
                return "taskwise"
        if self.dictionary is not None:
            return "nystrom"
        return "counts" if self._repeats else "log"

    @property
    def _features(self) -> int:
        """An upper bound on the rank of a K that is linear in the arm."""
        tasks = 1 if self.single else len(self.members)
        if isinstance(self.network, Linear):
            tasks = min(tasks, len(self.task) + 1)
        return tasks * (1 if self.composition == "sum" else self.dimension + 1) + self.dimension

    @property
    def _repeats(self) -> bool:
        """Whether arms are so few and turns so many that counts of points do better than observations one by one.

        A new factor of M points per task at each of T turns costs T M^3, and one that grows with all T turns costs T^3.
        """
        return self.domain is not None and (self.horizon is None or self.domain**3 <= self.horizon**2)

    def rows(self) -> int:
        """Rows of an exact factor: the observations, or the different points among them where those are counted."""
        assert self.horizon is not None, "without a horizon nobody knows how many"
        observations = len(self.members) * self.horizon
        if self.domain is None or not self._repeats:
            return observations
        return min(observations, (1 if self.single else len(self.members)) * self.domain)


def factor_entries(setting: Multitask, groups: Sequence[tuple[int, ...]], shared: bool) -> tuple[float, list[int]]:
    """Numbers that the exact factors of all agents hold together, and the rows of each factor.

    Args:
        setting: of any of the agents.
        groups: of each agent the ``members``.
        shared: whether agents with the same group share a log.
    """
    if shared and setting.form != "counts":
        groups = list(dict.fromkeys(groups))
    factors = [one for group in groups if (one := replace(setting, members=group)).form in ("counts", "log")]
    # A growing factor is a triangle in a square, one started again fills it, and counts need the kernel matrix too.
    share = 2.0 if setting.form == "counts" else 1.0 if setting.estimated else 0.5
    sizes = [one.rows() for one in factors]
    return sum(share * size**2 for size in sizes), sizes


def multitask(
    setting: Multitask, sharing: Sharing, table: FloatArray | None = None, seen: Observations | None = None
) -> MultitaskPosterior:
    """The posterior on the tasks of several agents.

    Args:
        sharing: caches in common with agents that learn from the same members.
        table: K_z where it is estimated, (agents, agents).
        seen: observations that it begins with, in the order (trial, agent).
    """
    if setting.form == "taskwise":
        posterior: MultitaskPosterior = _taskwise(setting, sharing)
        if table is not None:
            posterior.follow(table)
    elif setting.form == "primal":
        return _primal(setting, sharing, table, seen)
    else:
        network = setting.network if table is None else table
        kernel = augmented(setting.kernel, network, len(setting.task), setting.dimension, setting.composition)
        posterior = AugmentedPosterior(kernel, setting.task, _of_points(setting, sharing, kernel, seen))
        if setting.form == "log":
            return posterior
    if seen is not None:
        posterior.update(seen)
    return posterior


def _of_points(setting: Multitask, sharing: Sharing, kernel: Augmented, seen: Observations | None) -> Posterior:
    """On augmented points. A log has ``seen`` already."""
    if setting.form == "nystrom":
        assert setting.dictionary is not None
        relevance = None if setting.single else partial(_relevance, kernel, setting.task)
        return GrowingNystrom(kernel.kernel, setting.lam, setting.dictionary, relevance)
    first = b"" if seen is None else seen.key_bytes
    if setting.form == "counts":
        # One factor for all who accept the same observations, and estimate K_z from the same ones.
        kept: WeakCache[Factors] = sharing.get(("factors", setting.members), WeakCache)
        return RepeatsPosterior(kernel.kernel, setting.lam, kept.get(first, lambda: Factors(1)))
    logs: WeakCache[SharedLog] = sharing.get(("logs", setting.members), WeakCache)
    log = logs.get(first, lambda: SharedLog(kernel.kernel, setting.lam))
    if seen is None:
        return CanonicalPosterior(log, setting.members)
    log.extend(0, AugmentedObservations(kernel, seen))
    assert seen.keys is not None
    return CanonicalPosterior(log, setting.members, seen.keys)


def _relevance(kernel: Augmented, task: FloatArray, points: FloatArray) -> FloatArray:
    """How much each of n augmented points tells about the same arm of a task, (n,)."""
    twins = points.copy()
    twins[:, : len(task)] = task if kernel.scale is None else task * kernel.scale[: len(task)]
    return relevance_of(kernel.kernel, points, twins)


def _primal(
    setting: Multitask, sharing: Sharing, table: FloatArray | None, seen: Observations | None
) -> PrimalPosterior:
    assert isinstance(setting.kernel, Linear)
    linear = setting.kernel
    network: Kernel | None = setting.network if table is None else Table(table, 0)

    def begun() -> PrimalPosterior:
        add_up = setting.composition == "sum"
        knowledge = PrimalKnowledge(linear, network, setting.dimension, setting.lam, add_up)
        posterior = PrimalPosterior(knowledge, setting.task)
        if seen is not None:
            posterior.update(seen)
        return posterior

    kept: RecentCache[PrimalPosterior] = sharing.get(("begun", setting.members), partial(RecentCache, 1))
    return kept.get(b"" if seen is None else seen.key_bytes, begun).copied(setting.task)


def _taskwise(setting: Multitask, sharing: Sharing) -> TaskwisePosterior:
    assert isinstance(setting.kernel, Linear)
    features, agents, lam = ArmFeatures(setting.kernel, setting.dimension).count, setting.agents, setting.lam
    common = sharing.get("tasks", lambda: TasksInCommon(agents, features, lam)) if sharing.on else None
    network, dimension, task = setting.network, setting.dimension, setting.task
    return TaskwisePosterior(
        kernel=setting.kernel,
        network=network,
        dimension=dimension,
        lam=lam,
        tasks=agents,
        own=setting.own,
        task=task,
        common=common,
    )
