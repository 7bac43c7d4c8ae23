"""Notes of every pull while a run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.audit.ledger import Ledger


@dataclass
class Progress:
    """What the engine notes of every pull or batch of pulls."""

    ledger: Ledger
    duration: float | None
    on_pull: Callable[[int], None] | None
    full: bool
    realised: bool = False
    times: list[float] = field(default_factory=list)
    regrets: list[float] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    pulls: list[int] = field(default_factory=list)
    reward: float = 0.0
    agents: list[int] = field(default_factory=list)
    made: int = 0

    def pulled(self, agent: int, now: float, regret: float, reward: float, seq: int, pulls: int = 1) -> None:
        """Take note of an agent's pull or batch of ``pulls``; its messages are in the ledger already."""
        if regret < 0 and not self.realised:
            raise InvariantViolation(f"the pseudo-regret of a turn is {regret}, which must not be negative", seq)
        self.agents.append(agent)
        self.pulls.append(pulls)
        self.made += pulls
        self.times.append(now)
        self.regrets.append(regret)
        self.scalars.append(self.ledger.scalars)
        self.reward += reward
        if self.on_pull is not None and not len(self.times) % 64:
            self.on_pull(len(self.times))

    def may_start(self, now: float) -> bool:
        """False once the schedule's duration is over."""
        return self.duration is None or now < self.duration

    def describe_choice(self, features: FloatArray, arm: int) -> str | None:
        """The arm set for the trace at level ``full``."""
        return json.dumps({"arm": int(arm), "arms": features.tolist()}) if self.full else None
