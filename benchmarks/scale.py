"""The event loop, the network and the ledger at work for protocols without mathematics."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.measuring import Figure, Figures, level, plan
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, Plan
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox, Server
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.job import few_collections


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


@dataclass
class Cost:
    """CPU seconds of building and of running, turns and messages of the run, and its largest memory in MB so far."""

    build: float
    run: float
    turns: int
    messages: int
    megabytes: float


def bare_run(agents: int, turns: int, every: int) -> Cost:
    """One run with a trace that is off: any agent takes the next turn, and each message takes some time."""
    delay = {"latency": {"kind": "constant", "value": 0.5}}
    return _cost(
        plan(agents, {"kind": "one_at_a_time", "turns": turns}, network=delay), BARE, {"every": every}, TwoArms()
    )


def linear_run(agents: int, turns: int) -> Cost:
    """The same of FedLinUCB without delays, with d = 5 and 8 arms: an agent sends 30 numbers about every tenth turn."""
    registry = Registry.installed()
    problem = {"kind": "contextual", "arms": {"kind": "ball", "dimension": 5, "count": 8}, "reward": {"kind": "cosine"}}
    world = registry.problems["contextual"].config.model_validate(problem).build(Streams(0), agents)
    asked, algorithm = plan(agents, {"kind": "one_at_a_time", "turns": turns}), registry.algorithms["fed_lin_ucb"]
    with few_collections():
        return _cost(asked, algorithm, {"threshold": 0.5}, world)


def _cost(asked: Plan, algorithm: Algorithm, config: dict[str, Any], world: Any) -> Cost:
    turns = asked.schedule.total_turns(asked.agents.count) or 0
    start = time.process_time()
    engine = Engine(asked, algorithm, algorithm.config.model_validate(config), world, Streams(0))
    built = time.process_time()
    result = engine.run()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    ran = time.process_time() - built
    return Cost(built - start, ran, turns, int(result.totals["messages"]), memory)


def flat(counts: tuple[int, ...], least: int, most: float) -> Figure:
    """The time of a turn, with a report every tenth one, for growing numbers of agents; it should not grow.

    Nodes are made when they first act, so every agent has ten turns on average, or the run ``least``.
    """
    turns = {agents: max(least, 10 * agents) for agents in counts}
    bare_run(counts[0], least, 10)
    return level([1e6 * bare_run(agents, turns[agents], 10).run / turns[agents] for agents in counts], most)


def flat_linear(counts: tuple[int, ...], each: int, most: float) -> Figure:
    """The time of a turn of FedLinUCB, with its messages, for growing numbers of agents with as many turns each."""
    return level([1e6 * linear_run(agents, each * agents).run / (each * agents) for agents in counts], most)


def messages(turns: int, target: float) -> Figure:
    """Messages a second, each sent, counted, delayed and delivered, with what the turns that send them take."""
    with few_collections():
        cost = min((bare_run(100, turns, 1) for _ in range(3)), key=lambda cost: cost.run)
    rate = cost.messages / cost.run
    return Figure(f"{rate / 1e3:.0f}k/s", f"{target / 1e3:g}k/s", rate >= target)


def many(cost: Cost, seconds: float, megabytes: float) -> Figure:
    """Many agents with a server."""
    met = cost.build + cost.run <= seconds and cost.megabytes <= megabytes
    return Figure(f"{cost.build + cost.run:.0f} s, {cost.megabytes:.0f} MB", f"{seconds:g} s, {megabytes:g} MB", met)


FIGURES: Figures = {
    "flat": (
        lambda: flat((10, 100, 1000, 10_000, 100_000), 50_000, 2.0),
        "a turn without mathematics, N = 10, 100, 10^3, 10^4, 10^5",
    ),
    "flat_linear": (
        lambda: flat_linear((300, 1000, 3000, 10_000), 10, 2.0),
        "a turn of FedLinUCB with its messages, 10 turns each of N = 300, 10^3, 3 * 10^3, 10^4",
    ),
    "exchange": (lambda: messages(20_000, 200e3), "messages with agents, ledger, checks and fingerprint, trace off"),
}
FULL_FIGURES: Figures = {
    "million": (lambda: many(bare_run(100_000, 1_000_000, 10), 15.0, 600.0), "10^5 agents with a server, 10^6 turns"),
    "ten_million": (lambda: many(bare_run(1_000_000, 10_000_000, 10), 600.0, 8000.0), "10^6 agents, 10^7 turns"),
    "million_linear": (
        lambda: many(linear_run(100_000, 1_000_000), 25.0, 800.0),
        "FedLinUCB with 10^5 agents, 10^6 turns, 10^5 exchanges",
    ),
}
"""These take minutes."""
