"""The event loop, the network, the ledger and the trace: protocols without mathematics."""

from __future__ import annotations

import resource
from typing import ClassVar

import numpy as np
import simpy

from benchmarks import bandits, textbook
from benchmarks.measuring import Cases, Figure, Figures, Measured, plan, seconds, simulated, together
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.clock import DELIVERY, Clock
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


def bare_run(agents: int, turns: int, every: int) -> tuple[float, int]:
    """(CPU seconds, messages) of a run whose trace is off: any agent takes the next turn, a message takes some time."""
    schedule, delay = {"kind": "one_at_a_time", "turns": turns}, {"latency": {"kind": "constant", "value": 0.5}}
    asked = plan(agents, schedule, network=delay)
    found, result = seconds(lambda: simulated(BARE, {"every": every}, lambda streams: TwoArms(), asked), 1)
    return found, int(result.totals["messages"])


def flat(counts: tuple[int, ...], least: int, most: float) -> Figure:
    """The time of a turn, with a report every tenth one, for growing numbers of agents; it should not grow.

    Nodes are made when they first act, so every agent has ten turns on average, or the run ``least``.
    """
    turns = {agents: max(least, 10 * agents) for agents in counts}
    bare_run(counts[0], least, 10)
    times = [1e6 * bare_run(agents, turns[agents], 10)[0] / turns[agents] for agents in counts]
    return Figure(
        f"{'/'.join(f'{time:.0f}' for time in times)} us",
        f"largest <= {most:g} x least",
        max(times) <= most * min(times),
    )


def messages(turns: int, target: float) -> Figure:
    """Messages a second, each sent, counted, delayed and delivered, with what the turns that send them take."""
    taken, sent = min(bare_run(100, turns, 1) for _ in range(3))
    return Figure(f"{sent / taken / 1e3:.0f}k/s", f"{target / 1e3:g}k/s", sent / taken >= target)


def million(limit: float, megabytes: float) -> Figure:
    """10^6 turns of 10^5 agents with a server."""
    taken, _ = bare_run(100_000, 1_000_000, 10)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    met = taken <= limit and memory <= megabytes
    return Figure(f"{taken:.0f} s, {memory:.0f} MB", f"{limit:g} s, {megabytes:g} MB", met)


def bare_messages(count: int) -> Measured:
    """Delayed messages: one bare event each against a process and a store."""

    def bare() -> int:
        clock, heard = Clock(), []
        for message in range(count):
            clock.at(1.0, DELIVERY, 0, heard.append, message)
        clock.run()
        return len(heard)

    def timeouts() -> None:
        env, heard = simpy.Environment(), []
        for message in range(count):
            env.timeout(1.0, message).callbacks.append(heard.append)
        env.run()

    fast, heard = seconds(bare)
    slow, _ = seconds(lambda: textbook.process_messages(count))
    idiom, _ = seconds(timeouts)
    note = f"{count / fast / 1e3:.0f}k messages/s, {idiom / fast:.2f} times SimPy's timeouts"
    return Measured(slow, fast, heard == count, note)


def tracing(turns: int) -> Measured:
    """A run with its protocol trace handed to a sink against the same run with tracing off (ratio near 1 is good)."""
    config = {"alpha": 0.1, "kernel": {"kind": "gaussian", "gamma": 0.1}}
    off, first = seconds(lambda: bandits.run("async_kernel_ucb", config, 100, turns))
    on, second = seconds(lambda: bandits.run("async_kernel_ucb", config, 100, turns, trace="protocol"))
    return Measured(on, off, first.fingerprint == second.fingerprint, "textbook column: protocol trace")


def turns(agents: int, rounds: int) -> Measured:
    """Turns in which nothing is sent, an event for each round against an event for each turn."""

    def run(cohorts: bool) -> RunResult:
        asked = plan(agents, {"kind": "rounds", "turns": rounds}, cohorts=cohorts)
        return simulated(BARE, {"every": 2 * rounds}, lambda streams: TwoArms(), asked)

    return together(run)


CASES: Cases = {
    "messages": (lambda: bare_messages(100_000), "delayed messages; target 450k/s"),
    "trace": (lambda: tracing(10_000), "protocol trace; target at most 1.15"),
    "turns": (lambda: turns(1000, 50), "turns in which nothing happens; target 3 us"),
}
FIGURES: Figures = {
    "flat": (
        lambda: flat((10, 100, 1000, 10_000, 100_000), 50_000, 2.0),
        "a turn without mathematics, N = 10, 100, 10^3, 10^4, 10^5",
    ),
    "exchange": (lambda: messages(20_000, 110e3), "messages with agents, ledger, checks and fingerprint, trace off"),
    "million": (lambda: million(15.0, 600.0), "10^5 agents with a server, 10^6 turns"),
}
