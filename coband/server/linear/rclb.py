"""The server of RCLB (Mitra et al. 2022): the median over agents of each arm's payoff, and the arms that stay.

A silent agent counts as one of those that may lie (ours), and is heard no more; what lies does not end
a phase, nor does what is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coband.agents.messages.phases import ActiveArms, PhaseEstimate
from coband.agents.messages.synchronisation import SyncAbandoned
from coband.server.linear.delb import DealtServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.exploration.g_optimal import WHOLE


class RclbServer(DealtServer):
    """Sees only estimates."""

    hears = (PhaseEstimate,)

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._dealt = self.config.first(context)[0]
        self._thetas = np.zeros((0, context.dimension))
        self._named = 0
        self._gone: set[Address] = set()
        self._heard: frozenset[Address] = frozenset()

    async def step(self) -> bool:
        """One phase; False if more agents are missing than may lie."""
        rest, spare = set(range(self.context.agents)) - self._gone, self.config.spare(self.context)
        found = await self.gather(None, reply=PhaseEstimate, to=rest, together=len(self._gone) >= spare)
        if len(self._gone | found.left.keys()) > spare:
            return False
        self._gone |= found.left.keys()
        self.conclude(found)
        return True

    def abandoned(self, message: SyncAbandoned, agent: Address) -> None:
        """An agent goes on alone, and the others without it if they can."""
        if len(self._gone | {agent}) > self.config.spare(self.context):
            super().abandoned(message, agent)
            return
        self._gone.add(agent)
        for question in [*self.talks.waits]:
            self.talks.leave_out(question, agent, "declined")

    def after_the_end(self, message: Message, agent: Address) -> SyncAbandoned | None:
        """Nor is there for an agent that the others go on without."""
        return self._end() if self.closed or agent in self._gone else None

    def conclude(self, found: Mapping[Address, PhaseEstimate]) -> None:
        """Medians, and the arms that are left."""
        self._heard, self._thetas = frozenset(found), np.array([message.theta for message in found.values()])
        arms, counts = self._dealt
        rows, left = self.X[arms], self.X[self.active]
        inverse = np.linalg.pinv((rows.T * counts) @ rows, rcond=WHOLE, hermitian=True)
        widest = np.einsum("ij,jk,ik->i", left, inverse, left).max()
        payoffs = np.median(self._thetas @ left.T, axis=0)
        self.rounds += 1
        deviation = self.config.sub_gaussian * float(np.sqrt(widest))
        threshold = self.config.threshold(self.context, self.rounds, deviation, len(self._gone))
        self.leave(self.active[payoffs.max() - payoffs <= threshold])
        self._named += len(self.active)
        self.tell(ALL_AGENTS, ActiveArms(arms=self.active, version=self.rounds, round=self.rounds))
        self._dealt = self.config.deal(self.context, self.active, self.rounds + 1)[0]

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Medians are those of the last phase's estimates."""
        kept, heard = self._thetas.sum(axis=0), [one for one in uploads if one[0] in self._heard]
        return self.resummed("the sum of estimates", kept, heard, PhaseEstimate, lambda agent, one: one.theta)

    def report(self) -> dict[str, float | int]:
        return {"arms_named": self._named}
