"""Notes of every pull while a run goes on, and the age of information: what the decision of a pull did not know of.

At the decision of a pull, with n pulls of all agents made before it and k of them in the model that chose the arm
(`Agent.pulls_in_model`), the age is n - k (the version age of information, as in Kaul, Yates and Gruteser 2012, with
pulls in the place of time). The age in time is the simulated time since the newest message from which the model has
learnt was sent by its origin: for so long nothing newer has come from other agents.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.ledger import Ledger

NEVER = -1.0
"""In the place of a time: no message has been learnt from."""


def numbers() -> array[float]:
    """Notes of millions of pulls, at 8 bytes each."""
    return array("d")


def counts() -> array[int]:
    """The same for whole numbers."""
    return array("q")


def small_counts() -> array[int]:
    """The same at 4 bytes each, for those below two thousand millions."""
    return array("i")


@dataclass(slots=True)
class Decisions:
    """What is noted of every decision while a run goes on, in the order of pulls; nothing where nobody counts.

    Attributes:
        in_model: pulls in the model.
        newest: when the newest message was sent from which the agent had learnt; NEVER without one.
        events: number of the event that chose the arm.
    """

    in_model: array[int] = field(default_factory=counts)
    newest: array[float] = field(default_factory=numbers)
    events: array[int] = field(default_factory=counts)

    def note(self, in_model: int | None, newest: float, event: int) -> None:
        """Take note of a decision; ``in_model``: None if nobody counts."""
        if in_model is not None:
            self.in_model.append(in_model)
            self.newest.append(newest)
            self.events.append(event)


@dataclass(frozen=True)
class Ages:
    """The age of every decision, in the order of pulls; nothing where the algorithm does not count.

    Attributes:
        pulls: pulls that each decision did not know of, (n,).
        times: simulated time since the newest message that it had learnt from was sent, (n,); NaN without one.
        events: number of the event that chose the arm.
    """

    pulls: IntArray
    times: FloatArray
    events: Sequence[int]

    @classmethod
    def of(cls, decisions: Decisions, times: Sequence[float]) -> Ages:
        """The ages of decisions at some times; every pull is one decision."""
        if len(decisions.in_model) < len(times):
            return NO_AGES
        newest = np.asarray(decisions.newest)
        since = np.where(newest == NEVER, math.nan, np.asarray(times) - newest)
        return cls(np.arange(len(newest)) - np.asarray(decisions.in_model, dtype=np.intp), since, decisions.events)

    @property
    def known(self) -> bool:
        """Whether there is an age of any decision."""
        return bool(self.pulls.size)

    def means(self) -> dict[str, float]:
        """The metrics of a result; empty where ages are not known."""
        if not self.known:
            return {}
        found = {"mean_age": float(np.mean(self.pulls))}
        heard = self.times[~np.isnan(self.times)]
        return found | ({"mean_age_time": float(heard.mean())} if heard.size else {})

    def series(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean age of the decisions between points of a curve.

        Args:
            ends: numbers of the last decision before each point, from 1, ascending, (points,).

        Returns:
            Mean age in pulls and in time, each (points,); NaN where no decision in between has one.
        """
        return _means_between(self.pulls.astype(np.float64), ends), _means_between(self.times, ends)


NO_AGES = Ages(np.empty(0, dtype=np.intp), np.empty(0), ())


def _means_between(values: FloatArray, ends: FloatArray) -> FloatArray:
    """Means of the values up to each end, from the end before on; NaN is left out."""
    there = ~np.isnan(values)
    last = np.asarray(ends, dtype=np.intp) - 1
    sums, counts = np.cumsum(np.where(there, values, 0.0))[last], np.cumsum(there)[last]
    total, number = np.diff(sums, prepend=0.0), np.diff(counts, prepend=0)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


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
    earned: array[float] = field(default_factory=numbers)
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
        self.earned.append(self.reward)
        if self.on_pull is not None and not len(self.times) % 64:
            self.on_pull(self.made)

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
            self.earned.append(self.reward)
        if self.on_pull is not None:
            for noted in range(before + 64 - before % 64, len(self.times) + 1, 64):
                self.on_pull(self.made - len(self.times) + noted)

    def may_start(self, now: float) -> bool:
        """False once the schedule's duration is over."""
        return self.duration is None or now < self.duration

    def describe_choice(self, features: FloatArray, arm: int) -> str | None:
        """The arm set for the trace at level ``full``."""
        return json.dumps({"arm": int(arm), "arms": features.tolist()}) if self.full else None
