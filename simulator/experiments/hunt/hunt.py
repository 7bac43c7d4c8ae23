"""A hunt for faults that an algorithm does not stand: swarm testing over fault schedules drawn from seeds.

Each seed draws which faults there are at all, then their rates (Groce et al. 2012: leaving features out finds more).
Every algorithm runs under them with all checks; then the network heals, and the run must end with all turns taken. A
failure is shrunk: faults are dropped one by one while it stays, until each is needed.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.core.audit.invariants import InvariantViolation
from coband.simulator.core.engine import Engine, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.hunt.swarm import Fault, draw
from coband.simulator.experiments.runs.blas import one_thread
from coband.simulator.experiments.runs.job import graph_and_world, plan
from coband.simulator.experiments.scenario.scenario import BAD_INPUT, Scenario, loads
from coband.simulator.experiments.scenario.yaml_text import to_yaml

MOST_EVENTS = 2_000_000
"""A run with more events is taken to have no end."""


class Unfinished(Exception):
    """A run did not end as it should; the text says how."""


@dataclass(frozen=True)
class Catch:
    """A failure, shrunk.

    Attributes:
        seed: that the faults were drawn from.
        faults: those without any of which it does not happen.
        error: what happened.
        scenario: text of a scenario file that reproduces it.
    """

    label: str
    seed: int
    faults: tuple[Fault, ...]
    error: str
    scenario: str


class Hunt:
    """Runs the algorithms of a scenario under faults.

    Args:
        scenario: what to run; its own faults stay, its expectations do not matter.
        labels: which of its entries; empty for all.
    """

    def __init__(self, scenario: Scenario, labels: Sequence[str] = ()) -> None:
        self._base = scenario.base
        self._document = {**scenario.resolved(), "replications": 1, "expect": [], "checks": "full", "trace": "off"}
        names = [entry.label for entry in scenario.algorithms if not labels or entry.label in labels]
        self.labels = names
        self._agents, self._star = scenario.agents.count, scenario.network.graph is None
        self._horizon: float | None = None

    def seeds(self, seeds: Sequence[int]) -> Iterator[tuple[int, tuple[Fault, ...], list[Catch]]]:
        """For each seed the faults that were drawn, and the failures that they lead to.

        Raises:
            ScenarioError: the scenario cannot be run under faults; the text says why.
        """
        for seed in seeds:
            faults = draw(np.random.default_rng(seed), self.horizon, self._agents, self._star)
            found = [self._caught(label, seed, faults) for label in self.labels]
            yield seed, faults, [catch for catch in found if catch is not None]

    @property
    def horizon(self) -> float:
        """Simulated time of the longest of the algorithms' runs without further faults."""
        if self._horizon is None:
            times = [self._run(self._scenario(label, int(self._document["seed"]), ())) for label in self.labels]
            self._horizon = max(1.0, *(result.simulated_time for result in times))
        return self._horizon

    def _caught(self, label: str, seed: int, faults: tuple[Fault, ...]) -> Catch | None:
        error = self._failure(label, seed, faults)
        if error is None:
            return None
        faults, error = self._shrunk(label, seed, faults, error)
        return Catch(label, seed, faults, error, to_yaml(self._changed(label, seed, faults)))

    def _shrunk(self, label: str, seed: int, faults: tuple[Fault, ...], error: str) -> tuple[tuple[Fault, ...], str]:
        """Drop faults one by one while some failure stays, until each of those that are left is needed."""
        needed = 0
        while needed < len(faults):
            fewer = faults[1:]
            still = self._failure(label, seed, fewer)
            if still is None:
                faults, needed = (*fewer, faults[0]), needed + 1
            else:
                faults, error, needed = fewer, still, 0
        return faults, error

    def _failure(self, label: str, seed: int, faults: tuple[Fault, ...]) -> str | None:
        """What goes wrong, or None."""
        scenario = self._scenario(label, seed, faults)
        try:
            self._run(scenario)
        except (InvariantViolation, Unfinished) as failure:
            return str(failure)
        except BAD_INPUT:
            raise
        except Exception:
            return traceback.format_exc()
        return None

    def _changed(self, label: str, seed: int, faults: tuple[Fault, ...]) -> dict[str, Any]:
        document = copy.deepcopy(self._document)
        document["seed"] = seed
        document["algorithms"] = [entry for entry in document["algorithms"] if entry["label"] == label]
        for fault in faults:
            fault.apply(document)
        if faults:
            document["network"]["heals"] = 1.5 * self.horizon
            document["network"]["retransmission"]["timeout"] = self.horizon / 100
        return document

    def _scenario(self, label: str, seed: int, faults: tuple[Fault, ...]) -> Scenario:
        return loads(to_yaml(self._changed(label, seed, faults)), f"{label}, seed {seed}", base=Path(self._base))

    def _run(self, scenario: Scenario) -> RunResult:
        """A run that must end well.

        Raises:
            InvariantViolation: something happened that must never happen.
            Unfinished: agents wait or have turns left, pulls are missing, or there is no end.
        """
        entry, streams = scenario.algorithms[0], Streams(scenario.seed)
        graph, world = graph_and_world(scenario, streams)
        events = 0

        def count(rows: Sequence[Any], names: Sequence[str]) -> None:
            nonlocal events
            events += len(rows)
            if events > MOST_EVENTS:
                raise Unfinished(f"more than {MOST_EVENTS} events and no end")

        plan_ = plan(scenario, trace="protocol")
        with one_thread():
            result = Engine(plan_, entry.algorithm, entry.config, world, streams, sink=count, graph=graph).run()
        check_end(result)
        return result


def check_end(result: RunResult) -> None:
    """Every turn was taken, nobody waits, and every pull is with the server or with its agent.

    Raises:
        Unfinished: otherwise.
    """
    waiting = [agent.context.index for agent in result.agents if agent.waiting and not agent.done]
    if result.stalled or waiting:
        raise Unfinished(f"{result.stalled} turns were never taken; agents {waiting} still wait")
    held = sum(agent.unshared for agent in result.agents)
    applied = 0 if result.server is None else result.server.applied
    if not result.audit.lost_for_good and held + applied != result.turns:
        raise Unfinished(f"of {result.turns} pulls the server has {applied} and agents hold {held}")
