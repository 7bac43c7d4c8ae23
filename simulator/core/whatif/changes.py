"""What a what-if run changes: the way of single messages, and the speed of single agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coband.simulator.core.nodes.node import Address
from coband.simulator.core.packet import Packet
from coband.simulator.core.randomness.distributions import BaseDistribution, is_zero
from coband.simulator.core.whatif.addresses import AddressBook

Key = tuple[Address, Address, int]
"""A message: its source, its destination, and its number among the messages of this pair, from 1."""

REASON = "what if"
"""Reason of a drop that a what-if run has made."""


def key_of(packet: Packet) -> Key:
    """The message that a packet carries."""
    return packet.source, packet.destination, packet.number


@dataclass(frozen=True)
class MessageChange:
    """What happens to one message.

    Attributes:
        lost: the first copy of it that reaches its destination is lost there.
        for_good: the other copies as well, and a reliable transport gives it up at its first timeout.
        delay: simulated time by which every copy arrives later.
    """

    lost: bool = False
    for_good: bool = False
    delay: float = 0.0

    def __or__(self, other: MessageChange) -> MessageChange:
        """Both changes of one message."""
        return MessageChange(self.lost or other.lost, self.for_good or other.for_good, self.delay + other.delay)


@dataclass(frozen=True)
class AgentChange:
    """How fast one agent is; None: as the scenario says.

    Attributes:
        speed: its compute and handling times are divided by it; it is no straggler then and has no slow periods.
        compute: time of a turn at speed 1.
        handling: time of handling a message at speed 1.
    """

    speed: float | None = None
    compute: BaseDistribution | None = None
    handling: BaseDistribution | None = None


@dataclass(frozen=True)
class WhatIf:
    """A what-if run, as the engine sees it.

    Attributes:
        book: where each draw is found; a book that is still written makes the run the original.
        messages: the messages that are changed.
        agents: the agents that are changed.
    """

    book: AddressBook
    messages: Mapping[Key, MessageChange] = field(default_factory=dict)
    agents: Mapping[Address, AgentChange] = field(default_factory=dict)

    def of_agent(self, agent: Address) -> AgentChange:
        """What changes about an agent."""
        return self.agents.get(agent, AgentChange())

    @property
    def delays_turns(self) -> bool:
        """Whether turns of a changed agent may take time where others take none."""
        return any(change.compute is not None and not is_zero(change.compute) for change in self.agents.values())
