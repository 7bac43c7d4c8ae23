"""K_z estimated from the arms seen of other agents (Dubey and Pentland 2020, "Kernel Methods for Cooperative
Multi-Agent Contextual Bandits", section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from coband.agents.cooperation import Cooperative, Mmd
from coband.agents.messages.sharing import Pull
from coband.agents.pulls import PullObservations
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.kernels.mean_embeddings import PairMeans, similarities
from coband.simulator.maths.linalg.caches import WeakCache

BY_TRIAL = attrgetter("trial", "agent")


class Similarities:
    """The estimate of one agent: made anew every ``refresh`` trials, and when somebody is heard for the first time.

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
