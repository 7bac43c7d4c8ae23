"""The server of RCLB (Mitra et al. 2022): the median over agents of each arm's payoff, and the arms that stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.phases import ActiveArms, PhaseEstimate
from coband.server.in_step import InStepServer
from coband.server.sums import sum_mismatch
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.exploration.dealing import WHOLE


class RclbServer(InStepServer):
    """Knows the arms and the designs; sees estimates alone.

    Attributes:
        active: arms that are left, ascending.
    """

    hears = (PhaseEstimate,)
    noted: ClassVar[Mapping[str, str]] = {"apply": "arms left"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.domain is not None
        self.config, self.X = context.config, context.domain.features
        self.active = np.arange(len(self.X))
        self._dealt = self.config.first(context)[0]
        self._thetas = np.zeros((0, context.dimension))
        self._named = 0

    async def step(self) -> bool:
        """One phase: when all estimates are here, medians, and the arms that are left."""
        found = await self.gather(None, reply=PhaseEstimate, together=True)
        if found.left:
            return False
        self._thetas = np.array([message.theta for message in found.values()])
        arms, counts = self._dealt
        rows, left = self.X[arms], self.X[self.active]
        inverse = np.linalg.pinv((rows.T * counts) @ rows, rcond=WHOLE, hermitian=True)
        widest = np.einsum("ij,jk,ik->i", left, inverse, left).max()
        payoffs = np.median(self._thetas @ left.T, axis=0)
        self.rounds += 1
        deviation = self.config.sub_gaussian * float(np.sqrt(widest))
        threshold = self.config.threshold(self.context, self.rounds, deviation)
        self.active = self.active[payoffs.max() - payoffs <= threshold]
        self._named += len(self.active)
        self.note("apply", version=self.rounds, round=self.rounds, value=len(self.active))
        self.tell(ALL_AGENTS, ActiveArms(arms=self.active, version=self.rounds, round=self.rounds))
        self._dealt = self.config.deal(self.context, self.active, self.rounds + 1)[0]
        return True

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Medians are those of the last phase's estimates."""
        last = [one.theta for _, one in uploads if isinstance(one, PhaseEstimate) and one.round == self.rounds]
        total = np.sum(last, axis=0) if last else np.zeros(self.context.dimension)
        yield from sum_mismatch("the sum of estimates", self._thetas.sum(axis=0), total, len(last))

    def report(self) -> dict[str, float | int]:
        """What has been sent."""
        return {"arms_named": self._named}
