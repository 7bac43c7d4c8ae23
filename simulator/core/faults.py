"""Agents that are slow: compute times, stragglers and availability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field

from simulator.core.config import Config
from simulator.core.distributions import ZERO, Distribution

Streams = Callable[[str, int, str], np.random.Generator]


class Stragglers(Config):
    """A share of the agents, drawn once per replication, that is slower than the rest."""

    fraction: float = Field(ge=0, le=1)
    """Share of the agents; round(fraction * count) of them are drawn."""
    slowdown: float = Field(gt=0)
    """Their compute times are multiplied by it."""


class Always(Config):
    """Every agent is always there."""

    kind: Literal["always"] = "always"


class AgentsConfig(Config):
    """How many agents there are, and how fast each one is."""

    count: int = Field(ge=1, le=1_000_000)
    """Number of agents N."""
    compute: Distribution = ZERO
    """Time that a turn takes an agent of speed 1, in simulated time units."""
    handling: Distribution = ZERO
    """Time that handling one message takes an agent of speed 1."""
    speed: Distribution | None = None
    """Drawn once per agent: its compute and handling times are divided by it; null for 1."""
    stragglers: Stragglers | None = None
    """Agents slower by a factor; null for none."""
    availability: Always = Always()
    """When agents are reachable and act."""

    def slowness(self, streams: Streams) -> list[float]:
        """The factor on each agent's compute and handling times.

        The speeds and the choice of stragglers are streams of their own, so that every algorithm in a comparison
        meets the same slow agents.
        """
        factors = np.ones(self.count)
        if self.speed is not None:
            speeds = self.speed.draw(streams("faults", 0, "speed"), self.count)
            factors /= np.maximum(speeds, np.finfo(float).tiny)
        if self.stragglers is not None:
            slow = streams("faults", 0, "stragglers").permutation(self.count)
            factors[slow[: round(self.stragglers.fraction * self.count)]] *= self.stragglers.slowdown
        return [float(factor) for factor in factors]


class ServerConfig(Config):
    """How fast the server is."""

    handling: Distribution = ZERO
    """Time that handling one message takes the server."""
