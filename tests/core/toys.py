"""A small world and a small protocol to test the machinery with: no mathematics."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from coband.extensions.conformance.runs import plan_of
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import ALL_AGENTS, SERVER, Address, Agent, NodeContext, Outbox, Server
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records.trace import Row, keep


class ToyWorld:
    """Two arms with rewards 0 and 1; the agents of the toy protocol pull the second."""

    dimension = 2
    fixed_arms = True

    def arms(self, agent: int, turn: int) -> FloatArray:
        return np.eye(2)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        return float(arm) + 0.001 * agent + turn, 1.0 - arm


class Report(Message):
    kind: ClassVar[str] = "report"
    values: FloatArray = payload()


class News(Message):
    kind: ClassVar[str] = "news"
    total: float = payload()


class ToyConfig(Config):
    """The toy's parameters."""

    size: int = 3
    blocking: bool = False
    every: int = 1


class ToyAgent(Agent):
    """Reports every pull, and hears the total."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.heard: list[float] = []
        self.numbers = 0
        self.given_up: list[tuple[int, float]] = []
        self._pulls = 0

    def choose(self, arms: ArmSet) -> int:
        return 1

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self._pulls += 1
        self.unshared += 1
        if self._pulls % self.context.config.every:
            return []
        self.waiting = self.context.config.blocking
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, Report(values=np.full(self.context.config.size, float(self._pulls)), pulls=pulls))]

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, News)
        self.heard.append(message.total)
        self.waiting = False
        return []

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        assert isinstance(message, Report)
        self.given_up.append((recipient, float(message.values[0])))
        self.unshared += message.pulls
        return []


class ToyServer(Server):
    """Counts reports and tells everyone."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.order: list[tuple[int, float]] = []

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, Report)
        self.order.append((source, float(message.values[0])))
        self.applied += message.pulls
        self.rounds += 1
        self.note("apply", round=self.rounds)
        return [(ALL_AGENTS, News(total=float(self.rounds), round=self.rounds))]

    def broken_invariants(self) -> Iterator[str]:
        if self.applied < self.rounds:
            yield "applied fewer pulls than reports"


TOY = Algorithm(
    name="toy", agent=ToyAgent, server="tests.core.toys:ToyServer", config=ToyConfig, summary="A toy.", reference="none"
)


def run(plan: dict[str, Any], seed: int = 0, **config: Any) -> tuple[RunResult, list[Row], Engine]:
    """One run of the toy: the result, all trace rows, and the engine."""
    return run_on_toys(TOY, ToyConfig(**config), plan, seed)


def run_on_graph(
    algorithm: Algorithm,
    config: Config,
    topology: Any,
    agents: int,
    schedule: dict[str, Any],
    seed: int,
    agent: dict[str, Any] | None,
    network: dict[str, Any],
) -> tuple[RunResult, list[Row], Engine]:
    """One run of agents on a graph, in the toy's world, with all checks."""
    plan = {
        "agents": {"count": agents, **(agent or {})},
        "schedule": schedule,
        "network": {"topology": topology, **network},
        "checks": "full",
    }
    return run_on_toys(algorithm, config, plan, seed)


def run_on_toys(
    algorithm: Algorithm, config: Config, plan: dict[str, Any], seed: int
) -> tuple[RunResult, list[Row], Engine]:
    """One run in the toy's world: the result, all trace rows, and the engine."""
    rows: list[Row] = []
    engine = Engine(plan_of(plan), algorithm, config, ToyWorld(), Streams(seed), sink=keep(rows))
    return engine.run(), rows, engine
