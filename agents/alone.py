"""What single-agent algorithms have in common: every agent learns from its own pulls and says nothing."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Agent, Arms, Outbox


class Alone(Agent):
    """Chooses the arm with the highest score."""

    @abstractmethod
    def scores(self, X: FloatArray) -> FloatArray:
        """The score of each arm of a turn, X (n, d), shape (n,)."""

    @abstractmethod
    def learn(self, arm: int, x: FloatArray, reward: float) -> None:
        """Take in the pull of the arm x (d,), the arm-th of the turn."""

    def choose(self, arms: Arms) -> int:
        """The arm with the highest score."""
        arm = int(np.argmax(self.scores(arms.features)))
        self._point = arms.features[arm]
        return arm

    def observe(self, arm: int, reward: float) -> Outbox:
        """Learn; say nothing."""
        self.learn(arm, self._point, reward)
        self.unshared += 1
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody ever writes."""
        raise AssertionError(f"single-agent algorithms have no messages, yet got {message.kind!r}")


def single(name: str, agent: type[Alone], config: type[Config], summary: str, reference: str, *cites: str) -> Algorithm:
    """The registry's entry of a single-agent algorithm."""
    return Algorithm(
        name=name,
        agent=agent,
        server=None,
        config=config,
        summary=summary,
        reference=reference,
        needs=Needs(topologies=("star", "graph"), reliable=False),
        counts=SILENT,
        cites=cites,
    )
