"""What determines a run: the world that agents face, and the plan of agents, schedule, network and levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.schedule import AnySchedule
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig


class World(Protocol):
    """What the engine asks of a problem (see ``problems.world``).

    A world of agents with different tasks also has ``contexts``, the network contexts z_v as rows (agents, d_z); each
    agent is told its own.

    A world with an attribute ``realised`` that is true gives regret against the noisy reward, which may be negative.
    """

    @property
    def dimension(self) -> int:
        """Arm dimension d."""

    @property
    def fixed_arms(self) -> bool:
        """Whether every turn of every agent offers the same arms."""

    def arms(self, agent: int, turn: int) -> FloatArray:
        """The (n, d) arm set of an agent's own turn."""

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """(noisy reward, regret) of an arm; the regret is >= 0 unless ``realised``."""


@dataclass(frozen=True)
class Plan:
    """Everything that determines one run but the algorithm, its parameters and the world."""

    agents: AgentsConfig
    schedule: AnySchedule
    network: NetworkConfig
    server: ServerConfig = field(default_factory=ServerConfig)
    trace: Literal["off", "protocol", "full"] = "protocol"
    checks: Literal["cheap", "full"] = "cheap"
    share: bool = True

    @property
    def intermittent(self) -> bool:
        """True when a node can be down."""
        return self.agents.intermittent or bool(self.network.outages)

    @property
    def ideal(self) -> bool:
        """True when no link delays or loses anything and all nodes are up."""
        return self.network.ideal and not self.intermittent
