"""Coop-KernelUCB, Eager-KernelUCB and naive cooperation: "Kernel Methods for Cooperative Multi-Agent Contextual
Bandits" (paper 004), Algorithms 1 and 2 and section 5.

Deviations from the printed text:

* line 11 prints 1/K + lambda for the first inverse; 1/(K + lambda) is meant, as in line 27;
* all observations of a trial enter the factor at once, in the order (trial, agent), which changes no value;
* the clique cover is that of a greedy colouring of the complement of G_gamma (``maths.graphs.covers``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from coband.agents.cooperation import Cooperative, NaiveCoop, WithTasks, hops_of
from coband.agents.knowledge import Knowledge, Learnt, check_memory
from coband.agents.messages import Pull
from coband.agents.widths import width_of
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Agent, Neighbours, NodeContext, Outbox
from coband.simulator.maths.graphs.covers import clique_cover, power_graph
from coband.simulator.metrics import Metric

Groups = tuple[tuple[int, ...], ...]


class LocalAgent(Agent):
    """Tells all agents within gamma hops of its pulls, and learns from what reaches it of agents that it accepts."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.graph is not None
        self.graph = context.graph
        self.hops = hops_of(context.config.hops, self.graph.distances)
        groups = context.sharing.get("groups", self._groups)
        self.members = groups[context.index]
        self._accepted = frozenset(self.members)
        self._most_tasks = max(map(len, groups))
        self.knowledge: Learnt = self._knowledge(groups)
        self.trial = 0
        self._new: list[Pull] = []

    def _groups(self) -> Groups:
        """For each agent, the agents whose observations it accepts: all within reach."""
        return tuple(self.graph.ball(agent, self.hops) for agent in range(self.graph.nodes))

    @abstractmethod
    def _knowledge(self, groups: Groups) -> Learnt:
        """What it knows at first, nothing."""

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 9-18: keep the pull and send it to all within gamma hops."""
        pull = self._pull(arms, arm, reward)
        self._new.append(pull)
        self.unshared += 1
        return [(Neighbours(self.hops), pull)]

    def _pull(self, arms: ArmSet, arm: int, reward: float) -> Pull:
        own, point = self.context.index, arms.features[arm]
        return Pull(trial=self.trial, agent=own, point=point, reward=reward, context=None, place=None)

    def receive(self, message: Message, source: Address) -> Outbox:
        """Lines 19-23: put it in the buffer, if it is accepted."""
        assert isinstance(message, Pull)
        if message.agent in self._accepted:
            self._new.append(message)
        return []

    def receive_all(self, messages: Sequence[tuple[Address, Message]]) -> Outbox:
        """The same for all messages of a trial."""
        accepted = self._accepted
        self._new += [message for source, message in messages if source in accepted]  # type: ignore[misc]
        return []

    def prefetch(self, arms: ArmSet) -> None:
        """Learn what is new and prepare the arms together with other agents' ones."""
        if self.trial:
            self._learn()
            self.knowledge.prefetch(arms)

    def _learn(self) -> None:
        """Lines 24-33."""
        if self._new:
            new, self._new = self._new, []
            self.knowledge.learn(new)

    def report(self) -> dict[str, float | int]:
        """gamma, and whether a dictionary is large enough, reported by agent 0."""
        if self.context.index:
            return {}
        enough = self.knowledge.dictionary_suffices(self._most_tasks)
        return {"hops": self.hops, **({} if enough is None else {DICTIONARY_SUFFICES.name: int(enough)})}


class EagerKernelUCB(LocalAgent):
    """Algorithm 2: kernel UCB on all observations that reach the agent."""

    knowledge: Knowledge

    def __init__(self, context: NodeContext) -> None:
        self.config: Cooperative = context.config
        super().__init__(context)

    def _knowledge(self, groups: Groups) -> Knowledge:
        if self.context.index == 0:
            check_memory(self.context, groups, self.hops)
        return Knowledge(self.context, self.members)

    def choose(self, arms: ArmSet) -> int:
        """Lines 4-8: at random first, then the arm with the largest f_hat + beta sigma, beta = eta / sqrt(lambda)."""
        self.trial += 1
        self._learn()
        if self.trial == 1:
            return int(self.context.rng.integers(len(arms)))
        mean, variance = self.knowledge.predict(arms)
        width = width_of(self.config, self.knowledge, self.context.agents)
        return self.best(mean + width * np.sqrt(variance))

    def _pull(self, arms: ArmSet, arm: int, reward: float) -> Pull:
        return Pull(
            trial=self.trial,
            agent=self.context.index,
            point=arms.features[arm],
            reward=reward,
            context=self.context.network_context if self.knowledge.tells_context else None,
            place=arm if self.config.arm_similarity < 1.0 else None,
        )


class CoopKernelUCB(EagerKernelUCB):
    """Algorithm 1: observations of the agent's own clique in a clique cover of G_gamma alone."""

    def _groups(self) -> Groups:
        """Line 20: for each agent its clique."""
        cover = clique_cover(power_graph(self.graph.distances, self.hops))
        of_agent = {agent: clique for clique in cover for agent in clique}
        return tuple(of_agent[agent] for agent in range(self.graph.nodes))

    def report(self) -> dict[str, float | int]:
        """gamma and the number of cliques, reported by agent 0."""
        if self.context.index:
            return {}
        return {**super().report(), "cliques": len(set(self.context.sharing.get("groups", self._groups)))}


MESSAGES = (MessageSize(Pull, "peer", "d + 3 + d_z + (1 if arm_similarity < 1 else 0)"),)
COUNTS = (ClosedForm("deliveries", "reach"), ClosedForm("transmissions", "copies"))
HOPS = Metric("hops", "links", "gamma: how many links far a message goes", locked=True)
DICTIONARY_SUFFICES = Metric(
    "dictionary_suffices",
    "0 or 1",
    "whether a Nystrom dictionary has 3 points or more for each task that an agent hears of",
    caution="the dictionary has less than 3 points for each task, so that agents know less than they hear; "
    "give posterior a larger size",
)
CLIQUES = Metric("cliques", "cliques", "cliques of the cover of G_gamma", locked=True)
NEEDS = Needs(topologies=("graph",), reliable=False)

ALGORITHM = Algorithm(
    name="coop_kernel_ucb",
    agent=CoopKernelUCB,
    server=None,
    config=WithTasks,
    summary="Kernel UCB on a graph: agents learn from the members of their clique, weighted by how alike tasks are.",
    reference="paper 004 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), Algorithm 1",
    needs=NEEDS,
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(HOPS, CLIQUES, DICTIONARY_SUFFICES),
    cites=("dubey2020kernel",),
)

EAGER = Algorithm(
    name="eager_kernel_ucb",
    agent=EagerKernelUCB,
    server=None,
    config=WithTasks,
    summary="Kernel UCB on a graph: agents learn from whatever reaches them, weighted by how alike tasks are.",
    reference="paper 004 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), Algorithm 2",
    needs=NEEDS,
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(HOPS, DICTIONARY_SUFFICES),
    cites=("dubey2020kernel",),
)

NAIVE = Algorithm(
    name="naive_coop",
    agent=EagerKernelUCB,
    server=None,
    config=NaiveCoop,
    summary="IGP-UCB or LinUCB on a graph: agents take what reaches them as if it were about their own task.",
    reference="paper 004, section 5 (Naive Cooperation)",
    needs=NEEDS,
    messages=(MessageSize(Pull, "peer", "d + 3 + (1 if arm_similarity < 1 else 0)"),),
    counts=COUNTS,
    metrics=(HOPS, DICTIONARY_SUFFICES),
    cites=("dubey2020kernel",),
)
