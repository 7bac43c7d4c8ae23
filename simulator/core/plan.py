"""What determines a run: the plan of agents, schedule, network and levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from coband.simulator.core.clock.schedule import Schedule
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.randomness.distributions import is_zero
from coband.simulator.core.wire.config import MessagesConfig

Ties = Literal["random", "first"]
"""Which of several arms with exactly the same score an agent pulls: one drawn uniformly, or the first."""


@dataclass(frozen=True)
class Plan:
    """Everything that determines one run but the algorithm, its parameters and the world."""

    agents: AgentsConfig
    schedule: Schedule
    network: NetworkConfig
    server: ServerConfig = field(default_factory=ServerConfig)
    trace: Literal["off", "protocol", "full"] = "protocol"
    checks: Literal["cheap", "full"] = "cheap"
    share: bool = True
    ties: Ties = "random"
    messages: MessagesConfig = field(default_factory=MessagesConfig)
    cohorts: bool = True
    """Whether turns are taken and prepared together where that changes nothing; False: each by itself."""

    @property
    def intermittent(self) -> bool:
        """True when a node can be down."""
        return self.agents.intermittent or bool(self.network.outages)

    @property
    def ideal(self) -> bool:
        """True when no link delays or loses anything and all nodes are up."""
        return self.network.ideal and not self.intermittent

    @property
    def walks_hops(self) -> bool:
        """Whether every copy of a message travels by itself; always so in a star."""
        mode = self.network.local.mode
        return self.network.graph is None or mode == "hop_by_hop" or (mode == "auto" and not self.ideal)

    @property
    def delays(self) -> bool:
        """True when links, turns or the handling of messages take time, or a node can be down."""
        times = (self.agents.compute, self.agents.handling, self.server.handling)
        return not (self.ideal and all(map(is_zero, times)))
