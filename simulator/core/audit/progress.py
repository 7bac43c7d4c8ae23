"""What a run gives: notes of every pull while it goes on, and the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coband.simulator.arrays import FloatArray
from coband.simulator.core.audit.invariants import Audit, InvariantViolation
from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.audit.per_agent import AgentMetrics
from coband.simulator.core.node import Client, Server


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


@dataclass
class RunResult:
    """What one run gives.

    Attributes:
        totals: the counts of the ledger and the nodes' own numbers.
        times, regret, scalars: after each pull or batch, simulated time, cumulative pseudo-regret and scalars.
        turns_series: cumulative number of pulls after each pull or batch.
        by_agent: what is known of each agent alone, in order.
        fingerprint: of the trace.
        graph: how the agents' graph was made, and its size; None in a star.
        stalled: turns that the schedule allowed and that were never taken, since agents waited in vain.
    """

    turns: int
    regret: float
    reward: float
    totals: dict[str, int | float]
    rounds: int
    simulated_time: float
    fingerprint: str
    graph: str | None
    stalled: int
    times: FloatArray
    regret_series: FloatArray
    scalars_series: NDArray[np.int64]
    ledger: Ledger
    audit: Audit
    turns_series: NDArray[np.int64]
    by_agent: list[AgentMetrics]
    agents: list[Client]
    server: Server | None
