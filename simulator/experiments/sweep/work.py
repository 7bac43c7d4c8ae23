"""What a worker does with one job of a sweep, on this machine or another: run it and send back the done-file."""

from __future__ import annotations

import os
import pickle
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coband.simulator.core.engine import RunResult
from coband.simulator.experiments.runs.job import DriverGone, Job, Outcome, attempt
from coband.simulator.experiments.scenario.scenario import BAD_INPUT, Scenario
from coband.simulator.experiments.store import recording
from coband.simulator.experiments.sweep import result_cache as result_cache
from coband.simulator.experiments.sweep.address import code_version


class OtherCodeError(RuntimeError):
    """The worker's coband is not the driver's, so its results would be of another kind."""


@dataclass(frozen=True)
class Work:
    """One job, as it travels to a worker.

    Attributes:
        scenario: pickled, with one entry.
        code: `code_version` of the driver.
        driver: process id of a driver on the same machine, whose end ends the job; else None.
    """

    scenario: bytes
    replication: int
    code: str
    driver: int | None


def work(item: Work) -> tuple[Outcome, bytes]:
    """Run a job.

    Returns:
        How it ended, and the content of its done-file; none unless it finished.

    Raises:
        OtherCodeError: this worker runs another coband.
    """
    if code_version() != item.code:
        raise OtherCodeError(
            f"the worker on {socket.gethostname()} (process {os.getpid()}) has another coband than this one, or other "
            "versions of its libraries; install the same on both and start the worker again"
        )
    scenario = _unpickled(item.scenario)
    entry = scenario.algorithms[0]
    job = Job(0, entry.label, entry.algorithm.name, item.replication, scenario.seed, "off", item.driver)
    tables: dict[str, Any] = {}

    def keep(result: RunResult) -> None:
        tables.update(recording.tables(0, result))

    try:
        outcome = attempt(job, scenario, keep)
    except DriverGone:
        os._exit(1)  # the pool's own way out waits for the driver to hang up
    except BAD_INPUT as error:
        return Outcome("failed", error=str(error)), b""
    return outcome, b"" if outcome.record is None else result_cache.packed(outcome.record, tables)


def pickled(scenario: Scenario) -> bytes:
    """A scenario as it travels; a worker reads each one once."""
    return pickle.dumps(scenario)


@lru_cache(maxsize=64)
def _unpickled(scenario: bytes) -> Scenario:
    loaded: Scenario = pickle.loads(scenario)
    return loaded
