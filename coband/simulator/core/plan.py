"""What determines a run: the plan of agents, schedule, network and levels; what devices say of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.clock.schedule import Schedule
from coband.simulator.core.hosts import stays
from coband.simulator.core.hosts.availability import BaseAvailability, Windows
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.bandwidth import BaseBandwidth, Passage, Rate
from coband.simulator.core.network.links import BaseLatency
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.populations.table import Fleet
from coband.simulator.core.randomness.distributions import BaseDistribution, Constant, is_zero
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.config import MessagesConfig


class ByAgent(BaseDistribution):
    """A number of each agent's device.

    Attributes:
        values: by agent; nan: the usual distribution.
    """

    values: Any
    usual: Any

    def of(self, agent: int) -> BaseDistribution:
        value = float(self.values[agent])
        usual: BaseDistribution = self.usual
        return usual if math.isnan(value) else Constant.model_construct(value=value)

    @property
    def mean(self) -> float:
        return float(np.mean(np.where(np.isnan(self.values), self.usual.mean, self.values)))

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """The values of the first agents."""
        found: FloatArray = np.where(np.isnan(self.values[:size]), self.usual.draw(rng, size), self.values[:size])
        return found


class DeviceAvailability(BaseAvailability):
    """When devices are up."""

    fleet: Any
    usual: Any

    def windows(self, agent: Address, rng: np.random.Generator) -> Windows:
        fleet: Fleet = self.fleet
        assert fleet.windows is not None
        assert fleet.trace is not None
        trace = int(fleet.trace[agent])
        found: Iterator[tuple[float, float]] = self.usual.windows(agent, rng)
        return found if trace < 0 else fleet.windows.absences(trace)

    def leaves(self, agent: Address) -> float | None:
        trace = int(self.fleet.trace[agent])
        found: float | None = self.usual.leaves(agent) if trace < 0 else self.fleet.windows.leaves(trace)
        return found


class DeviceLatency(BaseLatency):
    """The latencies of devices: of a link between two agents, the sum of both."""

    values: Any
    usual: Any

    @property
    def is_constant(self) -> bool:
        return bool(self.usual.is_constant)

    @property
    def largest_mean(self) -> float:
        largest = float(np.nanmax(self.values, initial=0.0))
        return max(2 * largest, self.usual.largest_mean if np.isnan(self.values).any() else 0.0)

    def between(self, source: Address, destination: Address) -> BaseDistribution:
        total = sum(float(self.values[end]) for end in (source, destination) if end != SERVER)
        usual: BaseDistribution = self.usual.between(source, destination)
        return usual if math.isnan(total) else Constant.model_construct(value=total)


class DeviceBandwidth(BaseBandwidth):
    """The bandwidths of devices, in bits per time unit: of a link between two agents, the smaller of the uplink of the
    one and the downlink of the other."""

    by_link: ClassVar[bool] = True
    up: Any
    down: Any
    usual: Any

    def stage(self) -> Passage:
        raise TypeError("each link has a bandwidth of its own; ask between(source, destination)")

    def between(self, source: Address, destination: Address) -> Any:
        ends = [] if source == SERVER else [float(self.up[source])]
        ends += [] if destination == SERVER else [float(self.down[destination])]
        known = [rate for rate in ends if not math.isnan(rate)]
        return Rate.model_construct(scalars=None, bits=min(known), burst=0.0) if known else self.usual


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
    adversaries: tuple[Adversary, ...] = ()
    cohorts: bool = True
    """Whether turns are taken and prepared together where that changes nothing; False: each by itself."""
    names: Sequence[str] = ()
    """What agents are called, of a settled plan; empty: nobody says."""

    @property
    def intermittent(self) -> bool:
        """True when a node can be down."""
        return self.agents.intermittent or bool(self.network.outages)

    @property
    def stays(self) -> stays.Stays | None:
        """When agents join and leave, of a settled plan; None: all are there from the start to the end."""
        found = self.agents.availability
        return found if isinstance(found, stays.Stays) else None

    @property
    def late_rewards(self) -> bool:
        """Whether agents take other turns before a reward comes."""
        return self.agents.late_rewards

    @property
    def wired(self) -> bool:
        """Whether anything is done to messages."""
        return not self.messages.plain or self.altered

    @property
    def altered(self) -> bool:
        """Whether a message may arrive other than its node sent it."""
        return self.messages.lossy or self.distrusts

    @property
    def distrusts(self) -> bool:
        """Whether agents lie, or the server reckons with that; then its statistics are not sums of real pulls."""
        return bool(self.adversaries) or not self.server.aggregate.sums

    @property
    def poisoned(self) -> bool:
        """Whether the world lies about rewards."""
        return any(one.behaviour.poisons for one in self.adversaries)

    @property
    def withholds(self) -> bool:
        """Whether some agents are silent."""
        return any(one.behaviour.withholds for one in self.adversaries)

    @property
    def faulty(self) -> bool:
        """Whether links may lose copies, nodes be down, or agents keep messages back."""
        return self.network.faulty or self.intermittent or self.withholds

    @property
    def ideal(self) -> bool:
        """True when no link delays or loses anything, all nodes are up and nobody is silent."""
        return self.network.ideal and not self.intermittent and not self.withholds

    @property
    def walks_hops(self) -> bool:
        """Whether every copy of a message travels by itself; always so in a star."""
        mode = self.network.local.mode
        if self.network.graph is None or mode == "hop_by_hop":
            return True
        return mode == "auto" and not self.ideal

    @property
    def delays(self) -> bool:
        """True when an exchange can take time: on links, by the handling of messages, or as a battery goes flat in it.

        Agents that come and go do so between what happens at one instant.
        """
        times = (self.agents.compute, self.agents.handling, self.server.handling)
        return self.network.takes_time or self.agents.energy is not None or not all(map(is_zero, times))


def settled(plan: Plan, streams: Streams) -> Plan:
    """The plan with devices, joins and leaves drawn, once per replication; itself without these."""
    plan, agents = _with_devices(plan, streams), plan.agents
    if not agents.changing:
        return plan
    heals = np.inf if plan.network.heals is None else plan.network.heals
    moves, usual = (agents.joins, agents.leaves), plan.agents.availability
    found = stays.stays(moves, agents.count, usual, streams, heals)
    return replace(plan, agents=plan.agents.model_copy(update={"availability": found}))


def _with_devices(plan: Plan, streams: Streams) -> Plan:
    population = plan.agents.population
    if population is None:
        return plan
    drawn = population.draw(plan.agents.count, streams("faults", 0, "population"))
    fleet, usual = drawn.only(population.sets), plan.agents
    agents: dict[str, Any] = {"population": None}
    network: dict[str, Any] = {}
    numbers = fleet.numbers
    if "compute" in numbers:
        agents["compute"] = ByAgent.model_construct(values=numbers["compute"], usual=usual.compute)
    if "speed" in numbers:
        agents["speed"] = ByAgent.model_construct(values=numbers["speed"], usual=usual.speed or Constant(value=1.0))
    said = {key: numbers[name] for name, key in (("battery", "level"), ("capacity", "capacity")) if name in numbers}
    if usual.energy is not None and said:
        parts = {
            key: ByAgent.model_construct(values=values, usual=getattr(usual.energy, key))
            for key, values in said.items()
        }
        agents["energy"] = usual.energy.model_copy(update=parts)
    if fleet.windows is not None:
        agents["availability"] = DeviceAvailability.model_construct(fleet=fleet, usual=usual.availability)
    if "latency" in numbers:
        network["latency"] = DeviceLatency.model_construct(values=numbers["latency"], usual=plan.network.latency)
    if numbers.keys() & {"uplink", "downlink"}:
        nothing = np.full(fleet.count, np.nan)
        up, down = (numbers.get(name, nothing) for name in ("uplink", "downlink"))
        network["bandwidth"] = DeviceBandwidth.model_construct(up=up, down=down, usual=plan.network.bandwidth)
    found = replace(plan, agents=usual.model_copy(update=agents), names=fleet.names)
    return replace(found, network=plan.network.model_copy(update=network))
