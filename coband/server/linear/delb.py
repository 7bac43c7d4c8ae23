"""The server of DELB (Wang et al. 2020): least squares on all means of a phase, and the next phase's pulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.phases import DealtMeans, PhaseOrder
from coband.server.common.ends_together import InStepServer
from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext
from coband.simulator.maths.exploration.g_optimal import WHOLE, eliminated


class DealtServer(InStepServer):
    """A server that knows the arms, and what its agents pull of those that are left.

    Attributes:
        active: arms that are left, ascending.
    """

    noted: ClassVar[Mapping[str, str]] = {"apply": "arms left"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.domain is not None
        self.config, self.X = context.config, context.domain.features
        self.active: IndexArray = np.arange(len(self.X))

    def leave(self, active: IndexArray) -> None:
        """A phase has ended with these arms."""
        self.active = active
        self.note("apply", version=self.rounds, round=self.rounds, value=len(active))


class DelbServer(DealtServer):
    """Sees means of rewards."""

    hears = (DealtMeans,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._dealt = self._last = self.config.first(context)
        self._moment = np.zeros(context.dimension)
        self._orders = 0

    def conclude(self, found: Mapping[Address, DealtMeans]) -> None:
        """Theta, the arms that are left, and what to pull."""
        V = np.zeros((self.context.dimension, self.context.dimension))
        self._moment, self._last = np.zeros(self.context.dimension), self._dealt
        for (arms, counts), message in zip(self._dealt, found.values(), strict=True):
            rows = self.X[arms]
            V += (rows.T * counts) @ rows
            self._moment += (counts * message.means) @ rows
        theta = np.linalg.pinv(V, rcond=WHOLE, hermitian=True) @ self._moment
        self.rounds += 1
        self.leave(eliminated(self.X, self.active, theta, self.rounds))
        self._dealt = self.config.deal(self.context, self.active, self.rounds + 1)
        for agent, (arms, counts) in enumerate(self._dealt):
            self._orders += len(arms)
            order = PhaseOrder(theta=theta, arms=arms, counts=counts, version=self.rounds, round=self.rounds)
            self.tell(agent, order)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """sum m(x) r(x) x is that of the last phase's means."""

        def part(agent: Address, one: DealtMeans) -> FloatArray:
            arms, counts = self._last[agent]
            return np.asarray((counts * one.means) @ self.X[arms])

        return self.resummed("sum m(x) r(x) x", self._moment, uploads, DealtMeans, part)

    def report(self) -> dict[str, float | int]:
        """What has been sent, in closed form."""
        return {"arms_dealt": self._orders}
