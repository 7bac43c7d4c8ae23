"""What single-agent algorithms have in common: every agent learns from its own pulls and says nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import SILENT, Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, Outbox
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.metrics import Metric

EXPLORATION = {"nu": "0.001..3"}
"""What Thompson sampling and neural bandits are tuned by: from below the noise of most worlds to above theory."""


class Alone(Agent):
    """Chooses the arm with the highest score."""

    @abstractmethod
    def scores(self, arms: ArmSet) -> FloatArray:
        """The score of each of the n arms of a turn, (n,)."""

    @abstractmethod
    def learn(self, pull: Observations) -> None:
        """Take in a pull."""

    @property
    def pulls_in_model(self) -> int | None:
        return self.unshared

    def choose(self, arms: ArmSet) -> int:
        return self.best(self.scores(arms))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Learn; say nothing."""
        self.learn(Observations.pull(arms, arm, reward))
        self.unshared += 1
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody ever writes."""
        raise AssertionError(f"single-agent algorithms have no messages, yet got {message.kind!r}")


def single(
    name: str,
    agent: type[Alone],
    config: type[Config],
    summary: str,
    reference: str,
    cite: str,
    metrics: tuple[Metric, ...] = (),
    rate: str = "",
    search: Mapping[str, str] | None = None,
) -> Algorithm:
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
        metrics=metrics,
        cites=(cite,),
        rate=rate,
        search=search or {},
    )
