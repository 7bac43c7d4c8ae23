"""Devices of agents: what a row of a fleet says about links."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from coband.simulator.core.network.bandwidth import BaseBandwidth, Passage, Rate
from coband.simulator.core.network.links import BaseLatency
from coband.simulator.core.nodes.node import SERVER, Address
from coband.simulator.core.randomness.distributions import BaseDistribution, Constant


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
