"""Search for faults that make an algorithm fail: swarm testing over random fault schedules.

Each seed draws the kinds of faults that occur, then their rates (swarm testing, Groce et al. 2012: leaving some kinds
out finds more failures). Every algorithm runs under these faults with all checks enabled. Then the faults end, and the
run must finish with all turns taken. A failing schedule is shrunk: faults are removed one by one as long as the run
still fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coband import RunResult
from coband.extending import (
    RAISED,
    BrokenOff,
    RequestError,
    Scenario,
    code_version,
    engine_of,
    invariants,
    loading,
    to_yaml,
    told,
)


@dataclass(frozen=True)
class Fault:
    """One fault as a change of a scenario.

    Attributes:
        section, key: the setting that it changes, such as network, loss.
        value: the new value; a list is extended by it, and a mapping without a kind merged with it.
    """

    section: str
    key: str
    value: Any

    def apply(self, document: dict[str, Any]) -> None:
        section = document[self.section]
        if isinstance(section[self.key], list):
            section[self.key] = [*section[self.key], self.value]
        elif isinstance(self.value, dict) and isinstance(section[self.key], dict) and "kind" not in self.value:
            section[self.key] = {**section[self.key], **self.value}
        else:
            section[self.key] = self.value

    def __str__(self) -> str:
        return f"{self.section}.{self.key}: {self.value}"


def draw(rng: np.random.Generator, horizon: float, agents: int, star: bool) -> tuple[Fault, ...]:
    """Draw faults: each kind occurs with probability 1/2, with random rates; at least one kind occurs.

    Args:
        horizon: simulated time in which the faults take place.
        star: whether there is a server.
    """
    found: list[Fault] = []
    while not found:
        found = [kind(_Draws(rng, horizon, agents, star)) for kind in KINDS if rng.random() < 0.5]
    return tuple(found)


@dataclass(frozen=True)
class _Draws:
    """The faults of each kind, drawn."""

    rng: np.random.Generator
    horizon: float
    agents: int
    star: bool

    def between(self, low: float, high: float) -> float:
        """A number between `low` and `high` whose logarithm is uniform, rounded to three digits."""
        return float(f"{np.exp(self.rng.uniform(np.log(low), np.log(high))):.3g}")

    def _window(self) -> dict[str, float]:
        start = float(f"{self.rng.uniform(0.0, 0.9) * self.horizon:.3g}")
        return {"start": start, "end": start + self.between(0.01 * self.horizon, 0.4 * self.horizon)}

    def _some(self) -> list[int]:
        count = int(self.rng.integers(1, max(2, self.agents)))
        return sorted(self.rng.permutation(self.agents)[:count].tolist())

    def loss(self) -> Fault:
        if self.rng.random() < 0.5:
            return Fault("network", "loss", self.between(0.01, 0.5))
        bursts = {"kind": "gilbert_elliott", "p": self.between(0.01, 0.3), "r": self.between(0.1, 0.9), "k": 0.98}
        return Fault("network", "loss", bursts)

    def duplicate(self) -> Fault:
        return Fault("network", "duplicate", self.between(0.02, 0.8))

    def latency(self) -> Fault:
        mean = self.between(1e-4, 3e-2) * self.horizon
        kinds = [
            {"kind": "exponential", "rate": 1.0 / mean},
            {"kind": "pareto", "minimum": mean / 6.0, "shape": 1.2},
            {"kind": "uniform", "low": 0.0, "high": 2.0 * mean},
        ]
        return Fault("network", "latency", kinds[int(self.rng.integers(len(kinds)))])

    def partition(self) -> Fault:
        cut = {**self._window(), "groups": [self._some()], "one_way": bool(self.rng.random() < 0.5)}
        return Fault("network", "partitions", cut)

    def outage(self) -> Fault:
        nodes: list[int | str] = list(self._some())
        if self.star and self.rng.random() < 0.5:
            nodes = ["server"]
        return Fault("network", "outages", {**self._window(), "nodes": nodes})

    def churn(self) -> Fault:
        mean_up, mean_down = self.between(0.03, 0.5) * self.horizon, self.between(0.005, 0.1) * self.horizon
        return Fault("agents", "availability", {"kind": "markov_on_off", "mean_up": mean_up, "mean_down": mean_down})

    def _short_time(self) -> dict[str, Any]:
        return {"kind": "exponential", "rate": 1.0 / (self.between(1e-4, 1e-2) * self.horizon)}

    def compute(self) -> Fault:
        return Fault("agents", "compute", self._short_time())

    def handling(self) -> Fault:
        return Fault("agents", "handling", self._short_time())

    def stragglers(self) -> Fault:
        return Fault("agents", "stragglers", {"fraction": 0.34, "slowdown": self.between(2.0, 20.0)})

    def order(self) -> Fault:
        return Fault("network", "reorder", "fifo")

    def narrow(self) -> Fault:
        """Capacity for so many scalars in the time of a run without faults."""
        width = self.between(300.0, 30_000.0) / self.horizon
        if not self.star or self.rng.random() < 0.5:
            return Fault("network", "bandwidth", width)
        return Fault("network", "server", {("uplink", "downlink")[int(self.rng.integers(2))]: width})

    def giving_up(self) -> Fault:
        return Fault("network", "retransmission", {"max_attempts": int(self.rng.integers(1, 4))})

    def lasting(self) -> Fault:
        """Faults that go on long after the end of a run without them."""
        return Fault("network", "heals", self.between(10.0, 1000.0) * self.horizon)


KINDS: tuple[Callable[[_Draws], Fault], ...] = (
    _Draws.loss,
    _Draws.duplicate,
    _Draws.latency,
    _Draws.order,
    _Draws.partition,
    _Draws.partition,
    _Draws.outage,
    _Draws.outage,
    _Draws.churn,
    _Draws.compute,
    _Draws.handling,
    _Draws.stragglers,
    _Draws.narrow,
    _Draws.giving_up,
    _Draws.lasting,
)


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
                except loading.BAD_INPUT as error:
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
        except loading.BAD_INPUT:
            raise
        except RAISED as error:
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
            scenario = self._with_faults(label, seed, faults)
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
        except loading.BAD_INPUT:
            raise
        except RAISED as error:
            return _in_words(error)
        return None

    def _with_faults(self, label: str, seed: int, faults: tuple[Fault, ...]) -> str:
        document: dict[str, Any] = json.loads(self._document)
        document["seed"] = seed
        document["algorithms"] = [entry for entry in document["algorithms"] if entry["label"] == label]
        for fault in faults:
            fault.apply(document)
        if faults:
            document["network"]["heals"] = document["network"]["heals"] or 1.5 * self.horizon
            document["network"]["retransmission"]["timeout"] = self.horizon / 100
        return to_yaml(document)

    def _scenario(self, label: str, seed: int, faults: tuple[Fault, ...]) -> Scenario:
        return loading.loads(self._with_faults(label, seed, faults), f"{label}, seed {seed}", base=Path(self._base))

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

        with code_version.one_thread():
            engine = engine_of(scenario, scenario.algorithms[0], "protocol", count)
            try:
                result = engine.run()
            finally:
                self._gave_up = engine.audit.given_up > 0
        check_end(result, scenario.agents.changing)
        return result


def _in_words(error: BaseException) -> str:
    """Why a run failed: a sentence, or the traceback of what nobody has foreseen."""
    return str(error) if isinstance(error, (invariants.InvariantViolation, Unfinished, BrokenOff)) else told(error)


def check_end(result: RunResult, leaving: bool) -> None:
    """Check that all turns were taken, and no agent that is still there waits; the engine has looked where pulls are.

    Where agents leave, turns may be missing of those that were down when they left.

    Raises:
        Unfinished: one of these does not hold.
    """
    waiting = [agent.context.index for agent in result.agents if agent.waiting and not agent.done]
    waiting = [index for index in waiting if result.agents[index].context.is_there(index)]
    there = not leaving or all(agent.context.is_there(agent.context.index) for agent in result.agents)
    if waiting or (result.stalled and there):
        still = f"; agents {waiting} still wait" if waiting else ""
        raise Unfinished(f"{result.never_taken}{still}".removeprefix("; "))
