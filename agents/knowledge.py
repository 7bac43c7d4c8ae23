"""What an agent knows about several agents' tasks: equation 9 of paper 004 ("Kernel Methods for Cooperative Multi-Agent
Contextual Bandits"), the posterior on its own pulls and those that it has accepted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from coband.agents.cooperation import Cooperative, Mmd, Nystrom, WithTasks, network_kernel
from coband.agents.messages import Pull
from coband.agents.posterior_forms import is_primal, is_taskwise, repeats
from coband.simulator.arrays import FloatArray
from coband.simulator.core.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.kernels.library import Kernel, Linear
from coband.simulator.maths.kernels.mean_embeddings import PairMeans, similarities
from coband.simulator.maths.kernels.multitask import Augmented, Table, augmented
from coband.simulator.maths.linalg.caches import RecentCache, WeakCache
from coband.simulator.maths.posteriors.counts import Factors, RepeatsPosterior
from coband.simulator.maths.posteriors.exact import SharedLog
from coband.simulator.maths.posteriors.group_log import CanonicalPosterior
from coband.simulator.maths.posteriors.growing_nystrom import GrowingNystrom
from coband.simulator.maths.posteriors.linear_features import ArmFeatures, PrimalPosterior
from coband.simulator.maths.posteriors.linear_multitask import TasksInCommon, TaskwisePosterior

_BY_TRIAL = attrgetter("trial", "agent")


class Knowledge:
    """The posterior of one agent on its own pulls and those that it has accepted.

    Args:
        setting: the agent's.
        members: the agents whose pulls it accepts, itself among them, in ascending order.
    """

    def __init__(self, context: NodeContext, members: tuple[int, ...]) -> None:
        self._context, self._members = context, members
        self._config: Cooperative = context.config
        self._network = network_kernel(self._config)
        self.estimates = isinstance(self._network, Mmd)
        if self._network is not None and not self.estimates and context.network_context is None:
            raise UnsupportedScenario(
                "network_kernel needs a problem that tells agents their contexts (problem.kind: network); with others "
                "use network_kernel: mmd, or null"
            )
        self.tells_context = self._network is not None and not self.estimates
        self._task = self._task_of(context.index, context.network_context)
        self._seen: list[Pull] = []
        self._heard: set[int] = set()
        self._posterior: CanonicalPosterior | PrimalPosterior | GrowingNystrom | RepeatsPosterior | TaskwisePosterior
        self._age = 0
        self._prefetched: tuple[FloatArray, FloatArray] | None = None
        if is_taskwise(context, members):
            self._posterior = self._taskwise()
            self._contexts = np.zeros((context.agents, len(self._task)))
        elif not self.estimates:
            self._start(self._network, b"")

    def primal(self) -> bool:
        """Whether the kernel is computed in the primal, where data take no memory."""
        return is_primal(self._context, self._members)

    def learn(self, pulls: Sequence[Pull]) -> None:
        """Take in new observations, all at once."""
        pulls = sorted(pulls, key=_BY_TRIAL)
        if self.estimates:
            pulls = self._estimate(pulls)
        elif isinstance(self._posterior, TaskwisePosterior):
            self._meet(pulls, self._posterior)
        if pulls:
            self._add(pulls)

    def prefetch(self, X: FloatArray) -> None:
        """The arms X (n, d) that ``moments`` will be asked about next."""
        if isinstance(self._posterior, CanonicalPosterior):
            P = self._points(X)
            self._prefetched = (X, P)
            self._posterior.log.prefetch(P)

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance sigma^2/lam of the agent's own task at the arms X (n, d), each (n,)."""
        if isinstance(self._posterior, TaskwisePosterior):
            return self._posterior.moments(X)
        if isinstance(self._posterior, PrimalPosterior):
            return self._posterior.moments(np.repeat(self._task[None], len(X), axis=0), X)
        if self._prefetched is not None and self._prefetched[0] is X:
            return self._posterior.moments(self._prefetched[1])
        return self._posterior.moments(self._points(X))

    def _points(self, X: FloatArray) -> FloatArray:
        tasks = np.repeat(self._task[None], len(X), axis=0)
        return self._augmented.points(tasks, X, np.arange(len(X)))

    def _task_of(self, agent: int, context: FloatArray | None) -> FloatArray:
        if self.estimates:
            return np.array([float(agent)])
        return np.empty(0) if self._network is None or context is None else context

    def _estimate(self, pulls: list[Pull]) -> list[Pull]:
        """Estimate K_z anew when it is time to; then all observations are new to the posterior."""
        self._age += 1
        senders = {pull.agent for pull in pulls}
        first_heard = not senders <= self._heard
        self._seen += pulls
        self._heard |= senders
        assert isinstance(self._network, Mmd)
        if self._age < self._network.refresh and not first_heard:
            return pulls
        self._age = 0
        self._seen.sort(key=_BY_TRIAL)
        keys = np.array(self._keys(), dtype=np.int32).tobytes()  # compact: every agent keeps as many as it knows pulls
        tables: WeakCache[FloatArray] = self._context.sharing.get(("similarities", self._members), WeakCache)
        table = tables.get(keys, self._similarities)
        if is_taskwise(self._context, self._members):
            assert isinstance(self._posterior, TaskwisePosterior)
            self._posterior.follow(table)
            return pulls
        self._start(table, keys)
        if isinstance(self._posterior, PrimalPosterior):
            begun: RecentCache[PrimalPosterior] = self._context.sharing.get(
                ("begun", self._members), partial(RecentCache, 1)
            )
            self._posterior = begun.get(keys, self._begun).copied()
            return []
        return self._seen

    def _meet(self, pulls: Sequence[Pull], posterior: TaskwisePosterior) -> None:
        """Know K_z of agents that are heard for the first time."""
        unheard = {pull.agent: pull.context for pull in pulls if pull.agent not in self._heard}
        if unheard:
            self._heard |= set(unheard)
            self._contexts[list(unheard)] = np.array(list(unheard.values()))
            assert self._network is not None
            assert not isinstance(self._network, Mmd)
            posterior.follow(self._network(self._contexts, self._contexts))

    def _taskwise(self) -> TaskwisePosterior:
        """With what all agents know of tasks, where they share their work."""
        context, config = self._context, self._config
        assert isinstance(config.kernel, Linear)
        features = ArmFeatures(config.kernel, context.dimension).count
        common = context.sharing.get("tasks", lambda: TasksInCommon(context.agents, features, config.lam))
        return TaskwisePosterior(
            config.kernel,
            context.dimension,
            config.lam,
            context.agents,
            context.index,
            common if context.sharing.on else None,
        )

    def _begun(self) -> PrimalPosterior:
        """The posterior that has just been started, with all that is known."""
        self._add(self._seen)
        assert isinstance(self._posterior, PrimalPosterior)
        return self._posterior

    def _similarities(self) -> FloatArray:
        assert isinstance(self._network, Mmd)
        kernel = self._config.kernel if self._network.kernel is None else self._network.kernel
        means = self._context.sharing.get("pair means", lambda: PairMeans(kernel, self._context.agents))
        pulls: dict[int, list[Pull]] = {}
        for pull in self._seen:
            pulls.setdefault(pull.agent, []).append(pull)
        seen = {
            agent: (tuple(pull.trial for pull in own), np.array([pull.point for pull in own]))
            for agent, own in pulls.items()
        }
        return similarities(means, seen, self._context.agents, self._network.sigma, self._network.mmd_power)

    def _keys(self) -> list[tuple[int, int]]:
        return [(pull.trial, pull.agent) for pull in self._seen]

    def _start(self, network: Any, first: bytes) -> None:
        """Begin a posterior with the kernel K_z ``network``; ``first``: the keys seen, if it will be given them."""
        config, dimension = self._config, self._context.dimension
        composition = config.composition if isinstance(config, WithTasks) else "product"
        self._augmented = augmented(
            config.kernel, network, len(self._task), dimension, composition, config.arm_similarity
        )
        if self.primal():
            assert isinstance(config.kernel, Linear)
            kernel: Kernel | None = Table(network, 0) if isinstance(network, np.ndarray) else network
            self._posterior = PrimalPosterior(config.kernel, kernel, dimension, config.lam, composition == "sum")
        elif isinstance(config.posterior, Nystrom):
            self._posterior = GrowingNystrom(self._augmented.kernel, config.lam, config.posterior.size)
        elif repeats(self._context):
            self._posterior = self._counting(self._augmented, first)
        else:
            self._posterior = self._canonical(self._augmented, first)

    def _counting(self, kernel: Augmented, first: bytes) -> RepeatsPosterior:
        """With the factors of all agents who accept the same observations, and estimate K_z from the same ones."""
        kept: WeakCache[Factors] = self._context.sharing.get(("factors", self._members), WeakCache)
        return RepeatsPosterior(kernel.kernel, self._config.lam, kept.get(first, lambda: Factors(1)))

    def _canonical(self, kernel: Augmented, first: bytes) -> CanonicalPosterior:
        """On the log that all agents share who accept the same observations, and began with the same ones."""
        logs: WeakCache[SharedLog] = self._context.sharing.get(("logs", self._members), WeakCache)
        log = logs.get(first, lambda: SharedLog(kernel.kernel, self._config.lam))
        if first:
            log.extend(0, *self._arrays(self._seen)[1:])
        return CanonicalPosterior(log, self._members, self._keys() if first else ())

    def _arrays(self, pulls: Sequence[Pull]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tasks (n, s), augmented points (n, .) and rewards (n,) of observations."""
        tasks = np.array([self._task_of(pull.agent, pull.context) for pull in pulls])
        X = np.array([pull.point for pull in pulls])
        places = np.array([pull.place or 0 for pull in pulls])
        return tasks, self._augmented.points(tasks, X, places), np.array([pull.reward for pull in pulls])

    def _add(self, pulls: Sequence[Pull]) -> None:
        posterior = self._posterior
        if isinstance(posterior, CanonicalPosterior):
            if pulls is not self._seen:  # those that a posterior begins with are in its log
                posterior.add([(pull.trial, pull.agent) for pull in pulls], lambda: self._arrays(pulls)[1:])
            return
        if isinstance(posterior, TaskwisePosterior):
            numbers, trials = np.array([(pull.agent, pull.trial) for pull in pulls]).T
            X, y = np.array([pull.point for pull in pulls]), np.array([pull.reward for pull in pulls])
            posterior.add(numbers, trials, X, y)
            return
        tasks, P, y = self._arrays(pulls)
        if isinstance(posterior, PrimalPosterior):
            posterior.add(tasks, np.array([pull.point for pull in pulls]), y)
        else:
            posterior.add(P, y)
