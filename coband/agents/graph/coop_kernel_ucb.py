"""Coop-KernelUCB, Eager-KernelUCB and naive cooperation: "Kernel Methods for Cooperative Multi-Agent Contextual
Bandits" (Dubey and Pentland 2020), Algorithms 1 and 2 and section 5.
As printed: `tests/oracles/coop_kernel_ucb.py`. Next: `local_agent.py`, `tasks_posterior.py`, `messages/sharing.py`.

Deviations from the printed text:

* line 11 prints 1/K + lambda for the first inverse; 1/(K + lambda) is meant, as in line 27;
* all observations of a trial enter the factor at once, in the order (trial, agent), which changes no value;
* a minimal clique cover takes exponential time to find; the parameter ``cover`` says which one is taken
  (``maths.graphs.covers``);
* sections 1 and 3.1 disagree about when a pull can be used; the parameter ``delay`` has both readings.

Upper confidence bounds lie beta sigma above f_hat, with the sigma of eq. 9, not divided by sqrt(lam). All widths take
in everything that the agent has learnt, whoever pulled it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from coband.agents.alone.kernel_ucb import igp_beta
from coband.agents.graph.coop_config import Cooperative, NaiveCoop, WithCliques, WithTasks
from coband.agents.graph.local_agent import Groups, LocalAgent
from coband.agents.graph.tasks_posterior import (
    Knowledge,
    OnTasks,
    learn_together,
    require_room_for_factors,
    scores_together,
)
from coband.agents.messages.sharing import Pull
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.node import NodeContext
from coband.simulator.maths.graphs.covers import clique_cover, power_graph
from coband.simulator.maths.kernels.library import Linear
from coband.simulator.metrics import Metric

NEARLY_ALL = 0.8
"""Share of the agents from which on one clique, or as many cliques, are worth a warning."""


def width_of(config: Cooperative, knowledge: OnTasks, agents: int) -> float:
    """sqrt(lam) beta at a turn of an agent, one of ``agents``: the factor before sigma / sqrt(lam).

    constant: beta = eta / sqrt(lam). lemma_1: beta_(v,t) of Lemma 1. igp_ucb: beta_t of IGP-UCB. paper: the naive
    cooperation of section 5, IGP-UCB with a kernel, and with the linear one LinUCB, whose factor eta is constant.
    """
    rule = config.width if isinstance(config, WithTasks | NaiveCoop) else "constant"
    if rule == "paper":
        rule = "constant" if isinstance(config.kernel, Linear) else "igp_ucb"
    if rule == "constant":
        return config.eta
    log_det = knowledge.posterior.log_det
    if rule == "igp_ucb":
        beta = igp_beta(config.norm, config.sub_gaussian, config.delta, 0.5 * log_det, config.lam)
    else:
        determinant = log_det + knowledge.observations * max(0.0, math.log(config.lam))
        beta = lemma_1(config.norm, config.sub_gaussian, config.delta, agents, determinant, config.lam)
    return math.sqrt(config.lam) * beta


def lemma_1(norm: float, sub_gaussian: float, delta: float, agents: int, log_det: float, lam: float) -> float:
    """beta_(v,t) = B + R sqrt(ln(det(lam I + K_(v,t)) / delta^2) + 2 ln V), Lemma 1 of Dubey and Pentland 2020.

    The lemma prints sigma^2 before it, where sigma is meant (eq. 21). It is proved for lam = 1 + eta; with lam < 1 R is
    divided by sqrt(lam) and the determinant is that of I + K / lam (see `coband.agents.alone.kernel_ucb.igp_beta`).

    Args:
        norm: B, a bound on the norm of F.
        sub_gaussian: R of the noise.
        delta: all bounds of all agents hold with probability 1 - delta.
        agents: V.
        log_det: ln det(lam I + K_(v,t)), with lam < 1 ln det(I + K_(v,t) / lam).
        lam: the ridge parameter.
    """
    return norm + sub_gaussian * math.sqrt((log_det - 2.0 * math.log(delta) + 2.0 * math.log(agents)) / min(1.0, lam))


class EagerKernelUCB(LocalAgent):
    """Algorithm 2: kernel UCB on all observations that reach the agent."""

    knowledge: Knowledge

    def __init__(self, context: NodeContext) -> None:
        self.config: Cooperative = context.config
        super().__init__(context)
        self._late = self.config.delay == "d"

    def _knowledge(self, groups: Groups) -> Knowledge:
        if self.context.index == 0:
            require_room_for_factors(self.context, groups, self.hops)
        return Knowledge(self.context, self.members)

    def choose(self, arms: ArmSet) -> int:
        """Lines 4-8: at random first, then the arm with the largest f_hat + beta sigma, beta = eta / sqrt(lambda)."""
        self.trial += 1
        self._learn()
        if self.trial == 1:
            return int(self.context.rng.integers(len(arms)))
        mean, variance = self.knowledge.predict(arms)
        return self.best(mean + self._width * np.sqrt(variance))

    @property
    def _width(self) -> float:
        return width_of(self.config, self.knowledge, self.context.agents)

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        """The same for several agents; those that know the same solve for all their arms at once."""
        if not all(agent.trial for agent in agents):
            return super().choose_together(agents, arm_sets)
        for agent in agents:
            agent.trial += 1
        learn_together([(agent.knowledge, agent._taken()) for agent in agents])
        widths = [agent._width for agent in agents]
        scores = scores_together([agent.knowledge for agent in agents], arm_sets, widths)
        return cls.best_together(agents, scores, [len(arms) for arms in arm_sets])

    def _pull(self, arms: ArmSet, arm: int, reward: float) -> Pull:
        return Pull(
            trial=self.trial,
            agent=self.context.index,
            point=arms.features[arm],
            reward=reward,
            context=self.context.network_context if self.knowledge.tells_context else None,
        )


class CoopKernelUCB(EagerKernelUCB):
    """Algorithm 1: observations of the agent's own clique in a clique cover of G_gamma alone."""

    def _groups(self) -> Groups:
        """Line 20: for each agent its clique."""
        assert isinstance(self.config, WithCliques)
        cover = clique_cover(power_graph(self.graph.distances, self.hops), self.config.cover)
        of_agent = {agent: clique for clique in cover for agent in clique}
        return tuple(of_agent[agent] for agent in range(self.graph.nodes))

    def report(self) -> dict[str, float | int]:
        """The cover, reported by agent 0."""
        found = super().report()
        if self.context.index:
            return found
        agents, cliques = self.context.agents, set(self.context.sharing.get("groups", self._groups))
        largest = max(map(len, cliques))
        return found | {
            "cliques": len(cliques),
            "largest_clique": largest,
            "cliques_divide": int(agents == 1 or largest < NEARLY_ALL * agents),
            "cliques_join": int(agents == 1 or len(cliques) < NEARLY_ALL * agents),
        }


MESSAGES = (MessageSize(Pull, "peer", "d + 3 + d_z", due=True),)
COUNTS = (ClosedForm("deliveries", "reach"), ClosedForm("transmissions", "copies"))
REACH = (
    Metric("hops", "links", "gamma: how many links far a message goes", locked=True),
    Metric("extra_delay", "trials", "trials that pulls wait beyond d - 1 before they are used (parameter delay)"),
    Metric(
        "dictionary_suffices",
        "0 or 1",
        "whether a Nystrom dictionary has 3 points or more for each task that an agent hears of",
        caution="the dictionary has less than 3 points for each task, so that agents know less than they hear; "
        "give posterior a larger size",
    ),
)
COVER = (
    Metric("cliques", "cliques", "cliques of the cover of G_gamma", locked=True),
    Metric("largest_clique", "agents", "agents in the largest clique of the cover"),
    Metric(
        "cliques_divide",
        "0 or 1",
        "0: one clique holds at least 80 % of the agents",
        caution="one clique holds at least 80 % of the agents, so Coop learns from nearly all that Eager learns from",
    ),
    Metric(
        "cliques_join",
        "0 or 1",
        "0: there are at least 80 % as many cliques as agents",
        caution="there are almost as many cliques as agents, so most of them learn from their own pulls alone",
    ),
)

ALGORITHM = Algorithm(
    name="coop_kernel_ucb",
    agent=CoopKernelUCB,
    server=None,
    config=WithCliques,
    summary="Kernel UCB on a graph: agents learn from the members of their clique, weighted by how alike tasks are.",
    reference="Dubey and Pentland 2020 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), Algorithm 1",
    needs=Needs(topologies=("graph",), reliable=False),
    knows=("horizon",),
    messages=MESSAGES,
    counts=COUNTS,
    metrics=(*REACH, *COVER),
    cites=("dubey2020kernel",),
    rate=(
        "regret Õ(Υ_z γ_T √(χ T)), where Υ_z is the rank of the agents' contexts and χ cliques cover the graph of "
        "agents within `hops` links (Dubey and Pentland 2020, corollary 1)"
    ),
)

EAGER = replace(
    ALGORITHM,
    name="eager_kernel_ucb",
    agent=EagerKernelUCB,
    config=WithTasks,
    summary="Kernel UCB on a graph: agents learn from whatever reaches them, weighted by how alike tasks are.",
    reference="Dubey and Pentland 2020 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), Algorithm 2",
    metrics=REACH,
    rate="",
)
NAIVE = replace(
    EAGER,
    name="naive_coop",
    config=NaiveCoop,
    summary="IGP-UCB or LinUCB on a graph: agents take what reaches them as if it were about their own task.",
    reference="Dubey and Pentland 2020, section 5 (Naive Cooperation)",
    messages=(MessageSize(Pull, "peer", "d + 3", due=True),),
)
