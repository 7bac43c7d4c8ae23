"""The server of DisKernelUCB (Li et al. 2022): sends every agent the new points that it lacks."""

from __future__ import annotations

import numpy as np

from agents.messages import MissingPoints, NewPoints
from server.synchronisation import Gathering, SynchronousServer
from simulator.core.message import Message
from simulator.core.node import Address, Outbox, Setting


class DisKernelUCBServer(SynchronousServer):
    """Waits for everyone's new points, then distributes them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._news: Gathering[NewPoints] = Gathering(setting.agents)

    def collect(self, message: Message, source: Address) -> Outbox:
        """Line up the points of all agents by agent; an agent lacks all but its own."""
        assert isinstance(message, NewPoints)
        self.applied += message.pulls
        if not self._news.add(source, message):
            return []
        news = self._news.take()
        self.finish()
        points = np.concatenate([item.points for item in news])
        rewards = np.concatenate([item.rewards for item in news])
        ends = np.cumsum([len(item.rewards) for item in news]).tolist()
        outbox: Outbox = []
        for agent, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            missing = MissingPoints(
                points=np.concatenate([points[:start], points[end:]]),
                rewards=np.concatenate([rewards[:start], rewards[end:]]),
                before=start, version=self.version, round=self.version,
            )  # fmt: skip
            outbox.append((agent, missing))
        return outbox
