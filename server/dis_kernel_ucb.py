"""The server of DisKernelUCB (Li et al. 2022): sends each agent the new points of all other agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.agents.messages.synchronisation import MissingPoints, NewPoints
from coband.server.synchronisation import SynchronousServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext
from coband.simulator.core.talks import late


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

    async def synchronise(self) -> bool:
        """Line up the points in the order of the agents, and send each agent all points but its own."""
        uploads = await self.asked(NewPoints)
        if not uploads:
            return False
        for agent, upload in uploads.items():
            self._late[agent].append(upload)
        of_agents, self._late = self._late, [[] for _ in self._late]
        points = np.concatenate([item.points for items in of_agents for item in items])
        rewards = np.concatenate([item.rewards for items in of_agents for item in items])
        ends = np.cumsum([sum(len(item.rewards) for item in items) for items in of_agents]).tolist()
        self.distributed += len(rewards)
        self.conclude()
        for agent, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
            others = MissingPoints(
                points=np.concatenate([points[:first], points[end:]]),
                rewards=np.concatenate([rewards[:first], rewards[end:]]),
                before=first,
                own=end - first,
                version=self.version,
                round=self.round,
            )
            self.tell(agent, others)
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
