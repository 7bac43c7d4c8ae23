"""Energy of agents: what turns, messages and idling take, and how batteries are charged.

A battery's level changes by itself along straight lines: by the power of its charger while that is on, less what idling
takes; it stays between 0 and the capacity. So it is worked out when somebody asks for it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from coband.simulator.core.config import TIME, Config, Unit
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.randomness.distributions import Constant, Distribution
from coband.simulator.plugins.kinds import Kinds

JOULES = Unit("joules")
POWER = Unit("joules per unit of simulated time")
PER_BIT = Unit("joules per bit")
ROUNDING = 1e-9
FORESEEN = 400
"""Lines that are read of a charger that does not say whether it repeats."""
Charging = Iterator[tuple[float, float]]
"""(power of the charger, until when), one after the other; the last time is inf, or there is no last one."""


class BaseRecharge(Config):
    """Base of ways of charging batteries."""

    @property
    def period(self) -> float:
        """After which everything repeats, a time with the charger and one without; inf: never, or nobody knows."""
        return math.inf

    @abstractmethod
    def charging(self, agent: Address, now: float, offset: float) -> Charging:
        """The power of an agent's charger from now on.

        Args:
            offset: of the agent, drawn uniformly between 0 and 1.
        """


class Steady(BaseRecharge):
    """A charger that is always on, such as a solar cell."""

    kind: Literal["rate"] = "rate"
    power: Annotated[float, POWER] = Field(gt=0, allow_inf_nan=False)
    """What it delivers."""

    def charging(self, agent: Address, now: float, offset: float) -> Charging:
        yield self.power, math.inf


class AtTimes(BaseRecharge):
    """A charger to which a device is connected once in a period, such as at night."""

    kind: Literal["windows"]
    power: Annotated[float, POWER] = Field(gt=0, allow_inf_nan=False)
    """What it delivers meanwhile."""
    every: Annotated[float, TIME] = Field(gt=0, allow_inf_nan=False)
    """The period."""
    lasts: Annotated[float, TIME] = Field(gt=0, allow_inf_nan=False)
    """For how long it is connected in each."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """When: each agent is connected from a time of its own on, drawn uniformly from this share of the period; 0: all at
    its start."""

    @model_validator(mode="after")
    def _within(self) -> AtTimes:
        if not self.lasts < self.every:
            raise ValueError(f"lasts(={self.lasts:g}) must be < every(={self.every:g}); kind: rate charges always")
        return self

    @property
    def period(self) -> float:
        return self.every

    def charging(self, agent: Address, now: float, offset: float) -> Charging:
        first = offset * self.spread * self.every
        cycle = math.floor((now - first) / self.every) - 1
        while True:
            start = first + cycle * self.every
            for power, until in ((self.power, start + self.lasts), (0.0, start + self.every)):
                if until > now:
                    yield power, until
            cycle += 1


RECHARGES: Kinds[type[BaseRecharge]] = Kinds.of("recharges", BaseRecharge, (Steady, AtTimes))
"""The ways of charging that scenarios can name."""
Recharge = Annotated[BaseRecharge, RECHARGES.field()]


class EnergyConfig(Config):
    """Batteries of agents: one whose level falls below the reserve is down until it is charged."""

    capacity: Annotated[Distribution, JOULES]
    """What a full battery holds, drawn once per agent."""
    level: Distribution = Constant(value=1.0)
    """The share of it that is there at time 0, drawn once per agent."""
    reserve: float = Field(default=0.05, gt=0, lt=1)
    """The share of the capacity below which an agent is down: it starts no turn, sends nothing, and nothing reaches it.
    What it has begun then takes from the reserve, and may leave less than nothing."""
    resume: float | None = Field(default=None, gt=0, le=1)
    """The share at which it is up again; null: the reserve and what a turn takes."""
    per_turn: Annotated[float, JOULES] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What a turn takes, in phases each pull."""
    per_bit_up: Annotated[float, PER_BIT] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What each bit takes that an agent puts on a link, repetitions and headers included."""
    per_bit_down: Annotated[float, PER_BIT] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What each bit takes that reaches it."""
    idle: Annotated[float, POWER] = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What it takes to be there."""
    recharge: Recharge | None = None
    """How batteries are charged; null: not at all."""

    @model_validator(mode="after")
    def _resumes_above(self) -> EnergyConfig:
        if self.resume is not None and self.resume < self.reserve:
            raise ValueError(f"resume(={self.resume:g}) must be >= reserve(={self.reserve:g})")
        return self


class Battery:
    """The battery of one agent.

    Attributes:
        level: at ``time``.
        charged, idled: what has come and gone by itself.
        mark: an earlier (time, level, charged, idled, what was spent) to go back to.
    """

    __slots__ = (
        *("_agent", "_capacity", "_config", "_offset", "charged", "first", "floor", "idled", "level", "mark"),
        *("target", "time"),
    )

    def __init__(self, config: EnergyConfig, agent: Address, capacity: float, share: float, offset: float) -> None:
        self._config, self._agent, self._capacity, self._offset = config, agent, capacity, offset
        self.level = self.first = capacity * share
        self.floor = capacity * config.reserve * (1.0 - ROUNDING)
        least = capacity * config.reserve + config.per_turn
        self.target = min(least, capacity) if config.resume is None else capacity * config.resume
        self.time = self.charged = self.idled = 0.0
        self.mark = (0.0, self.level, 0.0, 0.0, 0.0)

    def _lines(self, time: float) -> Iterator[tuple[float, float, float]]:
        """(power of the charger, of idling, until when) from a time on."""
        idle, recharge = self._config.idle, self._config.recharge
        parts = iter([(0.0, math.inf)]) if recharge is None else recharge.charging(self._agent, time, self._offset)
        return ((power, idle, until) for power, until in parts)

    def _along(self, level: float, power: float, idle: float, lasts: float) -> float:
        """The level after a while."""
        slope = power - idle
        if slope >= 0.0:
            return min(level + slope * lasts, max(level, self._capacity))
        return max(level + slope * lasts, min(level, 0.0))

    def settle(self, now: float) -> None:
        """Bring it up to now."""
        if now > self.time:
            self.level, charged, idled = self._over(now)
            self.charged, self.idled, self.time = self.charged + charged, self.idled + idled, now

    def back(self, spent: float) -> None:
        """Go back to the mark, but for what has been spent: ``spent`` in all."""
        self.time, self.level, self.charged, self.idled, before = self.mark
        self.level -= spent - before

    def _over(self, end: float) -> tuple[float, float, float]:
        """(level, what has come, what has gone) from its time to a later one, without periods that change nothing."""
        now, level, charged, idled = self.time, self.level, 0.0, 0.0
        period = math.inf if self._config.recharge is None else self._config.recharge.period
        lines, marks = self._lines(now), deque[tuple[float, float, float]](maxlen=3)
        while True:
            power, idle, until = next(lines)
            lasts, before, now = min(until, end) - now, level, min(until, end)
            level = self._along(level, power, idle, lasts)
            gone = min(idle * lasts, max(before, 0.0) + power * lasts)  # an empty one takes what comes in
            idled += gone
            room = max(self._capacity - before, 0.0)
            charged += power * lasts if power < idle else gone + min((power - idle) * lasts, room)
            if now >= end:
                return level, charged, idled
            marks.append((level, charged, idled))
            periods = math.floor((end - now) / period) - 1
            if periods > 0 and len(marks) == 3 and marks[0][0] == level:
                charged += periods * (charged - marks[0][1])
                idled += periods * (idled - marks[0][2])
                lines = self._lines(now + periods * period - lasts / 2)  # in the line that has ended, so many later
                now = next(lines)[2]
                marks.clear()

    def when(self, time: float, level: float, wanted: float, above: bool) -> float:
        """When the level is at least (at most) what is wanted, if nothing but time passes; inf: never.

        Args:
            time, level: what it begins with.
            above: whether it is to rise.
        """
        marks, recharge = list[float](), self._config.recharge
        repeats = recharge is not None and recharge.period < math.inf
        for place, (power, idle, until) in enumerate(self._lines(time)):
            if (level >= wanted) if above else (level <= wanted):
                return time
            slope = power - idle
            if (slope > 0.0) if above else (slope < 0.0):
                # Late in a long run less than the least step of the clock may be missing: a step it is.
                reached = max(time + (wanted - level) / slope, math.nextafter(time, math.inf))
                if reached <= until and (above or wanted >= 0.0) and wanted <= self._capacity:
                    return reached
            level, time = self._along(level, power, idle, until - time) if until < math.inf else level, until
            if not repeats and place >= FORESEEN:
                break
            if repeats and place % 2:  # once around, after which everything goes on likewise
                marks.append(level)
                if len(marks) > 2 and ((marks[-1] <= marks[-2]) if above else (marks[-1] >= marks[-2])):
                    break
        return math.inf

    def at(self, time: float) -> float:
        """The level at a time from now on, if nothing but time passes."""
        return self._over(time)[0] if time > self.time else self.level

    @property
    def flat_at(self) -> float:
        """When the level falls to the reserve, if nothing but time passes."""
        if self._config.idle == 0.0 and self.level > self.floor:
            return math.inf
        return self.when(self.time, self.level, self.floor, above=False)

    def ready_at(self, time: float, heals: float = math.inf) -> float:
        """When it can be used again, from a time on: it may have fallen to the reserve before, and not be charged."""
        if (flat := self.flat_at) > time:
            return time
        level = self.at(flat)
        while flat <= time and flat < heals:
            if (charged := self.when(flat, level, self.target, above=True)) > time:
                return charged
            flat = self.when(charged, max(level, self.target), self.floor, above=False)
            level = min(level, self.floor)
        return time
