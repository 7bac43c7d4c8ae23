"""Devices of agents: what a row of a fleet says about turns and availability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.hosts.availability import BaseAvailability, Windows
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.populations.table import Fleet
from coband.simulator.core.randomness.distributions import BaseDistribution, Constant


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
