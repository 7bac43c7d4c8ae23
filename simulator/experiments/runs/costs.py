"""What a job costs in seconds and bytes, before it runs: from measured jobs, and from earlier ones here.

The shipped table, ``costs.json``, holds for each algorithm a formula fitted to measured jobs of the included scenarios,

    log cost = a + b log T + c log N + e log d + f log K,

with T pulls of all agents, N agents, d the dimension of arms and K arms of a turn; numbers that only data know count as
the mean of the measured ones. Where only the run itself shows T, as with pure exploration, whose cost hardly depends on
it, the table has the mean of log seconds of whole jobs. Seconds are corrected for this machine by a computation that
takes milliseconds, and by what jobs of the same user took (`Memories`). ``python -m benchmarks.costs`` measures the
table anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coband.simulator.experiments.registry.remembered import cache_directory
from coband.simulator.experiments.scenario.scenario import Scenario, ScenarioEntry

Cost = Literal["seconds", "bytes"]
MET_BEFORE = 0.2
"""Spread of the logarithm of the seconds of jobs of one configuration."""
SHORTEST = 0.005
"""Seconds of jobs from which nothing can be learnt."""
MOST_JOBS = 2_000
NO_COST = ("schema_version", "name", "description", "seed", "replications", "expect", "algorithms")
"""Sections that a job's cost does not depend on."""


def features(scenario: Scenario, turns: int | None = None) -> list[float | None]:
    """log T, log N, log d and log K of a job; None for what only a run, or its data, will show."""
    agents = scenario.agents.count
    pulls = scenario.schedule.total_turns(agents) if turns is None else turns
    extent = scenario.problem.extent(agents)
    arms = (None, None) if extent is None else (extent.dimension, extent.arms)
    sizes = (pulls, agents, *arms)
    return [None if size is None else math.log(max(1, size)) for size in sizes]


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table."""
    found: Mapping[str, Any] = json.loads(files(__package__).joinpath("costs.json").read_text(encoding="utf-8"))
    return found


def typical(algorithm: str, known: Sequence[float | None], what: Cost) -> tuple[float, float] | None:
    """log of what a job costs on the machine of the table, and the spread of that logarithm; None if nothing is known.

    An algorithm that nobody has measured counts as the mean of all, with a larger spread.
    """
    if known[0] is None:
        whole = table()["whole"].get(algorithm) if what == "seconds" else None
        return None if whole is None else (whole[0], whole[1])
    found = table()[what]
    a, slopes, spread = found["algorithms"].get(algorithm, found["others"])
    filled = [mean if value is None else value for value, mean in zip(known, table()["means"], strict=True)]
    return a + sum(slope * value for slope, value in zip(slopes, filled, strict=True)), spread


def growth(algorithm: str) -> float:
    """b: a job that takes T times the pulls costs T^b times the seconds."""
    found = table()["seconds"]
    slope: float = found["algorithms"].get(algorithm, found["others"])[1][0]
    return slope


@lru_cache(maxsize=1)
def slowness() -> float:
    """How many times longer this machine takes than that of the table."""
    return calibration() / float(table()["calibration"])


def calibration() -> float:
    """Seconds of a computation of the kind that runs consist of, Python and small matrices: the best of several."""
    matrix, best = np.eye(60) + 0.01, math.inf
    for _ in range(5):
        begun, total = time.perf_counter(), 0.0
        for step in range(300):
            values = {key: float(key * step) for key in range(40)}
            total += sum(values.values()) + float((matrix @ matrix[:, 0])[0])
        np.linalg.cholesky(matrix @ matrix)
        best = min(best, time.perf_counter() - begun)
    return best


class Memories:
    """What jobs of this user took on this machine: of each configuration and of each algorithm, the recent mean.

    Args:
        file: where they are kept; None for `memories_file`. What cannot be read or written is done without.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = memories_file() if file is None else file
        self._jobs: dict[str, list[float]] = {}
        self._algorithms: dict[str, float] = {}
        self._keys: dict[tuple[int, int], tuple[Scenario, ScenarioEntry, str]] = {}  # by identity, while both are kept
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            if self._file is not None:
                found = json.loads(self._file.read_text(encoding="utf-8"))
                self._jobs = {str(key): [float(one) for one in value] for key, value in found["jobs"].items()}
                self._algorithms = {str(key): float(value) for key, value in found["algorithms"].items()}

    def predict(self, scenario: Scenario, entry: ScenarioEntry) -> tuple[float, float] | None:
        """log seconds of a job and the spread of that logarithm; None where nobody can know."""
        known, algorithm = features(scenario), entry.algorithm.name
        log_turns = known[0]
        if (met := self._jobs.get(self._key(scenario, entry))) is not None:
            seconds, turns = met
            if log_turns is None or scenario.schedule.duration is not None:
                return seconds, MET_BEFORE
            far = abs(log_turns - turns)
            return seconds + growth(algorithm) * (log_turns - turns), MET_BEFORE + 0.2 * far
        found = typical(algorithm, known, "seconds")
        if found is None:
            return None
        if algorithm in self._algorithms:
            return found[0] + self._algorithms[algorithm], 0.8 * found[1]
        return found[0] + math.log(slowness()), found[1]

    def met(self, scenario: Scenario, entry: ScenarioEntry) -> bool:
        """Whether jobs of this configuration are among them."""
        return self._key(scenario, entry) in self._jobs

    def note(self, scenario: Scenario, entry: ScenarioEntry, turns: int, seconds: float) -> None:
        """Remember a finished job."""
        if turns < 1 or seconds < SHORTEST:
            return
        key, algorithm = self._key(scenario, entry), entry.algorithm.name
        log_seconds, log_turns = math.log(seconds), math.log(turns)
        old = self._jobs.pop(key, None)
        if old is not None:
            shifted = old[0] + growth(algorithm) * (log_turns - old[1])
            log_seconds = (log_seconds + shifted) / 2
        self._jobs[key] = [round(log_seconds, 4), round(log_turns, 4)]  # the newest last
        expected = typical(algorithm, features(scenario, turns), "seconds")
        if expected is not None:
            ratio = math.log(seconds) - expected[0]
            self._algorithms[algorithm] = round((self._algorithms.get(algorithm, ratio) + ratio) / 2, 4)

    def _key(self, scenario: Scenario, entry: ScenarioEntry) -> str:
        place = id(scenario), id(entry)
        if place not in self._keys:
            self._keys[place] = scenario, entry, _key(scenario, entry)
        return self._keys[place][2]

    def keep(self) -> None:
        """Write them down, the newest `MOST_JOBS` of them."""
        jobs = dict(list(self._jobs.items())[-MOST_JOBS:])
        with suppress(OSError):
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
                draft.write_text(json.dumps({"jobs": jobs, "algorithms": self._algorithms}), encoding="utf-8")
                os.replace(draft, self._file)


def memories_file() -> Path | None:
    """$COBAND_COSTS, where empty means nowhere; else coband/costs.json in the user's cache directory."""
    given = os.environ.get("COBAND_COSTS")
    if given is not None:
        return Path(given) if given else None
    folder = cache_directory()
    return None if folder is None else folder / "coband" / "costs.json"


def _key(scenario: Scenario, entry: ScenarioEntry) -> str:
    """Digest of what a job's cost depends on, but for the number of turns: neither seed nor replication."""
    said: Mapping[str, Any] = scenario.resolved()
    kept = {key: value for key, value in said.items() if key not in NO_COST}
    kept["schedule"] = {key: value for key, value in kept["schedule"].items() if key != "turns"}
    kept["entry"] = [entry.algorithm.name, entry.ties, entry.config.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()[:24]
