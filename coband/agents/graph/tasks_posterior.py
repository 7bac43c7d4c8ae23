"""What an agent knows about several agents' tasks: equation 9 of Dubey and Pentland 2020 ("Kernel Methods for
Cooperative Multi-Agent Contextual Bandits"), the posterior on its own pulls and those that it has accepted, and K_z
estimated from the arms seen of other agents (section 3.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter

import numpy as np

from coband.agents.graph.coop_config import Cooperative, Mmd, Nystrom, WithTasks, network_kernel
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, require_room
from coband.simulator.core.nodes.node import NodeContext, UnsupportedScenario
from coband.simulator.maths.kernels.mean_embeddings import PairMeans, similarities
from coband.simulator.maths.linalg.caches import WeakCache
from coband.simulator.maths.posteriors.choose_multitask import Multitask, factor_entries, multitask
from coband.simulator.maths.posteriors.observations import Key, Observations
from coband.simulator.maths.posteriors.protocol import MultitaskPosterior, learn, scores


class PullObservations(Observations):
    """Pulls, each column put together when it is first asked for: a log that has them already asks only for the keys.

    Args:
        pulls: by trial and agent; not changed as long as this is in use.
        by_agent: tasks are numbers of agents; else their network contexts, or nothing where pulls have none.
    """

    def __init__(self, pulls: Sequence[Pull], by_agent: bool) -> None:
        self.pulls, self.by_agent = pulls, by_agent

    def __len__(self) -> int:
        return len(self.pulls)

    @cached_property
    def points(self) -> FloatArray:
        return np.array([pull.point for pull in self.pulls])

    @cached_property
    def rewards(self) -> FloatArray:
        return np.array([pull.reward for pull in self.pulls])

    @cached_property
    def tasks(self) -> FloatArray:
        """Numbers of agents (n, 1), or network contexts (n, d_z), d_z = 0 where there are none."""
        if self.by_agent:
            return np.array([[float(pull.agent)] for pull in self.pulls])
        return np.array([() if pull.context is None else pull.context for pull in self.pulls])

    @cached_property
    def keys(self) -> list[Key]:
        return [(pull.trial, pull.agent) for pull in self.pulls]

    @cached_property
    def key_bytes(self) -> bytes:
        return super().key_bytes


class SomePulls(PullObservations):
    """Some of the pulls of a table, whose columns are cut out of its columns.

    Args:
        table: the pulls of several agents.
        rows: which of them.
    """

    def __init__(self, table: PullObservations, rows: Sequence[int]) -> None:
        self.by_agent = table.by_agent
        self._table, self._rows = table, np.array(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def pulls(self) -> Sequence[Pull]:  # type: ignore[override]
        """The pulls themselves, by trial and agent."""
        return [self._table.pulls[row] for row in self._rows.tolist()]

    @cached_property
    def keys(self) -> list[Key]:
        return [self._table.keys[row] for row in self._rows.tolist()]

    @cached_property
    def points(self) -> FloatArray:
        return self._table.points.take(self._rows, axis=0)

    @cached_property
    def rewards(self) -> FloatArray:
        return self._table.rewards.take(self._rows, axis=0)

    @cached_property
    def tasks(self) -> FloatArray:
        return self._table.tasks.take(self._rows, axis=0)


BY_TRIAL = attrgetter("trial", "agent")


class Similarities:
    """The estimate of one agent: made again every ``refresh`` trials, and when somebody is heard for the first time.

    Args:
        context: the agent's.
        method: how K_z is estimated.
        members: the agents whose pulls it accepts; those with the same members and pulls share the estimate.
    """

    def __init__(self, context: NodeContext, method: Mmd, members: tuple[int, ...]) -> None:
        config: Cooperative = context.config
        self._method, self._agents = method, context.agents
        kernel = config.kernel if method.kernel is None else method.kernel
        self._means = context.sharing.get("pair means", lambda: PairMeans(kernel, context.agents))
        self._tables: WeakCache[FloatArray] = context.sharing.get(("similarities", members), WeakCache)
        self._seen: list[Pull] = []
        self._heard: set[int] = set()
        self._age = 0
        self.table: FloatArray = np.eye(context.agents)
        """K_z of all agents, (N, N); before the first estimate every agent is like itself alone."""

    def update(self, pulls: Sequence[Pull]) -> PullObservations | None:
        """Take in new pulls.

        Returns:
            All pulls seen so far, by trial and agent, if there is a new ``table``; else None.
        """
        self._age += 1
        senders = {pull.agent for pull in pulls}
        first_heard = not senders <= self._heard
        self._seen += pulls
        self._heard |= senders
        if self._age < self._method.refresh and not first_heard:
            return None
        self._age = 0
        self._seen.sort(key=BY_TRIAL)
        seen = PullObservations(self._seen, by_agent=True)
        self.table = self._tables.get(seen.key_bytes, self._estimate)
        return seen

    def _estimate(self) -> FloatArray:
        pulls: dict[int, list[Pull]] = {}
        for pull in self._seen:
            pulls.setdefault(pull.agent, []).append(pull)
        seen = {
            agent: (tuple(pull.trial for pull in own), np.array([pull.point for pull in own]))
            for agent, own in pulls.items()
        }
        return similarities(self._means, seen, self._agents, self._method.sigma, self._method.mmd_power)


POINTS_PER_TASK = 3
"""Points of a dictionary for each task, below which the posterior hardly tells tasks apart."""


class Learnt(ABC):
    """What an agent has learnt from its own pulls and those that it has accepted.

    Attributes:
        observations: how many it knows.
        tells_context: whether other agents need the agent's network context.
    """

    tells_context = False

    def __init__(self) -> None:
        self.observations = 0

    def learn(self, pulls: Sequence[Pull]) -> None:
        """Take in new pulls, all at once."""
        self.observations += len(pulls)
        self._take(sorted(pulls, key=BY_TRIAL))

    @abstractmethod
    def _take(self, pulls: Sequence[Pull]) -> None:
        """Take in new pulls, by trial and agent."""

    @abstractmethod
    def predict(self, arms: ArmSet) -> tuple[FloatArray, FloatArray]:
        """Mean and variance sigma^2/lam of the agent's own task at n arms, each (n,)."""

    def dictionary_suffices(self, agents: int) -> bool | None:
        """Whether its Nystrom dictionary has 3 points for each task of so many agents; None without a dictionary."""
        return None


class OnTasks(Learnt):
    """A posterior on the tasks of several agents, which are their numbers.

    Attributes:
        posterior: the posterior.
    """

    def __init__(self, posterior: MultitaskPosterior) -> None:
        super().__init__()
        self.posterior = posterior

    def _take(self, pulls: Sequence[Pull]) -> None:
        self.posterior.update(PullObservations(pulls, by_agent=True))

    def predict(self, arms: ArmSet) -> tuple[FloatArray, FloatArray]:
        return self.posterior.predict(arms)


class Knowledge(OnTasks):
    """The posterior of equation 9, as ``maths.posteriors.choose_multitask`` chooses it.

    Args:
        context: the agent's.
        members: the agents whose pulls it accepts, itself among them, in ascending order.
    """

    def __init__(self, context: NodeContext, members: tuple[int, ...]) -> None:
        self.members = members
        self._setting, self._sharing = setting_of(context, members), context.sharing
        network = network_kernel(context.config)
        self._similarities = Similarities(context, network, members) if isinstance(network, Mmd) else None
        self.tells_context = self._setting.network is not None
        table = None if self._similarities is None else self._similarities.table
        super().__init__(multitask(self._setting, self._sharing, table))

    def _take(self, pulls: Sequence[Pull]) -> None:
        observations = self.in_order(pulls)
        if self._takes(observations):
            self.posterior.update(observations)

    def in_order(self, pulls: Iterable[Pull]) -> PullObservations:
        """Pulls in the order in which they are learnt, by trial and agent."""
        return PullObservations(sorted(pulls, key=BY_TRIAL), by_agent=self._setting.estimated)

    def starts(self, observations: PullObservations) -> bool:
        """Count new observations; whether the posterior has still to learn them."""
        self.observations += len(observations)
        return self._takes(observations)

    def _takes(self, observations: PullObservations) -> bool:
        """Where K_z changes with new pulls, all that is known is learnt again, and nothing is left to learn."""
        similarities = self._similarities
        seen = None if similarities is None else similarities.update(observations.pulls)
        if similarities is None or seen is None or self.posterior.follow(similarities.table):
            return True
        self.posterior = multitask(self._setting, self._sharing, similarities.table, seen)
        return False

    def dictionary_suffices(self, agents: int) -> bool | None:
        setting = self._setting
        if setting.dictionary is None or setting.form != "nystrom":
            return None
        return setting.dictionary >= POINTS_PER_TASK * (1 if setting.single else agents)


def learn_together(news: Sequence[tuple[Knowledge, Sequence[Pull]]]) -> None:
    """Each learns its new pulls; all columns are put together once, and what several learn alike is learnt once."""
    everything = news[0][0].in_order(set[Pull]().union(*(pulls for _, pulls in news)))
    row_of = {pull: row for row, pull in enumerate(everything.pulls)}
    latest: dict[tuple[int, ...], tuple[list[int], SomePulls]] = {}
    left: list[tuple[MultitaskPosterior, Observations]] = []
    for knowledge, pulls in news:
        if pulls:
            members, rows = knowledge.members, sorted(map(row_of.__getitem__, pulls))
            alike = latest.get(members)
            if alike is None or alike[0] != rows:
                alike = latest[members] = rows, SomePulls(everything, rows)
            if knowledge.starts(alike[1]):
                left.append((knowledge.posterior, alike[1]))
    learn(left)


def scores_together(knowledge: Sequence[Knowledge], arm_sets: Sequence[ArmSet], widths: Sequence[float]) -> FloatArray:
    """Upper confidence bounds of each agent's own arms, one agent after the other; -inf where it cannot be the best."""
    return scores([one.posterior for one in knowledge], arm_sets, np.array(widths))


def setting_of(context: NodeContext, members: tuple[int, ...]) -> Multitask:
    """What decides about the posterior of an agent that accepts the pulls of ``members``.

    Raises:
        UnsupportedScenario: agents have no network contexts, which K_z is a function of.
    """
    config: Cooperative = context.config
    network = network_kernel(config)
    task = np.array([float(context.index)]) if isinstance(network, Mmd) else np.empty(0)
    if network is not None and not isinstance(network, Mmd):
        if context.network_context is None:
            raise UnsupportedScenario(
                "network_kernel needs a problem that tells agents their contexts (problem.kind: network); with others "
                "use network_kernel: mmd, or null"
            )
        task = context.network_context
    return Multitask(
        kernel=config.kernel,
        network=None if isinstance(network, Mmd) else network,
        estimated=isinstance(network, Mmd),
        composition=config.composition if isinstance(config, WithTasks) else "product",
        lam=config.lam,
        dimension=context.dimension,
        agents=context.agents,
        members=members,
        own=context.index,
        task=task,
        dictionary=config.posterior.size if isinstance(config.posterior, Nystrom) else None,
        domain=None if context.domain is None else len(context.domain),
        horizon=context.horizon,
    )


def require_room_for_factors(context: NodeContext, groups: Sequence[tuple[int, ...]], hops: int) -> None:
    """Refuse exact factors that this machine cannot hold.

    Agents with the same group share a factor, but not where they estimate K_z from arms that reach them at different
    trials: then their kernels differ.

    Args:
        context: of any of the agents.
        groups: whose observations each agent accepts.
        hops: how far messages go.

    Raises:
        TooLarge: there is no room for them.
    """
    if context.horizon is None or isinstance(context.config.posterior, Nystrom):
        return
    known = setting_of(context, groups[context.index])
    entries, rows = factor_entries(known, groups, context.sharing.on and (hops == 1 or not known.estimated))
    if rows:
        require_room(
            f"exact posteriors of {len(rows)} groups of agents with up to {max(rows):,} observations",
            entries,
            instead="use posterior: {kind: nystrom, size: 512}, fewer turns, or a sparser graph",
        )
