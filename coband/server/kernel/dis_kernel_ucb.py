"""The server of DisKernelUCB (Li et al. 2022): sends each agent the new points of all other agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.synchronisation import MissingPoints, NewPoints
from coband.server.common.synchronisation import SynchronousServer
from coband.simulator.core.conversations import late
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations


class DisKernelUCBServer(SynchronousServer):
    """Waits for the new points of all agents, then distributes them.

    Attributes:
        distributed: number of points distributed so far.
    """

    each = (MissingPoints,)  # later ones do not repeat these points

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._late: list[list[NewPoints]] = [[] for _ in range(context.agents)]
        self.distributed = 0
        self._told = [(0, 0)] * context.agents  # the newest version that each agent was sent, and its points
        self._log = GrowingObservations(context.dimension)  # of all versions, where agents join

    async def synchronise(self) -> bool:
        """Line up the points in the order of the agents, and send each agent all points but its own.

        An agent that has joined since the last synchronisation is sent those of all earlier ones as well.
        """
        uploads = await self.asked(NewPoints)
        if not uploads:
            return False
        for agent, upload in uploads.items():
            self._late[agent].append(upload)
        of_agents, self._late = self._late, [[] for _ in self._late]
        points = np.concatenate([item.points for items in of_agents for item in items])
        rewards = np.concatenate([item.rewards for items in of_agents for item in items])
        ends = np.cumsum([sum(len(item.rewards) for item in items) for items in of_agents]).tolist()
        old, self.distributed = self.distributed, self.distributed + len(rewards)
        self.conclude()
        for agent, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
            version, known = self._told[agent]
            earlier = slice(known, old)
            others = MissingPoints(
                points=np.concatenate([self._log.points[earlier], points[:first], points[end:]]),
                rewards=np.concatenate([self._log.rewards[earlier], rewards[:first], rewards[end:]]),
                before=old - known + first,
                own=end - first,
                follows=version,
                version=self.version,
                round=self.round,
            )
            self.tell(agent, others)
            if self.context.is_there(agent):
                self._told[agent] = self.version, self.distributed
        if self.context.gone:  # one of them may join, and is sent all points then
            self._log.extend(Observations(points, rewards))
        return True

    @late(NewPoints)
    def keep(self, upload: NewPoints, agent: Address) -> None:
        """It joins the next synchronisation."""
        self._late[agent].append(upload)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """Every uploaded point was distributed or waits for the next synchronisation."""
        waiting = sum(len(item.rewards) for items in self._late for item in items)
        waiting += sum(len(item.rewards) for item in self.collected if isinstance(item, NewPoints))
        uploaded = sum(message.pulls for _, message in uploads)
        if uploaded != self.distributed + waiting:
            yield f"{uploaded} points were uploaded, {self.distributed} were distributed and {waiting} wait"
