"""Running averages with neighbours: what all rules have in common that average something after each pull.

After its pull an agent v sends what it has of every arm, its *mass* x_v, to all neighbours. Before its next turn it
takes sum_u w_vu x_u in its place, over itself and its neighbours u, with what has come last from each since its last
turn: where messages overtake each other, that may be an older one. w_vu is of `averaging_matrix`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from coband.agents.k_armed.agent import KArmed
from coband.agents.messages.k_armed import Mass
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import NEIGHBOURS, Address, NodeContext, Outbox
from coband.simulator.maths.graphs.averaging import Weights, averaging_matrix


class AveragingConfig(Config):
    """Parameters of all rules that average."""

    weights: Weights = Field(default="max_degree")
    """What a link weighs: metropolis 1 / (1 + max(d_v, d_u)), max_degree 1 / (1 + the largest degree), neighbours 1 /
    (1 + d_v), n 1 / N."""
    missing: Literal["own", "last", "reweigh"] = "own"
    """What takes the place of a neighbour that was not heard since the last turn: own, the agent's own value; last, the
    last one that came from it, if any has; reweigh: nothing, the other weights are divided by their sum."""


class Averaging(KArmed):
    """An agent that averages with its neighbours after each pull.

    Attributes:
        mass: what is averaged, (m, K).
        heard: the last message of each neighbour that has come since the last turn, or ever (``missing: last``).
    """

    mass: FloatArray

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.graph is not None
        adjacency, config = context.graph.adjacency, context.config
        matrix = context.sharing.get(
            ("averaging", config.weights), lambda: averaging_matrix(adjacency, config.weights).tolist()
        )
        self.weights: list[float] = matrix[context.index]
        self.missing = config.missing
        self.heard: dict[Address, Mass] = {}

    @abstractmethod
    def pulled(self, arm: int, reward: float) -> None:
        """Add a pull to the mass."""

    @property
    def pulls_in_model(self) -> int | None:
        """None: what is averaged has pulls in part."""
        return None

    def choose(self, arms: ArmSet) -> int:
        return self.choose_together([self], [arms])[0]

    @classmethod
    def choose_together(cls, agents: Sequence[Self], arm_sets: Sequence[ArmSet]) -> list[int]:
        cls.mix(agents)
        return cls.decide_together(agents)

    def decide(self) -> int:
        """Each arm once, in their order, then the one with the highest score."""
        return self.turns if self.turns < len(self.counts) else self.best(self.scores())

    @classmethod
    def mix(cls, agents: Sequence[Self]) -> None:
        """Average with what has come since the last turn, in the order in which each has heard it."""
        heard = [agent.values_heard() for agent in agents]
        own = np.array([agent.mass for agent in agents])
        mixed = own.copy()
        if any(heard):
            values, weights = map(np.array, zip(*chain.from_iterable(heard), strict=True))
            who = np.repeat(np.arange(len(agents)), [len(one) for one in heard])
            values = values[:, : own.shape[1]]  # without m, which Dec-UCB also sends
            np.add.at(mixed, who, weights[:, None, None] * (values - own[who]))
        for agent, mass in zip(agents, mixed, strict=True):
            agent.mass = mass

    def values_heard(self) -> list[tuple[FloatArray, float]]:
        """What has come since the last turn, or ever (``missing: last``), and what it weighs."""
        found = [(message.values, self.weights[u]) for u, message in self.heard.items()]
        if self.missing == "reweigh":
            total = self.weights[self.context.index] + sum(weight for _, weight in found)
            found = [(values, weight / total) for values, weight in found]
        if self.missing != "last":
            self.heard.clear()
        return found

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        super().observe(arms, arm, reward)
        self.pulled(arm, reward)
        return [(NEIGHBOURS, self.message())]

    def message(self) -> Mass:
        return Mass(values=self.mass.copy())

    def receive(self, message: Message, source: Address) -> Outbox:
        return self.receive_all([(source, message)])

    def receive_all(self, messages: Sequence[tuple[Address, Any]]) -> Outbox:
        """What neighbours have; the last that comes counts."""
        self.heard.update(messages)
        return []


class AveragedMeans(Averaging):
    """An agent whose mass is z (1, K): with each pull its own mean of the arm changes, and z by as much."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.mass = np.zeros((1, len(self.counts)))

    def pulled(self, arm: int, reward: float) -> None:
        """z += own mean now - own mean before; counts and sums have the pull already."""
        n, s = self.counts[arm], self.sums[arm]
        self.mass[0, arm] += s / n - ((s - reward) / (n - 1.0) if n > 1 else 0.0)


NEEDS = Needs(topologies=("graph",), reliable=False, fixed_arms=True, prompt_rewards=True)
MESSAGES = (MessageSize(Mass, "peer", "2 * k", "to all neighbours", due=True),)
SCALARS = ClosedForm("peer_scalars", "2 * arms * transmissions")
COUNTS = (SCALARS, ClosedForm("transmissions", "copies"))
