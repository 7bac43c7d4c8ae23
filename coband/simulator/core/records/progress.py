"""Notes of every pull while a run goes on."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.records.age import Decisions, counts, numbers, small_counts
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.ledger import Ledger


@dataclass
class Progress:
    """What the engine notes of every pull or batch of pulls.

    ``spend`` books the energy of an agent's pulls, and says what all agents have spent; None without batteries.
    """

    ledger: Ledger
    duration: float | None
    on_pull: Callable[[int], None] | None
    full: bool
    realised: bool = False
    spend: Callable[[int, int], float] | None = None
    times: array[float] = field(default_factory=numbers)
    regrets: array[float] = field(default_factory=numbers)
    energies: array[float] = field(default_factory=numbers)
    scalars: array[int] = field(default_factory=counts)
    pulls: array[int] = field(default_factory=counts)
    reward: float = 0.0
    agents: array[int] = field(default_factory=small_counts)
    made: int = 0
    outstanding: int = 0
    """Pulls whose rewards their agents do not have."""
    last_reward: float = 0.0
    """When a reward last came after its pull."""
    decisions: Decisions = field(default_factory=Decisions)

    def pulled(self, agent: int, now: float, regret: float, reward: float, seq: int, pulls: int = 1) -> None:
        """Take note of an agent's pull or batch of ``pulls``; its messages are in the ledger already."""
        if not (regret >= 0 or self.realised):
            raise InvariantViolation(f"the pseudo-regret of a turn is {regret}, and must be a number >= 0", seq)
        if self.spend is not None:
            self.energies.append(self.spend(agent, pulls))
        self.agents.append(agent)
        self.pulls.append(pulls)
        self.made += pulls
        self.times.append(now)
        self.regrets.append(regret)
        self.scalars.append(self.ledger.scalars)
        self.reward += reward
        if self.on_pull is not None and not len(self.times) % 64:
            self.on_pull(len(self.times))

    def pulled_together(
        self, agents: Sequence[int], now: float, outcomes: Sequence[tuple[float, float]], scalars: Sequence[int]
    ) -> None:
        """Take note of pulls of several agents at one moment, one each.

        Args:
            agents: whose.
            now: when.
            outcomes: reward and regret of each; no regret is negative unless the world's regret is realised.
            scalars: what the ledger had counted after each agent's turn.
        """
        before = len(self.times)
        self.agents.extend(agents)
        self.pulls.extend([1] * len(agents))
        self.made += len(agents)
        self.times.extend([now] * len(agents))
        self.regrets.extend(regret for _, regret in outcomes)
        self.scalars.extend(scalars)
        for reward, _ in outcomes:
            self.reward += reward
        if self.on_pull is not None:
            for noted in range(before + 64 - before % 64, len(self.times) + 1, 64):
                self.on_pull(noted)

    def may_start(self, now: float) -> bool:
        """False once the schedule's duration is over."""
        return self.duration is None or now < self.duration

    def describe_choice(self, features: FloatArray, arm: int) -> str | None:
        """The arm set for the trace at level ``full``."""
        return json.dumps({"arm": int(arm), "arms": features.tolist()}) if self.full else None
