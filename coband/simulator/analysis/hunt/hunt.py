"""Search for faults that make an algorithm fail: swarm testing over random fault schedules.

Each seed draws the kinds of faults that occur, then their rates (swarm testing, Groce et al. 2012: leaving some kinds
out finds more failures). Every algorithm runs under these faults with all checks enabled. Then the faults end, and the
run must finish with all turns taken. A failing schedule is shrunk: faults are removed one by one as long as the run
still fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.analysis.hunt.swarm import Fault, draw
from coband.simulator.core.engine import RunResult
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.runs.blas import one_thread
from coband.simulator.experiments.runs.breaking_off import told
from coband.simulator.experiments.runs.job import engine_of
from coband.simulator.experiments.scenario.loading import BAD_INPUT, from_document
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_text import to_yaml
from coband.simulator.scenario_errors import BrokenOff, RequestError

MOST_EVENTS = 2_000_000
"""A run with more events counts as one that does not terminate."""


class HuntError(RequestError):
    """A scenario in which there is nothing to hunt for."""


class Unfinished(Exception):
    """A run did not end correctly; the text gives the reason."""


@dataclass(frozen=True)
class FailingRun:
    """A failure with a minimal set of faults.

    Attributes:
        faults: faults that are all necessary for the failure.
        scenario: text of a scenario file that reproduces the failure.
    """

    label: str
    seed: int
    faults: tuple[Fault, ...]
    error: str
    scenario: str


@dataclass
class Schedule:
    """What one fault schedule did to the algorithms.

    Attributes:
        runs: number of algorithms that ran under them.
        gave_up: number of these runs in which the transport gave messages up.
        refused: why algorithms did not run, by label: they cannot do with such a network.
    """

    seed: int
    faults: tuple[Fault, ...]
    failures: list[FailingRun] = field(default_factory=list)
    runs: int = 0
    gave_up: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class Hunt:
    """Runs the algorithms of a scenario under random faults.

    Args:
        scenario: the scenario; its own faults stay, its expectations are ignored.
        labels: labels of the algorithms to run; empty: all.
    """

    def __init__(self, scenario: Scenario, labels: Sequence[str] = ()) -> None:
        self._base = scenario.base
        document = {**scenario.resolved(), "replications": 1, "expect": [], "checks": "full", "trace": "off"}
        self._seed, self._document = scenario.seed, json.dumps(document)
        names = [entry.label for entry in scenario.algorithms if not labels or entry.label in labels]
        self.labels = names
        self._agents, self._star = scenario.agents.count, scenario.network.graph is None
        self._horizon: float | None = None
        self._gave_up = False  # whether the last run's transport gave messages up

    def seeds(self, seeds: Sequence[int]) -> Iterator[Schedule]:
        """Draw the faults of each seed and run all algorithms under them.

        Raises:
            ScenarioError: the scenario is invalid without any further fault.
            HuntError: an algorithm fails without one.
        """
        for seed in seeds:
            schedule = Schedule(seed, draw(np.random.default_rng(seed), self.horizon, self._agents, self._star))
            for label in self.labels:
                try:
                    self._hunt(label, schedule)
                except BAD_INPUT as error:
                    schedule.refused[label] = str(error)
            yield schedule

    @property
    def horizon(self) -> float:
        """The largest simulated time of the algorithms' runs without additional faults.

        Raises:
            HuntError: one of them fails already.
        """
        if self._horizon is None:
            self._horizon = max(1.0, *map(self._faultless, self.labels))
        return self._horizon

    def _faultless(self, label: str) -> float:
        try:
            return self._run(self._scenario(label, self._seed, ())).simulated_time
        except BAD_INPUT:
            raise
        except Exception as error:
            why = _in_words(error).rstrip(".")
            raise HuntError(
                f"{label} fails without any further fault, so a hunt would say nothing of it: {why}. Change the "
                "scenario so that all turns are taken, or leave it out with --only"
            ) from error

    def _hunt(self, label: str, schedule: Schedule) -> None:
        """Run one algorithm, and shrink the faults if it fails."""
        seed, faults = schedule.seed, schedule.faults
        self._gave_up = False
        error = self._error_of(label, seed, faults)
        schedule.runs += 1
        schedule.gave_up += self._gave_up
        if error is not None:
            faults, error = self._shrink(label, seed, faults, error)
            scenario = to_yaml(self._with_faults(label, seed, faults))
            schedule.failures.append(FailingRun(label, seed, faults, error, scenario))

    def _shrink(self, label: str, seed: int, faults: tuple[Fault, ...], error: str) -> tuple[tuple[Fault, ...], str]:
        """Remove faults one by one as long as the run still fails, until each remaining fault is necessary."""
        needed = 0
        while needed < len(faults):
            fewer = faults[1:]
            still = self._error_of(label, seed, fewer)
            if still is None:
                faults, needed = (*fewer, faults[0]), needed + 1
            else:
                faults, error, needed = fewer, still, 0
        return faults, error

    def _error_of(self, label: str, seed: int, faults: tuple[Fault, ...]) -> str | None:
        """Run the algorithm; return the error message, or None if the run is correct."""
        scenario = self._scenario(label, seed, faults)
        try:
            self._run(scenario)
        except BAD_INPUT:
            raise
        except Exception as error:
            return _in_words(error)
        return None

    def _with_faults(self, label: str, seed: int, faults: tuple[Fault, ...]) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._document)
        document["seed"] = seed
        document["algorithms"] = [entry for entry in document["algorithms"] if entry["label"] == label]
        for fault in faults:
            fault.apply(document)
        if faults:
            document["network"]["heals"] = document["network"]["heals"] or 1.5 * self.horizon
            document["network"]["retransmission"]["timeout"] = self.horizon / 100
        return document

    def _scenario(self, label: str, seed: int, faults: tuple[Fault, ...]) -> Scenario:
        return from_document(self._with_faults(label, seed, faults), f"{label}, seed {seed}", Path(self._base))

    def _run(self, scenario: Scenario) -> RunResult:
        """Run a scenario and check its end.

        Raises:
            InvariantViolation: an invariant is violated.
            Unfinished: agents wait or have turns left, or the run does not terminate.
        """
        events = 0

        def count(rows: Sequence[Any], names: Sequence[str]) -> None:
            nonlocal events
            events += len(rows)
            if events > MOST_EVENTS:
                raise Unfinished(f"more than {MOST_EVENTS} events and no end")

        with one_thread():
            engine = engine_of(scenario, scenario.algorithms[0], "protocol", count)
            try:
                result = engine.run()
            finally:
                self._gave_up = engine.audit.given_up > 0
        check_end(result)
        return result


def _in_words(error: Exception) -> str:
    """Why a run failed: a sentence, or the traceback of what nobody has foreseen."""
    return str(error) if isinstance(error, (InvariantViolation, Unfinished, BrokenOff)) else told(error)


def check_end(result: RunResult) -> None:
    """Check that all turns were taken, and no agent that is still there waits; the engine has looked where pulls are.

    Raises:
        Unfinished: one of these does not hold.
    """
    waiting = [agent.context.index for agent in result.agents if agent.waiting and not agent.done]
    waiting = [index for index in waiting if result.agents[index].context.is_there(index)]
    if result.stalled or waiting:
        still = f"; agents {waiting} still wait" if waiting else ""
        raise Unfinished(f"{result.never_taken}{still}".removeprefix("; "))
