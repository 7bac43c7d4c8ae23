"""The batteries of a run: what agents spend, and when one is down for want of energy.

Only an agent that does something, or is sent something, has its battery looked at.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from coband.simulator.core.clock.clock import Clock
from coband.simulator.core.hosts.energy import ROUNDING, Battery, EnergyConfig
from coband.simulator.core.hosts.stays import Stays
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.invariants import InvariantViolation

TURNS, UP, DOWN = "turns", "up", "down"


class Batteries:
    """Books what agents spend.

    Args:
        last: when a turn was taken, or something reached a node, for the last time so far.

    Attributes:
        spent: joules by agent and purpose: ``turns``, ``up``, ``down``.
        total: of all agents so far.
        heals: from when on nobody goes down.
        ran_out: when agents fell below their reserve for the first time, of those that did.
        drained: called with an agent that has spent something, and whether it is below the reserve now.
    """

    drained: Callable[[Address, bool], None]

    def __init__(
        self,
        config: EnergyConfig,
        agents: int,
        streams: Streams,
        clock: Clock,
        stays: Stays | None = None,
        heals: float = math.inf,
        last: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._config, self._clock, self._stays, self.heals, self._last = config, clock, stays, heals, last
        self._capacity = np.maximum(config.capacity.draw(streams("faults", 0, "capacity"), agents), 0.0)
        self._share = np.clip(config.level.draw(streams("faults", 0, "level"), agents), 0.0, 1.0)
        self._offset = streams("faults", 0, "recharge").random(agents)
        self._made: dict[Address, Battery] = {}
        self.spent: dict[Address, dict[str, float]] = defaultdict(lambda: {TURNS: 0.0, UP: 0.0, DOWN: 0.0})
        self.total = 0.0
        self.ran_out: dict[Address, float] = {}

    def of(self, agent: Address) -> Battery:
        found = self._made.get(agent)
        if found is None:
            parts = (float(column[agent]) for column in (self._capacity, self._share, self._offset))
            found = self._made[agent] = Battery(self._config, agent, *parts)
            if self._stays is not None:
                found.time = float(self._stays.joins[agent])
                found.mark = (found.time, *found.mark[1:])
        return found

    def settle(self, agent: Address, now: float) -> None:
        """Bring an agent's battery up to now; `at_end` can go back if nothing happens in the run any more."""
        battery = self.of(agent)
        last = self._last() if self._stays is None else min(self._last(), float(self._stays.leaving[agent]))
        if battery.time <= last:
            battery.mark = battery.time, battery.level, battery.charged, battery.idled, self.spent_by(agent)
        battery.settle(now)

    def turns(self, agent: Address, pulls: int) -> float:
        """An agent has taken a turn; what turns and messages of all agents have taken so far."""
        self._spend(agent, TURNS, self._config.per_turn * pulls)
        return self.total

    def up(self, agent: Address, bits: int) -> None:
        """An agent has put bits on a link."""
        if agent >= 0:
            self._spend(agent, UP, self._config.per_bit_up * bits)

    def down(self, agent: Address, bits: int) -> None:
        """Bits have reached an agent."""
        if agent >= 0:
            self._spend(agent, DOWN, self._config.per_bit_down * bits)

    def _spend(self, agent: Address, what: str, joules: float) -> None:
        if joules:
            battery = self.of(agent)
            self.settle(agent, self._clock.now)
            battery.level -= joules
            self.spent[agent][what] += joules
            self.total += joules
            self.drained(agent, battery.level <= battery.floor)

    def spent_by(self, agent: Address) -> float:
        """What an agent's turns and messages have taken so far."""
        return sum(self.spent.get(agent, {}).values())

    def is_flat(self, agent: Address) -> bool:
        """Whether an agent is below its reserve by what it has done last, and nothing has healed it."""
        battery = self._made.get(agent)
        return battery is not None and battery.level <= battery.floor and self._clock.now < self.heals

    # --- at the end

    def at_end(self, agents: int, now: float) -> None:
        """Bring all batteries to the end of the run; of some it is known how they go on, since they were asked for.

        Raises:
            InvariantViolation: a battery does not hold what has come, less what has gone.
        """
        for agent in range(agents):
            battery, end = self.of(agent), now
            if self._stays is not None:
                end = min(now, float(self._stays.leaving[agent]))
            if battery.time > end:
                battery.back(self.spent_by(agent))
                if self.ran_out.get(agent, 0.0) > end:
                    del self.ran_out[agent]
            if (flat := battery.flat_at) <= end:
                self.ran_out.setdefault(agent, flat)
            battery.settle(end)
            held = battery.first + battery.charged - battery.idled - self.spent_by(agent)
            moved = battery.charged + battery.idled
            if not math.isclose(held, battery.level, rel_tol=ROUNDING, abs_tol=ROUNDING * (1.0 + moved)):
                text = f"the battery of agent {agent} holds {battery.level:g} J; what came and went makes it {held:g} J"
                raise InvariantViolation(text)

    def totals(self, agents: int) -> dict[str, int | float]:
        """Numbers of the result."""
        batteries = [self.of(agent) for agent in range(agents)]
        idled = math.fsum(battery.idled for battery in batteries)
        return {
            "energy": self.total + idled,
            **{f"energy_{what}": math.fsum(by[what] for by in self.spent.values()) for what in (TURNS, UP, DOWN)},
            "energy_idle": idled,
            "energy_charged": math.fsum(battery.charged for battery in batteries),
            "ran_out": len(self.ran_out),
        }

    def by_agent(self, agent: Address) -> dict[str, int | float | None]:
        """What is known of one agent."""
        battery = self.of(agent)
        energy = self.spent_by(agent) + battery.idled
        return {"energy": energy, "battery": battery.level, "ran_out": self.ran_out.get(agent)}

    def empty(self, agent: Address, time: float) -> None:
        """An agent fell below its reserve at a time."""
        self.ran_out.setdefault(agent, time)
