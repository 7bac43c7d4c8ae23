"""What bandits with K arms have in common: the number and the sum of the rewards of each arm."""

from __future__ import annotations

from abc import abstractmethod

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
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.counts, self.sums = np.zeros((2, 0 if context.domain is None else len(context.domain)))
        self.turns = self.known = 0

    @abstractmethod
    def scores(self) -> FloatArray:
        """The score of each arm, (K,), once all were pulled."""

    @property
    def pulls_in_model(self) -> int | None:
        return self.known

    def choose(self, arms: ArmSet) -> int:
        if len(self.counts) != len(arms):  # alone, an agent may have arms of its own, which it sees at its first turn
            self.counts, self.sums = np.zeros((2, len(arms)))
        return self.decide()

    def decide(self) -> int:
        """The arm to pull."""
        fewest = int(self.counts.argmin())
        return self.best(self.scores()) if self.counts[fewest] else fewest

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
