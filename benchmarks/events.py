"""The event loop and the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import TypeAdapter

from benchmarks import textbook
from benchmarks.bandits import simulated
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.clock import DELIVERY, Clock
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, Plan, RunResult
from coband.simulator.core.message import Message
from coband.simulator.core.node import Address, Agent, Outbox
from coband.simulator.core.randomness.streams import Streams


def messages(count: int) -> Measured:
    """Delayed messages: one bare event each against a process and a store."""

    def bare() -> int:
        clock, heard = Clock(), []
        for message in range(count):
            clock.at(1.0, DELIVERY, 0, heard.append, message)
        clock.run()
        return len(heard)

    fast, heard = seconds(bare)
    slow, _ = seconds(lambda: textbook.process_messages(count))
    return Measured(slow, fast, heard == count, f"{count / fast / 1e3:.0f}k messages/s")


class Idle(Agent):
    """Pulls the first arm and says nothing."""

    def choose(self, arms: ArmSet) -> int:
        """The first arm."""
        return 0

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Count the pull."""
        self.unshared += 1
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        """Nobody says anything."""
        return []


class Silence:
    """Two arms with the reward 1."""

    dimension, fixed_arms = 2, True
    features = np.eye(2)

    def arms(self, agent: int, turn: int) -> FloatArray:
        """Both."""
        return self.features

    def means(self, agent: int, turn: int) -> FloatArray:
        """1 each."""
        return np.ones(2)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """Reward 1, no regret."""
        return 1.0, 0.0

    def describe(self) -> dict[str, Any]:
        """Nothing."""
        return {}


def turns(agents: int, rounds: int) -> Measured:
    """Turns in which nothing happens, an event for each round against an event for each turn."""
    idle = Algorithm(name="idle", agent=Idle, server=None, config=Config, summary="", reference="")

    def simulate(cohorts: bool) -> RunResult:
        given = {"agents": {"count": agents}, "schedule": {"kind": "rounds", "turns": rounds}, "network": {}}
        plan = TypeAdapter(Plan).validate_python({**given, "trace": "off", "cohorts": cohorts})
        return Engine(plan, idle, Config(), Silence(), Streams(0)).run()

    fast, together = seconds(lambda: simulate(True))
    slow, apart = seconds(lambda: simulate(False))
    note = f"{1e6 * fast / agents / rounds:.1f} us a turn"
    return Measured(slow, fast, together.fingerprint == apart.fingerprint, note)


def tracing(turns: int) -> Measured:
    """A run with its protocol trace handed to a sink against the same run with tracing off (ratio near 1 is good)."""
    config = {"alpha": 0.1, "kernel": {"kind": "gaussian", "gamma": 0.1}}
    off, first = seconds(lambda: simulated("async_kernel_ucb", config, 100, turns))
    on, second = seconds(lambda: simulated("async_kernel_ucb", config, 100, turns, "protocol"))
    return Measured(on, off, first.fingerprint == second.fingerprint, "textbook column: protocol trace")


CASES: Cases = {
    "messages": (lambda: messages(100_000), "delayed messages; target 400k/s"),
    "turns": (lambda: turns(1000, 50), "turns in which nothing happens; target 3 us, textbook column: one by one"),
    "trace": (lambda: tracing(10_000), "protocol trace; target at most 1.15"),
}
