"""What each link is, read from the scenario once more: its rules in order, its bandwidth, and who is cut off."""

from __future__ import annotations

import math

from coband.simulator.core.network.links import BaseBandwidth, LinkModel, LinkRule, Rate
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.partitions import Partition
from coband.simulator.core.nodes.node import SERVER, Address

KEYS = ("latency", "bandwidth", "loss", "duplicate", "reorder")


class Wiring:
    """The links of a network.

    Args:
        config: of the network.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config

    def model(self, source: Address, destination: Address) -> LinkModel:
        """What the link from one node to another does."""
        config = self._config
        found = {key: getattr(config, key) for key in KEYS}
        found["latency"] = config.latency.between(source, destination)
        for rule in config.links:
            if _speaks_of(rule, source, destination):
                found.update({key: value for key in KEYS if (value := getattr(rule, key)) is not None})
        return LinkModel.model_construct(**found)

    def parted(self, source: Address, destination: Address, now: float) -> bool:
        """Whether a partition keeps apart two nodes now."""
        heals = math.inf if self._config.heals is None else self._config.heals
        for partition in self._config.partitions:
            if not isinstance(partition, Partition):
                if now < heals and partition.cuts(source, destination, now):
                    return True
            elif partition.start <= now < min(partition.end, heals):
                sides = [
                    next((place for place, group in enumerate(partition.groups) if node in group), math.inf)
                    for node in (source, destination)
                ]
                if sides[0] < sides[1] or (sides[0] > sides[1] and not partition.one_way):
                    return True
        return False


def _speaks_of(rule: LinkRule, source: Address, destination: Address) -> bool:
    """A rule is about what goes up from its agents, what goes down to them, or both; among agents, about both ends."""
    ends = [source] if rule.direction != "down" else []
    ends += [destination] if rule.direction != "up" else []
    return any(end != SERVER and (rule.agents == "all" or end in rule.agents) for end in ends)


class Pipe:
    """When copies have passed a bandwidth: each one puts off by size / rate the time when the bucket is full again."""

    def __init__(self, bandwidth: float | BaseBandwidth | None) -> None:
        self._rate = Rate(scalars=bandwidth) if isinstance(bandwidth, int | float) else bandwidth
        self._other = None if self._rate is None or isinstance(self._rate, Rate) else self._rate.stage()
        self._full = 0.0

    def passed(self, start: float, scalars: int, bits: int) -> float:
        """When a copy that comes at ``start`` has passed."""
        if self._other is not None:  # of another package: the same once more
            return self._other.leave(start, scalars, bits)
        if not isinstance(self._rate, Rate):
            return start
        size, speed = (scalars, self._rate.scalars) if self._rate.scalars is not None else (bits, self._rate.bits)
        assert speed is not None
        self._full = max(start, self._full) + size / speed
        return max(start, self._full - self._rate.burst / speed)
