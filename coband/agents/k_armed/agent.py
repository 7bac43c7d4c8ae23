"""What bandits with K arms have in common: the number and the sum of the rewards of each arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, NodeContext, Outbox


class KArmed(Agent):
    """Chooses an arm that was never pulled, in their order, and later the one with the highest score.

    Attributes:
        counts: how often each arm was pulled, as far as the agent knows, (K,).
        sums: of the rewards of each arm, (K,).
        turns: the agent's own pulls so far.
        known: all pulls that it has learnt.
        neighbours: on a graph.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: Any = context.config
        self.neighbours = () if context.graph is None else context.graph.adjacency[context.index]
        self.counts, self.sums = np.zeros((2, 0 if context.domain is None else len(context.domain)))
        self.turns = self.known = 0

    def scores(self) -> FloatArray:
        """The score of each arm, (K,), once all were pulled."""
        raise NotImplementedError

    @property
    def pulls_in_model(self) -> int | None:
        return self.known

    def choose(self, arms: ArmSet) -> int:
        if len(self.counts) != len(arms):  # alone, an agent may have arms of its own, which it sees at its first turn
            self.counts, self.sums = np.zeros((2, len(arms)))
        return self.decide()

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        same = agents[0].context.domain is not None  # else agents may not have as many arms as others
        return cls.decide_together(agents) if same else super().choose_together(agents, arm_sets)

    def decide(self) -> int:
        """The arm to pull."""
        fewest = int(self.counts.argmin())
        return self.best(self.scores()) if self.counts[fewest] else fewest

    @classmethod
    def decide_together(cls, agents: Sequence[Self]) -> list[int]:
        """The arm that each of several agents pulls, all of which have K arms."""
        return [agent.decide() for agent in agents]

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        self.turns += 1
        self.learn(arm, reward)
        return []

    def learn(self, arm: int, reward: float) -> None:
        """Take in a pull."""
        self.known += 1
        self.counts[arm] += 1.0
        self.sums[arm] += reward

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody writes to an agent that is alone."""
        raise AssertionError(f"{type(self).__name__} has no messages, yet got {message.kind!r}")


class KArmedUcb(KArmed):
    """UCB1 on all that it knows: s/n + 2 sd sqrt(alpha ln(t) / n), t the sum of n over arms."""

    def _factor(self) -> float:
        return float(2.0 * self.config.sd * math.sqrt(self.config.alpha * math.log(self.known)))

    def scores(self) -> FloatArray:
        scores: FloatArray = self.sums / self.counts + self._factor() / np.sqrt(self.counts)
        return scores

    @classmethod
    def decide_together(cls, agents: Sequence[Self]) -> list[int]:
        counts = np.array([agent.counts for agent in agents])
        if not counts.all():
            return super().decide_together(agents)
        factors = np.array([[agent._factor()] for agent in agents])
        scores = np.array([agent.sums for agent in agents]) / counts + factors / np.sqrt(counts)
        return cls.best_together(agents, scores, [counts.shape[1]] * len(agents))
