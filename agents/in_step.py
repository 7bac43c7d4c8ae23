"""Agents whose epochs or rounds end for all of them together or not at all; ``server.in_step`` is the server's side.

Elimination needs the numbers of all agents. Where those of one cannot be had, exchanging ends for good and for
everybody: each agent goes on alone with what it knows.
"""

from __future__ import annotations

from abc import abstractmethod

from coband.agents.messages.synchronisation import SyncAbandoned
from coband.simulator.core.algorithm import MessageSize
from coband.simulator.core.nodes.node import Address, Client
from coband.simulator.core.talks import Talks, on

PARTING = (
    MessageSize(SyncAbandoned, "up", "0", "from an agent that has to go on alone"),
    MessageSize(SyncAbandoned, "down", "0", "to all, when exchanging has to end"),
)


class InStepClient(Talks, Client):
    """What such agents have in common.

    Attributes:
        alone: exchanging has ended for good.
    """

    alone: bool = False

    @on(SyncAbandoned)
    def abandoned(self, message: SyncAbandoned, source: Address) -> None:
        """Somebody goes on alone."""
        self.part()
        self.end()

    def part(self) -> None:
        """Go on alone, unless that is so already."""
        if not (self.alone or self.done):
            self.alone = True
            self.leave()

    @abstractmethod
    def leave(self) -> None:
        """Wait for the others no longer, and tell them."""
