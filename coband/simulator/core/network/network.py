"""The network: all links, the shared capacity of the server, faults, and how the transport mends them.

In a star a copy of a message from the server leaves through the server's shared downlink capacity, then through the
agent's own down link, then waits for the latency; a copy to the server goes through the agent's up link, the latency,
and the server's shared uplink capacity. From agent to agent (neighbours in a graph; in a star anybody) it goes over the
link between the two, which has a bandwidth of its own in each direction. Each stage with a finite bandwidth handles one
copy at a time, in order of arrival.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.core.config import BITS, RATE, TIME, Config, TimeUnit
from coband.simulator.core.network.bandwidth import Bandwidth, BaseBandwidth, stage_of
from coband.simulator.core.network.links import (
    DOWN,
    UP,
    AnyLoss,
    BaseLatency,
    Latency,
    Link,
    LinkModel,
    LinkRule,
    Probability,
    mean_loss,
)
from coband.simulator.core.network.partitions import AnyOutage, AnyPartition, Outage
from coband.simulator.core.network.topologies import BaseGraph, Redrawn, Topology
from coband.simulator.core.nodes.context import MOST_BACKOFFS, Recovery, RetryPolicy
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.randomness.distributions import ZERO, is_zero
from coband.simulator.core.randomness.streams import Streams

REPETITIONS, ACKNOWLEDGEMENTS = "repetitions", "acknowledgements"
LINK_KEYS = ("bandwidth", "loss", "duplicate", "reorder")


class Capacity(Config):
    """What the server can take in and give out, shared by all links; scalars (or bits) per time unit."""

    uplink: Annotated[Bandwidth | None, RATE] = None
    """What it takes in from all agents together; null for unlimited."""
    downlink: Annotated[Bandwidth | None, RATE] = None
    """What it gives out to all agents together; null for unlimited."""


class LocalConfig(Config):
    """The LOCAL service of a graph: messages that neighbours pass on, each node once, up to a number of hops."""

    mode: Literal["auto", "hop_by_hop", "direct"] = "auto"
    """hop_by_hop: every copy on every link; direct: the same deliveries without walking the hops, for ideal links;
    auto: direct where links are ideal."""
    trial: Annotated[float | None, TIME] = Field(default=None, gt=0)
    """A node passes a message on so long after it came; null for the schedule's interval (1 if it has none)."""


class Retransmission(Config):
    """How the reliable transport repeats what was not acknowledged."""

    timeout: Annotated[float | None, TIME] = Field(default=None, gt=0)
    """Wait before the first repetition; null for four times the mean one-way delay of the pair (1 if that is 0)."""
    backoff: float = Field(default=2.0, ge=1)
    """Each further wait is longer by this factor, up to its sixth power."""
    max_timeout: Annotated[float | None, TIME] = Field(default=None, gt=0)
    """No wait is longer than this; null for no other limit."""
    max_attempts: int = Field(default=1000, ge=1)
    """Copies sent in all before the transport gives up, and tells the nodes at both ends."""

    def wait(self, first: float, attempts: int) -> float:
        """How long to wait for the acknowledgement of the last of so many copies; ``first``: of the first one."""
        wait = first * self.backoff ** min(attempts - 1, MOST_BACKOFFS)
        return wait if self.max_timeout is None else min(wait, self.max_timeout)

    def until_given_up(self, first: float) -> float:
        """Sum of all waits for acknowledgements of one message; ``first``: the first of them."""
        growing = min(self.max_attempts, MOST_BACKOFFS)
        rest = (self.max_attempts - growing) * self.wait(first, MOST_BACKOFFS + 1)
        return sum(self.wait(first, attempts) for attempts in range(1, growing + 1)) + rest


class NetworkConfig(Config):
    """The network between agents and server, or among agents."""

    topology: Topology = "star"
    """star: a server in the centre of all agents; or a graph of agents without a server, such as
    {kind: erdos_renyi, p: 0.7}."""
    latency: Annotated[Latency, TIME] = ZERO
    """Time on the way, per copy, drawn from a stream of the link; or a matrix of constants."""
    bandwidth: Annotated[Bandwidth | None, RATE] = None
    """Scalars per time unit and link, or {bits: ...}; null for unlimited."""
    server: Capacity = Capacity()
    """Shared capacity of the server."""
    loss: Annotated[float, Field(ge=0, lt=1)] | AnyLoss = 0.0
    """Probability that a copy is lost, independently; or in bursts: {kind: gilbert_elliott, p: 0.05, r: 0.4}."""
    duplicate: Probability = 0.0
    """Probability that a link delivers a copy twice; the second one has a latency of its own."""
    reorder: Literal["fifo", "free"] = "free"
    """free: a copy may overtake an earlier one on its link; fifo: it waits for it."""
    links: tuple[LinkRule, ...] = ()
    """Links that differ from the default."""
    partitions: tuple[AnyPartition, ...] = ()
    """Times in which groups of nodes cannot reach each other."""
    outages: tuple[AnyOutage, ...] = ()
    """Times in which nodes are down."""
    heals: Annotated[float | None, TIME] = Field(default=None, ge=0)
    """From this simulated time on nothing is lost or doubled, all links are there and nobody goes down; null: never."""
    local: LocalConfig = LocalConfig()
    """How messages travel over several hops of a graph."""
    transport: Literal["reliable", "datagram"] = "reliable"
    """reliable: acknowledged, repeated, in order, exactly once; datagram: sent once."""
    retransmission: Retransmission = Retransmission()
    """When ``transport: reliable`` repeats a copy."""
    recovery: Recovery = Recovery()
    """What nodes do about messages that the transport has given up."""
    scalar_bits: Annotated[int, BITS] = Field(default=64, ge=1)
    """Bits per scalar."""
    header_bits: Annotated[int, BITS] = Field(default=0, ge=0)
    """Bits per message in addition to its payload."""

    @model_validator(mode="after")
    def _direct_where_ideal(self) -> NetworkConfig:
        if self.local.mode == "direct" and not self.ideal:
            raise ValueError("local.mode: direct needs links without latency, bandwidth, loss, rules and partitions")
        if self.graph is not None and (self.server.uplink is not None or self.server.downlink is not None):
            raise ValueError("server: a graph of agents has no server whose capacity they could share")
        if self.graph is not None and any(SERVER in one.addresses for one in self.outages if isinstance(one, Outage)):
            raise ValueError("outages: a graph of agents has no server that could be down")
        return self

    @model_validator(mode="after")
    def _reliable_can_end(self) -> NetworkConfig:
        if self.transport == "datagram":
            return self
        losses = {"loss": self.loss, **{f"links.{number}.loss": rule.loss for number, rule in enumerate(self.links)}}
        for place, loss in losses.items():
            if mean_loss(loss) >= 1.0:
                raise ValueError(f"{place}: 1 never lets a reliable transport through; use loss < 1 or datagram")
        if self.faulty and self.retransmission.timeout is None and not math.isfinite(self.largest_mean):
            raise ValueError("retransmission.timeout follows from the mean latency, which is infinite here; give it")
        return self

    def clock_units(self) -> Iterator[tuple[tuple[str | int, ...], TimeUnit]]:
        """(where, which) of what bandwidths take a unit of the simulation's clock for."""
        places: list[tuple[tuple[str | int, ...], Any]] = [(("bandwidth",), self.bandwidth)]
        places += [(("server", key), getattr(self.server, key)) for key in ("uplink", "downlink")]
        places += [(("links", number, "bandwidth"), rule.bandwidth) for number, rule in enumerate(self.links)]
        for place, bandwidth in places:
            if isinstance(bandwidth, BaseBandwidth) and (unit := bandwidth.clock_unit) is not None:
                yield (*place, "time_unit"), unit

    @property
    def largest_mean(self) -> float:
        latencies = [self.latency, *(rule.latency for rule in self.links if rule.latency is not None)]
        return max(latency.largest_mean for latency in latencies)

    @property
    def lossy(self) -> bool:
        """Whether a copy can be lost on the way, or because its receiver is down by an outage."""
        losses = (self.loss, *(rule.loss for rule in self.links))
        absent = self.redrawn is not None and self.redrawn.absent == "lost"
        return bool(self.partitions or self.outages or absent) or any(mean_loss(loss) > 0 for loss in losses)

    @property
    def duplicating(self) -> bool:
        return self.duplicate > 0 or any(rule.duplicate for rule in self.links)

    @property
    def faulty(self) -> bool:
        """True when a reliable transport has something to mend beside the order."""
        return self.lossy or self.duplicating

    @property
    def first_timeout(self) -> float:
        """Wait before the first repetition, where links do not differ."""
        if self.retransmission.timeout is not None:
            return self.retransmission.timeout
        mean = self.largest_mean
        return 4.0 * mean if 0.0 < mean < math.inf else 1.0

    @property
    def retry_policy(self) -> RetryPolicy:
        """What `recovery` comes to in simulated time."""
        recovery, first = self.recovery, self.first_timeout
        timeout = first if recovery.timeout is None else recovery.timeout
        given_up = self.retransmission.until_given_up(first)
        between = timeout * (1.0 + recovery.backoff**MOST_BACKOFFS) + given_up
        policy = RetryPolicy(timeout, recovery.backoff, recovery.attempts, recovery.patience or between)
        if recovery.patience is None:
            return policy
        waits = accumulate(policy.delay(tries) + given_up for tries in range(recovery.attempts))
        return replace(policy, attempts=sum(given_up + wait <= policy.patience for wait in waits))

    @property
    def graph(self) -> BaseGraph | None:
        """The graph of the agents; None for a star with a server."""
        return None if isinstance(self.topology, str) else self.topology

    @property
    def ideal(self) -> bool:
        """True when nothing takes time on the way, nothing is lost or doubled, and links stay."""
        return not (self.takes_time or self.faulty or self.redrawn)

    @property
    def redrawn(self) -> Redrawn | None:
        """The graph, where its links come and go."""
        return self.graph if isinstance(self.graph, Redrawn) else None

    @property
    def takes_time(self) -> bool:
        """Whether anything takes time on the way: latency, a bandwidth, or the server's capacity."""
        latencies = (self.latency, *(rule.latency for rule in self.links if rule.latency is not None))
        bandwidths = (
            self.bandwidth,
            self.server.uplink,
            self.server.downlink,
            *(rule.bandwidth for rule in self.links),
        )
        return not all(map(is_zero, latencies)) or any(rate is not None for rate in bandwidths)


class Presence:
    """Which links of a graph are there.

    A link is there in an interval or not whatever is sent: it has a stream of its own, and one draw for each interval.
    """

    BLOCK = 256
    """Intervals that are drawn together."""

    def __init__(self, graph: Redrawn, streams: Streams) -> None:
        self._p, self._interval, self.lost = graph.p, graph.interval, graph.absent == "lost"
        self._streams = streams
        self._blocks: dict[tuple[Address, Address], tuple[np.random.Generator, int, list[bool]]] = {}

    def has(self, source: Address, destination: Address, time: float) -> bool:
        """Whether the link between two agents is there."""
        ends = (source, destination) if source < destination else (destination, source)
        block, place = divmod(int(time / self._interval + 1e-9), self.BLOCK)
        found = self._blocks.get(ends)
        if found is None or found[1] != block:
            rng, last, _ = found or (self._streams("network", ends[0], f"presence to {ends[1]}"), -1, [])
            rng.bit_generator.advance((block - last - 1) * self.BLOCK)  # type: ignore[attr-defined]
            found = self._blocks[ends] = rng, block, (rng.random(self.BLOCK) < self._p).tolist()
        return found[2][place]


class Network:
    """All links, and the server's shared stages.

    Latency and loss depend on (link, number of the copy on that link) only, whatever other links do.
    """

    def __init__(self, config: NetworkConfig, streams: Streams) -> None:
        self.config, self._streams = config, streams
        self._linked = not config.ideal
        self.presence = None if config.redrawn is None else Presence(config.redrawn, streams)
        self.heals = math.inf if config.heals is None else config.heals
        self._links: dict[tuple[Address, Address, str], Link] = {}
        self._models: dict[tuple[bool, ...], LinkModel] = {}  # by which rules apply
        self.ingress = None if config.server.uplink is None else stage_of(config.server.uplink)
        self.egress = None if config.server.downlink is None else stage_of(config.server.downlink)

    def timeout(self, source: Address, destination: Address) -> float:
        """Wait before the first repetition between two nodes."""
        if self.config.retransmission.timeout is not None:
            return self.config.retransmission.timeout
        links = [self.link(source, destination), self.link(destination, source)]
        mean = sum(0.0 if link is None else link.mean_latency for link in links) / 2
        return 4.0 * mean if mean > 0 else 1.0

    def cut_off(self, source: Address, destination: Address, time: float) -> str:
        """Why a copy that is sent now is lost: its link is absent, or cut by a partition; empty where neither is so."""
        if time >= self.heals:
            return ""
        if self.presence is not None and not self.presence.has(source, destination, time):
            return "absent"
        cut = any(partition.cuts(source, destination, time) for partition in self.config.partitions)
        return "partition" if cut else ""

    def leads(self, source: Address, destination: Address, time: float) -> bool:
        """Whether a copy can be sent now: False where it would go over a link that is not there."""
        presence = self.presence
        return presence is None or presence.lost or time >= self.heals or presence.has(source, destination, time)

    def link(self, source: Address, destination: Address, lane: str = "") -> Link | None:
        """The link from one node to another, None when it is ideal; made on first use.

        Args:
            source: where it begins.
            destination: where it ends.
            lane: ``REPETITIONS`` or ``ACKNOWLEDGEMENTS``, which draw from streams of their own; empty: first copies.
        """
        if not self._linked:
            return None
        link = self._links.get((source, destination, lane))
        if link is None:
            first = self.link(source, destination) if lane else self._make(source, destination)
            assert first is not None
            link = self._links[source, destination, lane] = first.lane(lane) if lane else first
        return link

    def _make(self, source: Address, destination: Address) -> Link:
        if source == SERVER:
            entity, way = destination, DOWN
        else:
            entity, way = source, UP if destination == SERVER else f"to {destination}"
        return Link(self.model(source, destination), self._streams, entity, way, self.heals)

    def model(self, source: Address, destination: Address) -> LinkModel:
        """What the link does; one object for all links that do the same, except where links differ."""
        config = self.config
        rules = tuple(rule.applies(source, destination) for rule in config.links)
        model = self._models.get(rules)
        if model is not None:
            return model
        latency = config.latency.between(source, destination)
        found: dict[str, Any] = {"latency": latency, **{key: getattr(config, key) for key in LINK_KEYS}}
        for rule, applies in zip(config.links, rules, strict=True):
            if applies:
                given = {key: getattr(rule, key) for key in ("latency", *LINK_KEYS)}
                found.update({key: value for key, value in given.items() if value is not None})
        bandwidth, differs = found["bandwidth"], isinstance(config.latency, BaseLatency)
        if isinstance(bandwidth, BaseBandwidth):
            found["bandwidth"], differs = bandwidth.between(source, destination), differs or bandwidth.by_link
        model = LinkModel.model_construct(**found)
        if not differs:
            self._models[rules] = model
        return model
