"""The event loop, the network, the ledger and the trace: protocols without mathematics."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from benchmarks import bandits
from benchmarks.measuring import Cases, Measured, plan, seconds, simulated, together
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox, Server
from coband.simulator.core.result import RunResult


class TwoArms:
    """A fixed arm set of two, with rewards 0 and 1."""

    dimension, fixed_arms = 2, True
    _arms = np.eye(2)

    def arms(self, agent: int, turn: int) -> FloatArray:
        return self._arms

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return float(arm), 1.0 - arm


class Sum(Message):
    kind: ClassVar[str] = "sum"
    total: float = payload()


class EveryConfig(Config):
    """How often an agent reports."""

    every: int = 1
    """Own turns between two reports."""


class Reporter(Agent):
    """Pulls the second arm, and reports the sum of its rewards every so often."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._total, self._every = 0.0, context.config.every

    def choose(self, arms: ArmSet) -> int:
        return 1

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self._total += reward
        self.unshared += 1
        if self.unshared < self._every:
            return []
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, Sum(total=self._total, pulls=pulls))]

    def receive(self, message: Message, source: Address) -> Outbox:
        return []


class Adder(Server):
    """Answers each report with the sum of all."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._total = 0.0

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Sum)
        self._total += message.total
        self.applied += message.pulls
        return [(source, Sum(total=self._total))]


BARE = Algorithm(
    name="bare",
    agent=Reporter,
    server="benchmarks.scale:Adder",
    config=EveryConfig,
    summary="Sums without mathematics.",
    reference="none",
)


def bare_run(agents: int, turns: int) -> RunResult:
    """Any agent takes the next turn and reports to the server, which answers; a message takes some time."""
    schedule, delay = {"kind": "one_at_a_time", "turns": turns}, {"latency": {"kind": "constant", "value": 0.5}}
    return simulated(BARE, {"every": 1}, lambda streams: TwoArms(), plan(agents, schedule, network=delay))


def tracing(turns: int) -> Measured:
    """A run with its protocol trace handed to a sink against the same run with tracing off (ratio near 1 is good)."""
    config = {"alpha": 0.1, "kernel": {"kind": "gaussian", "gamma": 0.1}}
    off, first = seconds(lambda: bandits.run("async_kernel_ucb", config, 100, turns))
    on, second = seconds(lambda: bandits.run("async_kernel_ucb", config, 100, turns, trace="protocol"))
    return Measured(on, off, first.fingerprint == second.fingerprint, "textbook column: protocol trace")


def quiet_run(agents: int, rounds: int, cohorts: bool = True) -> RunResult:
    """Rounds in which nothing is sent, an event for each or for each turn."""
    asked = plan(agents, {"kind": "rounds", "turns": rounds}, cohorts=cohorts)
    return simulated(BARE, {"every": 2 * rounds}, lambda streams: TwoArms(), asked)


CASES: Cases = {
    "trace": (lambda: tracing(10_000), "protocol trace; target at most 1.15"),
    "turns": (
        lambda: together(lambda cohorts: quiet_run(1000, 50, cohorts)),
        "turns in which nothing happens; target 3 us",
    ),
}
