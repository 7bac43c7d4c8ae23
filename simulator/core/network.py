"""The star network: latency, bandwidth with FIFO serialisation, shared server capacity, loss.

A copy of a message from the server leaves through the server's shared downlink capacity, then through the agent's own
down link, then waits for the latency; a copy to the server goes through the agent's up link, the latency, and the
server's shared uplink capacity. Each stage with a finite bandwidth handles one copy at a time, in order of arrival.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from simulator.core.config import Config
from simulator.core.distributions import ZERO, BaseDistribution, Distribution, Draws, is_zero

Streams = Callable[[str, int, str], np.random.Generator]
UP, DOWN = "up", "down"
Probability = Annotated[float, Field(ge=0, le=1)]


class Bits(Config):
    """A bandwidth in bits per time unit."""

    bits: float = Field(gt=0)


Bandwidth = Annotated[float, Field(gt=0)] | Bits


class LinkRule(Config):
    """Differences from the default for the links of some agents; a later rule overrides an earlier one."""

    agents: tuple[Annotated[int, Field(ge=0)], ...] | Literal["all"] = "all"
    """Indices of the agents, from 0."""
    direction: Literal["up", "down", "both"] = "both"
    latency: Distribution | None = None
    bandwidth: Bandwidth | None = None
    loss: Probability | None = None

    def concerns(self, direction: str, agent: int) -> bool:
        """Whether it applies to ``agent``'s link in a direction: up, down, or "to" another agent."""
        ends = {direction: agent}
        if direction not in (UP, DOWN):
            ends = {UP: agent, DOWN: int(direction.removeprefix("to "))}
        chosen = [end for way, end in ends.items() if self.direction in (way, "both")]
        return bool(chosen) and (self.agents == "all" or any(end in self.agents for end in chosen))


class Capacity(Config):
    """What the server can take in and give out, shared by all links; scalars (or bits) per time unit."""

    uplink: Bandwidth | None = None
    downlink: Bandwidth | None = None


class Retransmission(Config):
    """How the reliable transport repeats what was not acknowledged."""

    timeout: float | None = Field(default=None, gt=0)
    """Wait before the first repetition; null for four times the mean one-way delay of the pair (1 if that is 0)."""
    backoff: float = Field(default=2.0, ge=1)
    """Each further wait is longer by this factor."""
    max_attempts: int = Field(default=50, ge=1)
    """Copies sent in all before the transport gives up."""


class NetworkConfig(Config):
    """The network between agents and server."""

    topology: Literal["star"] = "star"
    latency: Distribution = ZERO
    """Time on the way, per copy, drawn from a stream of the link."""
    bandwidth: Bandwidth | None = None
    """Scalars per time unit and link, or {bits: ...}; null for unlimited."""
    server: Capacity = Capacity()
    """Shared capacity of the server."""
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Probability that a copy is lost, independently."""
    links: tuple[LinkRule, ...] = ()
    """Links that differ from the default."""
    transport: Literal["reliable", "datagram"] = "reliable"
    """reliable: acknowledged, repeated, in order, exactly once; datagram: sent once."""
    retransmission: Retransmission = Retransmission()
    scalar_bits: int = Field(default=64, ge=1)
    """Bits per scalar."""
    header_bits: int = Field(default=0, ge=0)
    """Bits per message beside its payload."""

    @model_validator(mode="after")
    def _reliable_can_end(self) -> NetworkConfig:
        if self.transport == "reliable" and any(rule.loss == 1.0 for rule in self.links):
            raise ValueError("loss 1 on a link never lets a reliable transport through; use loss < 1 or datagram")
        latencies = [self.latency, *(rule.latency for rule in self.links if rule.latency is not None)]
        endless = any(not math.isfinite(latency.mean) for latency in latencies)
        if self.transport == "reliable" and self.lossy and endless and self.retransmission.timeout is None:
            raise ValueError("retransmission.timeout follows from the mean latency, which is infinite here; give it")
        return self

    @property
    def lossy(self) -> bool:
        """True when a copy can be lost."""
        return self.loss > 0 or any(rule.loss for rule in self.links)


class Stage:
    """A part of the way with a finite bandwidth: one copy at a time, in order of arrival."""

    __slots__ = ("_bits", "_free_at", "_rate")

    def __init__(self, bandwidth: float | Bits) -> None:
        self._bits = isinstance(bandwidth, Bits)
        self._rate = bandwidth.bits if isinstance(bandwidth, Bits) else bandwidth
        self._free_at = 0.0

    def leave(self, arrival: float, scalars: int, bits: int) -> float:
        """Time at which a copy that arrives at ``arrival`` has passed; call in order of arrival."""
        start = max(arrival, self._free_at)
        self._free_at = start + (bits if self._bits else scalars) / self._rate
        return self._free_at


class Link:
    """One direction between one agent and the server."""

    __slots__ = ("_latency", "_loss", "_loss_draws", "mean_latency", "stage")

    def __init__(self, latency: BaseDistribution, bandwidth: float | Bits | None, loss: float, streams: Streams,
                 agent: int, direction: str) -> None:  # fmt: skip
        self._latency = None if is_zero(latency) else Draws(latency, streams("network", agent, f"latency {direction}"))
        self._loss = loss
        self._loss_draws = streams("network", agent, f"loss {direction}") if loss > 0 else None
        self.stage = None if bandwidth is None else Stage(bandwidth)
        self.mean_latency = latency.mean

    def transmit(self, start: float, scalars: int, bits: int) -> tuple[float, float]:
        """When a copy that enters the link at ``start`` has left the sender, and when it arrives, were it not lost."""
        left = start if self.stage is None else self.stage.leave(start, scalars, bits)
        return left, left + self.latency()

    def latency(self) -> float:
        """Draw the time that the next copy is on the way."""
        return 0.0 if self._latency is None else self._latency()

    def loses(self) -> bool:
        """Draw whether the next copy on this link is lost."""
        return self._loss_draws is not None and bool(self._loss_draws.random() < self._loss)


class StarNetwork:
    """All links of a star, the links between agents that talk to each other directly, and the server's shared stages.

    Each ordered pair of agents that talk has a link of its own. A rule about the up links of an agent also applies to
    the links on which it sends to others, a rule about its down links to those on which others send to it.

    Latency and loss depend on (link, number of the copy on that link) only, whatever other links do.
    """

    def __init__(self, config: NetworkConfig, agents: int, streams: Streams) -> None:
        self.config, self._streams = config, streams
        self._ideal = is_zero(config.latency) and config.bandwidth is None and not config.lossy and not config.links
        self._links: dict[tuple[str, int], Link] = {}
        self.ingress = None if config.server.uplink is None else Stage(config.server.uplink)
        self.egress = None if config.server.downlink is None else Stage(config.server.downlink)

    def timeout(self, source: int, destination: int) -> float:
        """Wait before the first repetition from ``source`` to ``destination``; the server is -1."""
        if self.config.retransmission.timeout is not None:
            return self.config.retransmission.timeout
        links = [self.between(source, destination), self.between(destination, source)]
        mean = sum(0.0 if link is None else link.mean_latency for link in links) / 2
        return 4.0 * mean if mean > 0 else 1.0

    def between(self, source: int, destination: int) -> Link | None:
        """The link from one node to another, None when it is ideal; the server is -1."""
        if destination < 0:
            return self.link(UP, source)
        if source < 0:
            return self.link(DOWN, destination)
        return self.link(f"to {destination}", source)

    def link(self, direction: str, agent: int) -> Link | None:
        """The link of ``agent`` in ``direction``, None when it is ideal; made on first use."""
        if self._ideal:
            return None
        link = self._links.get((direction, agent))
        if link is None:
            link = self._links[direction, agent] = self._make(direction, agent)
        return link

    def _make(self, direction: str, agent: int) -> Link:
        latency: BaseDistribution = self.config.latency
        bandwidth, loss = self.config.bandwidth, self.config.loss
        for rule in self.config.links:
            if rule.concerns(direction, agent):
                latency = rule.latency if rule.latency is not None else latency
                bandwidth = rule.bandwidth if rule.bandwidth is not None else bandwidth
                loss = rule.loss if rule.loss is not None else loss
        return Link(latency, bandwidth, loss, self._streams, agent, direction)
