"""Coop-KernelUCB, Eager-KernelUCB and naive cooperation: "Kernel Methods for Cooperative Multi-Agent Contextual
Bandits" (paper 004), Algorithms 1 and 2 and section 5.

Deviations from the printed text:

* line 11 prints 1/K + lambda for the first inverse; 1/(K + lambda) is meant, as in line 27;
* all observations of a trial enter the factor at once, in the order (trial, agent), which changes no value;
* the clique cover is that of a greedy colouring of the complement of G_gamma (``maths.graphs.covers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from coband.agents.cooperation import Cooperative, WithTasks
from coband.agents.knowledge import Knowledge, check_memory, learn_together, predict_together
from coband.agents.messages import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Agent, Neighbours, NodeContext, Outbox
from coband.simulator.maths.graphs.covers import clique_cover, half_diameter, power_graph
from coband.simulator.metrics import Metric

Groups = tuple[tuple[int, ...], ...]


class EagerKernelUCB(Agent):
    """Algorithm 2: kernel UCB on all observations that reach the agent."""

    accepts: frozenset[Address]

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: Cooperative = context.config
        assert context.graph is not None
        self.graph = context.graph
        hops = self.config.hops
        self.hops = half_diameter(self.graph.distances) if hops == "half_diameter" else hops
        groups = context.sharing.get("groups", self._groups)
        if context.index == 0:
            check_memory(context, groups, self.hops)
        self.members = groups[context.index]
        self.accepts = frozenset(self.members)
        self.knowledge = Knowledge(context, self.members)
        self.trial = 0
        self._new: list[Pull] = []

    def _groups(self) -> Groups:
        """For each agent, the agents whose observations it accepts: all within reach."""
        return tuple(self.graph.ball(agent, self.hops) for agent in range(self.graph.nodes))

    def choose(self, arms: ArmSet) -> int:
        """Lines 4-8: at random first, then the arm with the largest f_hat + (eta / sqrt(lambda)) sigma."""
        self.trial += 1
        self._learn()
        if self.trial == 1:
            return int(self.context.rng.integers(len(arms)))
        return self.best(self._scores(*self.knowledge.predict(arms)))

    def _scores(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """f_hat + (eta / sqrt(lambda)) sigma."""
        scores: FloatArray = mean + self.config.eta * np.sqrt(variance)
        return scores

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        """The same for several agents; those that know the same solve for all their arms at once."""
        if not all(agent.trial for agent in agents):
            return super().choose_together(agents, arm_sets)
        for agent in agents:
            agent.trial += 1
        learn_together([(agent.knowledge, agent._taken()) for agent in agents])
        mean, variance = predict_together([agent.knowledge for agent in agents], arm_sets)
        return cls.best_together(agents, agents[0]._scores(mean, variance), [len(arms) for arms in arm_sets])

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 9-18: keep the pull and send it to all within gamma hops."""
        pull = self._pull(arms, arm, reward)
        self._new.append(pull)
        self.unshared += 1
        return [(Neighbours(self.hops), pull)]

    def _pull(self, arms: ArmSet, arm: int, reward: float) -> Pull:
        return Pull(
            trial=self.trial,
            agent=self.context.index,
            point=arms.features[arm],
            reward=reward,
            context=self.context.network_context if self.knowledge.tells_context else None,
            place=arm if self.config.arm_similarity < 1.0 else None,
        )

    def receive(self, message: Message, source: Address) -> Outbox:
        """Lines 19-23: put it in the buffer, if it is accepted."""
        assert isinstance(message, Pull)
        if message.agent in self.accepts:
            self._new.append(message)
        return []

    def receive_all(self, messages: Sequence[tuple[Address, Message]]) -> Outbox:
        """The same for all messages of a trial."""
        accepted = self.accepts
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
            self.knowledge.learn(self._taken())

    def _taken(self) -> list[Pull]:
        """What is new, which is new no longer."""
        new, self._new = self._new, []
        return new

    def report(self) -> dict[str, float | int]:
        """gamma, reported by agent 0."""
        return {"hops": self.hops} if self.context.index == 0 else {}


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
    metrics=(HOPS, CLIQUES),
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
    metrics=(HOPS,),
    cites=("dubey2020kernel",),
)

NAIVE = Algorithm(
    name="naive_coop",
    agent=EagerKernelUCB,
    server=None,
    config=Cooperative,
    summary="Kernel UCB on a graph: agents take what reaches them as if it were about their own task.",
    reference="paper 004, section 5 (Naive Cooperation)",
    needs=NEEDS,
    messages=(MessageSize(Pull, "peer", "d + 3 + (1 if arm_similarity < 1 else 0)"),),
    counts=COUNTS,
    metrics=(HOPS,),
    cites=("dubey2020kernel",),
)
