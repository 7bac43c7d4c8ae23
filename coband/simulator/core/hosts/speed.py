"""The sections ``agents`` and ``server`` of a scenario: compute times, stragglers, availability and handling."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.config import TIME, Config
from coband.simulator.core.hosts.availability import Always, Availability, Recorded
from coband.simulator.core.hosts.energy import EnergyConfig
from coband.simulator.core.hosts.stays import Joins, Leaves
from coband.simulator.core.populations.kinds import Population
from coband.simulator.core.populations.table import AVAILABILITY, BATTERY
from coband.simulator.core.randomness.distributions import ZERO, Constant, Distribution, Draws, is_zero
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.defences import SUM, Defence
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import returns
from coband.simulator.scenario_errors import BrokenOff


class Episodes(Config):
    """Slowness that comes and goes, in exponential times; it starts in the stationary distribution."""

    mean_slow: Annotated[float, TIME] = Field(gt=0)
    """Mean time for which it lasts."""
    mean_fast: Annotated[float, TIME] = Field(gt=0)
    """Mean time between two of them."""


class BaseStragglers(Config):
    """Base of models of slow agents."""

    @abstractmethod
    @returns(
        "a list of {count} finite numbers > 0",
        lambda found, count, streams: len(found) == count and all(0 < one < math.inf for one in found),
    )
    def factors(self, count: int, streams: Streams) -> list[float]:
        """The factor on each agent's compute and handling times in a whole run, 1 for an agent that is not slow.

        Args:
            streams: of the replication; draw from ``streams("faults", 0, <your kind>)``.
        """


class Stragglers(BaseStragglers):
    """A share of the agents, drawn once per replication, that is slower than the rest."""

    fraction: float = Field(ge=0, le=1)
    """Share of the agents, or of the groups; so many are drawn, halves rounded to even."""
    slowdown: float = Field(gt=0)
    """Their compute times are multiplied by it."""
    groups: int | None = Field(default=None, ge=1)
    """Agents stand in so many groups of neighbours by index, which are slow together; null: each for itself."""
    episodes: Episodes | None = None
    """When the stragglers are slow, all of a group at once; null for always."""

    def factors(self, count: int, streams: Streams) -> list[float]:
        """The slowdown for the agents of slow groups, unless they are slow for a time alone."""
        slow = set(self.drawn(count, streams)) if self.episodes is None else set()
        return [self.slowdown if self.group_of(agent, count) in slow else 1.0 for agent in range(count)]

    def group_of(self, agent: int, count: int) -> int:
        return agent if self.groups is None else agent * self.groups // count

    def drawn(self, count: int, streams: Streams) -> list[int]:
        groups = count if self.groups is None else self.groups
        slow = streams("faults", 0, "stragglers").permutation(groups)
        return [int(group) for group in slow[: round(self.fraction * groups)]]


STRAGGLERS: Kinds[type[BaseStragglers]] = Kinds.of("stragglers", BaseStragglers)
"""The models of slow agents that scenarios can name, beside `Stragglers`, which has no kind."""


class AgentsConfig(Config):
    """How many agents there are, and how fast each one is."""

    count: int = Field(ge=1, le=1_000_000)
    """Number of agents N."""
    compute: Annotated[Distribution, TIME] = ZERO
    """Time that a turn takes an agent of speed 1, in simulated time units."""
    handling: Annotated[Distribution, TIME] = ZERO
    """Time that handling one message takes an agent of speed 1."""
    speed: Distribution | None = None
    """Drawn once per agent: its compute and handling times are divided by it; null for 1."""
    stragglers: Annotated[BaseStragglers, STRAGGLERS.field(default=Stragglers)] | None = None
    """Agents slower by a factor; null for none."""
    reward_delay: Annotated[Distribution, TIME] | None = None
    """Time from a pull to its reward: the agent goes on with its turns, and learns from rewards as they come; null: at
    once."""
    availability: Availability = Always()
    """When agents are up: an agent that is down starts no turn, and no message reaches it."""
    joins: Joins | None = None
    """When agents join: before, an agent takes no turn, and sends and receives nothing; null: all are there from the
    start on."""
    leaves: Leaves | None = None
    """When agents leave for good: they take no further turn, and send and receive nothing; null: nobody leaves."""
    energy: EnergyConfig | None = None
    """Batteries, and what turns and messages take from them; null: as much as it takes."""
    population: Population | None = None
    """Where devices come from: each row of it sets, jointly, the turns, the speed, the links, the battery and the
    availability of an agent, in the place of these keys and of ``network.latency`` and ``network.bandwidth``; null for
    none."""

    @model_validator(mode="after")
    def _agents_that_there_are(self) -> AgentsConfig:
        if isinstance(self.speed, Constant) and self.speed.value == 0.0:
            raise ValueError("speed: must be > 0, as times are divided by it")
        if isinstance(self.availability, Recorded) and self.availability.agents > self.count:
            raise ValueError(
                f"availability.file names agent {self.availability.agents - 1}: must be < {self.count}, the "
                "agents.count; agents are numbered from 0"
            )
        for key in ("joins", "leaves"):
            if (moves := getattr(self, key)) is not None and moves.agents > self.count:
                raise ValueError(
                    f"{key} names agent {moves.agents - 1}: must be < {self.count}, the agents.count; agents are "
                    "numbered from 0"
                )
        if isinstance(self.stragglers, Stragglers) and (self.stragglers.groups or 0) > self.count:
            raise ValueError(f"stragglers.groups(={self.stragglers.groups}) must be <= count(={self.count})")
        if self.population is not None and (misfit := self.population.misfit(self.count)):
            raise ValueError(f"population: {misfit}")
        if self.energy is None and self.population is not None and (said := self.population.sets & {*BATTERY}):
            raise ValueError(
                f"population: devices say their {' and '.join(sorted(said))}, but agents have no batteries; give "
                "agents.energy, or leave these columns out"
            )
        return self

    @property
    def late_rewards(self) -> bool:
        """Whether agents take other turns before a reward comes."""
        return self.reward_delay is not None and not is_zero(self.reward_delay)

    @property
    def intermittent(self) -> bool:
        """True when agents can be down."""
        devices = self.population is not None and AVAILABILITY in self.population.sets
        return devices or self.energy is not None or self.changing or not isinstance(self.availability, Always)

    @property
    def changing(self) -> bool:
        """Whether agents join or leave."""
        return self.joins is not None or self.leaves is not None

    def slowness(self, streams: Streams) -> list[float]:
        """The factor on each agent's compute and handling times.

        The speeds and the choice of stragglers are streams of their own, so that every algorithm in a comparison
        meets the same slow agents.
        """
        factors = np.ones(self.count)
        if self.speed is not None:
            speeds = self.speed.draw(streams("faults", 0, "speed"), self.count)
            if not (speeds > 0.0).all():
                raise BrokenOff("agents.speed has drawn 0, by which times are divided; give it numbers > 0")
            factors /= speeds
        if self.stragglers is not None:
            factors *= self.stragglers.factors(self.count, streams)
        return [float(factor) for factor in factors]

    def episodes(self, streams: Streams, clock: Clock) -> list[SlowPeriod | None]:
        """For each agent, when it is slow; None where that does not change."""
        stragglers = self.stragglers
        if not isinstance(stragglers, Stragglers) or stragglers.episodes is None:
            return [None] * self.count
        slow_periods = {
            group: SlowPeriod(stragglers.episodes, stragglers.slowdown, streams("faults", group, "episodes"), clock)
            for group in stragglers.drawn(self.count, streams)
        }
        return [slow_periods.get(stragglers.group_of(agent, self.count)) for agent in range(self.count)]


class SlowPeriod:
    """The slowness of one group, which comes and goes."""

    def __init__(self, episodes: Episodes, slowdown: float, rng: np.random.Generator, clock: Clock) -> None:
        self._episodes, self._slowdown, self._rng, self._clock = episodes, slowdown, rng, clock
        self._slow = bool(rng.random() < episodes.mean_slow / (episodes.mean_slow + episodes.mean_fast))
        self._until = self._lasts()

    def _lasts(self) -> float:
        mean = self._episodes.mean_slow if self._slow else self._episodes.mean_fast
        return float(mean * self._rng.standard_exponential())

    def factor(self) -> float:
        """The factor on compute times that begin now."""
        while self._until <= self._clock.now:
            self._slow = not self._slow
            self._until += self._lasts()
        return self._slowdown if self._slow else 1.0


class SlowPeriodDraws(Draws):
    """Times that are longer during a slow period."""

    __slots__ = ("_slow_period",)

    def __init__(self, slow_period: SlowPeriod, *args: Any) -> None:
        super().__init__(*args)
        self._slow_period = slow_period

    def __call__(self) -> float:
        return super().__call__() * self._slow_period.factor()


class ServerConfig(Config):
    """How fast the server is."""

    handling: Annotated[Distribution, TIME] = ZERO
    """Time that handling one message takes the server."""
    aggregate: Defence = SUM
    """What it takes of the statistics that agents send, where its protocol sums them, or on a graph each agent of what
    others tell; sum: no defence against agents that lie."""
