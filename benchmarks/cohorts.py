"""Turns taken and prepared together, against one by one: the same runs, event by event."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel, TypeAdapter

from benchmarks.bandits import PROBLEM
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.config import Config
from coband.simulator.core.engine import Engine, Plan, RunResult
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, Outbox
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry


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

    schedule = {"kind": "rounds", "turns": rounds}
    return compared(lambda cohorts: simulated(idle, Config(), Silence, agents, schedule, {}, cohorts), agents * rounds)


def coop(agents: int, trials: int) -> Measured:
    """Coop's turns of a trial together, those of a clique with one solve, against one after the other."""
    algorithm = Registry.installed().algorithms["coop_kernel_ucb"]
    config = algorithm.config.model_validate({"kernel": {"kind": "gaussian", "gamma": 0.5}, "eta": 0.1})
    schedule, network = {"kind": "rounds", "turns": trials}, {"topology": {"kind": "erdos_renyi", "p": 0.7}}

    def world() -> Any:
        return PROBLEM.build(Streams(0), agents)

    run = partial(simulated, algorithm, config, world, agents, schedule, network)
    return compared(run, agents * trials)


def ahead(agents: int, turns: int) -> Measured:
    """Async agents that evaluate the turns up to the next exchange at once against turn by turn."""
    algorithm = Registry.installed().algorithms["async_kernel_ucb"]
    config = algorithm.config.model_validate({"kernel": {"kind": "gaussian", "gamma": 0.1}, "alpha": 0.1})
    schedule = {"kind": "one_at_a_time", "turns": turns}

    def world() -> Any:
        return PROBLEM.build(Streams(0), agents)

    return compared(partial(simulated, algorithm, config, world, agents, schedule, {}), turns)


def simulated(
    algorithm: Algorithm,
    config: BaseModel,
    world: Callable[[], Any],
    agents: int,
    schedule: dict[str, Any],
    network: dict[str, Any],
    cohorts: bool,
) -> RunResult:
    """One run, with turns taken and prepared together or not."""
    given = {"agents": {"count": agents}, "schedule": schedule, "network": network, "trace": "off"}
    plan = TypeAdapter(Plan).validate_python({**given, "cohorts": cohorts})
    return Engine(plan, algorithm, config, world(), Streams(0)).run()


def compared(run: Callable[[bool], RunResult], turns: int) -> Measured:
    """A run with turns taken together against the same one by one."""
    fast, together = seconds(lambda: run(True))
    slow, apart = seconds(lambda: run(False))
    note = f"{1e6 * fast / turns:.1f} us a turn; textbook column: one by one"
    return Measured(slow, fast, together.fingerprint == apart.fingerprint, note)


CASES: Cases = {
    "turns": (lambda: turns(1000, 50), "turns in which nothing happens; target 3 us"),
    "cohorts": (lambda: coop(200, 20), "Coop, V=200, p=0.7, T=20, all turns of a trial together"),
    "ahead": (lambda: ahead(100, 5000), "Async, N=100, T=5000, gamma=0.1, several turns at once"),
}
