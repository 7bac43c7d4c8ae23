"""One measurement: CPU seconds of two forms of the same computation, in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.engine import Engine, Plan, RunResult
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.attempt import few_collections

_PLAN = TypeAdapter(Plan)
"""Reads plans; made once, outside of what is measured."""


def plan(agents: int, schedule: Mapping[str, Any], **parts: Any) -> Plan:
    """A plan without a trace, and without delays unless ``parts`` says so."""
    given = {"agents": {"count": agents}, "schedule": schedule, "network": {}, "trace": "off", **parts}
    return _PLAN.validate_python(given)


def simulated(
    algorithm: Algorithm | str, config: Mapping[str, Any], world: Callable[[Streams], Any], plan: Plan, seed: int = 0
) -> RunResult:
    """One simulated run; a trace goes nowhere."""
    streams = Streams(seed)
    found = Registry.installed().algorithms[algorithm] if isinstance(algorithm, str) else algorithm
    sink = None if plan.trace == "off" else lambda rows, names: None
    return Engine(plan, found, found.config.model_validate(config), world(streams), streams, sink).run()


def alike(oracle: Any, result: RunResult) -> bool:
    """Whether the oracle's loop has the regret of a simulated run."""
    return abs(sum(pull[4] for pull in oracle.pulls) - result.regret) < 1e-6


@dataclass
class Measured:
    """CPU seconds of both forms, whether they decided alike, and what else is worth knowing."""

    textbook: float
    fast: float
    same: bool
    note: str

    @property
    def ratio(self) -> float:
        return self.textbook / self.fast


def seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least CPU time of some calls, and the last result; garbage is collected as in a job of a run."""
    best, result = np.inf, None
    gc.collect()
    for _ in range(repeats):
        with few_collections():
            start = time.process_time()
            result = function()
            best = min(best, time.process_time() - start)
    return best, result


def together(run: Callable[[bool], RunResult]) -> Measured:
    """A run whose turns are taken together (``cohorts``) against the same one by one."""
    fast, found = seconds(lambda: run(True))
    slow, apart = seconds(lambda: run(False))
    note = f"{1e6 * fast / found.turns:.1f} us a turn; textbook column: one by one"
    return Measured(slow, fast, found.fingerprint == apart.fingerprint, note)


Cases = Mapping[str, tuple[Callable[[], Measured], str]]
"""By name: what to run, and what it is with the target for the ratio."""


@dataclass
class Figure:
    """One number without a textbook form, and what it should be."""

    found: str
    target: str
    met: bool


Figures = Mapping[str, tuple[Callable[[], Figure], str]]
"""By name: what to run, and what it is."""
