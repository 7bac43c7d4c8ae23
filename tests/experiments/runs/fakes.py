"""A small algorithm, a small world and a scenario of both, for tests of what surrounds them; workers can import it."""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self
from unittest.mock import patch

import numpy as np
from pydantic import BaseModel

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.clock.schedule import Rounds
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.metrics import CORE
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import ALL_AGENTS, SERVER, Agent, NodeContext, Outbox, Server
from coband.simulator.core.plan import Ties
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.config import MessagesConfig
from coband.simulator.experiments.runs import address
from coband.simulator.experiments.runs.study import Study, study_of
from coband.simulator.metrics import Metric, by_name


class Config(BaseModel):
    """Every ``every`` pulls an agent tells the server."""

    every: int = 2


class Sums(Message):
    kind: ClassVar[str] = "sums"
    rewards: np.ndarray = payload()


class Mean(Message):
    kind: ClassVar[str] = "mean"
    value: float = payload()


class FakeAgent(Agent):
    """Pulls arm after arm and uploads its rewards."""

    def __init__(self, setting: NodeContext) -> None:
        super().__init__(setting)
        self._rewards: list[float] = []
        self._turn = 0

    def choose(self, arms: ArmSet) -> int:
        self._turn += 1
        return self._turn % len(arms)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        self._rewards.append(reward)
        self.unshared += 1
        if self.unshared < self.context.config.every:
            return []
        self.note("trigger", value=self.unshared)
        rewards, self._rewards = np.array(self._rewards), []
        pulls, self.unshared = self.unshared, 0
        return [(SERVER, Sums(rewards=rewards, pulls=pulls, round=self._turn))]

    def receive(self, message: Message, source: int) -> Outbox:
        return []


class FakeServer(Server):
    """Adds up and tells everyone."""

    def receive(self, message: Message, source: int) -> Outbox:
        self.applied += message.pulls
        self.rounds += 1
        self.note("model", version=self.rounds)
        return [(ALL_AGENTS, Mean(value=float(message.rewards.mean()), version=self.rounds, round=message.round))]

    def report(self) -> dict[str, float | int]:
        return {"dictionary_size": self.rounds, "skipped_points": 0}


ALGORITHM = Algorithm("fake", FakeAgent, "tests.experiments.runs.fakes:FakeServer", Config, "For tests.", "none")


class FakeWorld:
    """Four arms; does ``mischief`` at the 20th turn of agent 0, or is "endless": it takes hours."""

    dimension = 2
    fixed_arms = True

    def __init__(self, rng: np.random.Generator, mischief: str) -> None:
        self._arms = rng.random((4, 2))
        self._mischief = mischief

    def arms(self, agent: int, turn: int) -> np.ndarray:
        return self._arms

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        if (agent, turn) == (0, 20):
            self._misbehave()
        if self._mischief == "endless":
            time.sleep(0.004 if turn < 4000 else 10.0)
        means = self._arms.sum(axis=1)
        return float(means[arm]), float(means.max() - means[arm])

    def _misbehave(self) -> None:
        match self._mischief:
            case "error":
                raise ZeroDivisionError("a bug")
            case "kill":
                os._exit(9)
            case "interrupt":
                interrupt()
            case "negative":
                self._arms[:] = np.nan


def interrupt() -> None:
    """Ctrl-C, as a process in the foreground of a terminal takes it, even where this one ignores it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, handler)


class FakeProblem(BaseModel):
    """``mischief``: (replication, what) pairs; "negative" makes the regret invalid."""

    mischief: tuple[tuple[int, str], ...] = ()

    def attachment(self, base: Path | None) -> None:
        """No file lies beside the scenario."""

    def build(self, streams: Any, agents: int, base: Path | None = None) -> Any:
        mischief = dict(self.mischief).get(streams.replication, "")
        world = FakeWorld(streams("world", 0, "arms"), mischief)
        if mischief == "negative":
            pull = world.pull
            world.pull = lambda agent, turn, arm: (pull(agent, turn, arm)[0], -1.0 if turn == 20 else 0.0)  # type: ignore[method-assign]
        return world


@dataclass(frozen=True)
class FakeEntry:
    algorithm: Algorithm
    label: str
    config: BaseModel
    ties: Ties = "random"


@dataclass(frozen=True)
class FakeExpect:
    label: str
    count: str
    equals: Any = None
    at_most: Any = None
    at_least: Any = None
    less_than: Any = None
    of: str = "each"
    more_than: Any = None
    at: Any = None

    @property
    def other(self) -> Any:
        return self.less_than or self.more_than


@dataclass(frozen=True)
class FakeScenario:
    """Stands in for a validated scenario."""

    name: str = "fake"
    seed: int = 3
    replications: int = 2
    count: int = 5
    turns: int = 40
    trace: str = "protocol"
    mischief: tuple[tuple[int, str], ...] = ()
    labels: tuple[str, ...] = ("Often", "Seldom")
    expect: tuple[FakeExpect, ...] = ()
    network: NetworkConfig = field(default_factory=NetworkConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    checks: str = "cheap"
    share: bool = True
    messages: MessagesConfig = field(default_factory=MessagesConfig)
    adversaries: tuple[Adversary, ...] = ()
    base: Path = Path()
    idle: str = ""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return by_name(CORE)

    @property
    def agents(self) -> AgentsConfig:
        return AgentsConfig(count=self.count)

    @property
    def schedule(self) -> Rounds:
        return Rounds(kind="rounds", turns=self.turns)

    @property
    def problem(self) -> FakeProblem:
        return FakeProblem(mischief=self.mischief)

    @property
    def algorithms(self) -> tuple[FakeEntry, ...]:
        return tuple(FakeEntry(ALGORITHM, label, Config(every=number + 2)) for number, label in enumerate(self.labels))

    def to_yaml(self) -> str:
        return f"name: {self.name}\n"

    def resolved(self) -> dict[str, Any]:
        return {"name": self.name, "schedule": {"turns": self.turns}}

    def overridden(self, overrides: tuple[str, ...]) -> Self:
        changes: dict[str, Any] = {}
        for override in overrides:
            key, _, text = override.partition("=")
            changes[key] = text if key == "trace" else int(text)
        return replace(self, **changes)


def study(scenario: Any, *arguments: Any) -> Study:
    """The study of a fake scenario; its addresses disregard the code in this folder, which takes long to read."""
    with patch.object(address, "foreign", lambda module: False):
        return study_of(scenario, *arguments)
