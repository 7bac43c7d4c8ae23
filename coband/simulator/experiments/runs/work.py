"""What a worker does with one job, in this process or another, on this machine or another."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from coband.simulator.core.engine import RunResult
from coband.simulator.experiments.runs.code_version import code_version, sha256
from coband.simulator.experiments.runs.job import DriverGone, Job, OnPull, Outcome, Runner, attempt, check_driver
from coband.simulator.experiments.runs.under_way import ProgressFile
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store import recording
from coband.simulator.experiments.store.recording import Recording, Rows, compressed, packed
from coband.simulator.plugins.functions import pickled, unpickled


class OtherCodeError(RuntimeError):
    """The worker's coband is not the driver's, so its results would be of another kind."""


@dataclass(frozen=True)
class PickledScenario:
    """A scenario on its way to other processes; each of them reads it once.

    Attributes:
        digest: of the content, which tells scenarios apart.
    """

    content: bytes = field(compare=False, repr=False)
    digest: str

    @classmethod
    def of(cls, scenario: Scenario) -> PickledScenario:
        content = pickled(scenario)
        return cls(content, sha256(content))

    def load(self) -> Scenario:
        """The scenario again.

        Raises:
            ValueError: it was damaged on its way.
        """
        return _unpickled(self)


@lru_cache(maxsize=64)
def _unpickled(packed_scenario: PickledScenario) -> Scenario:
    if sha256(packed_scenario.content) != packed_scenario.digest:
        raise ValueError("the scenario was damaged on its way to the worker")
    loaded: Scenario = unpickled(packed_scenario.content)
    return loaded


@dataclass(frozen=True)
class Work:
    """One job, as it is given to a worker.

    Attributes:
        scenario: what the job is part of.
        file: where the job records itself while it runs; None to send everything back at its end.
        code: `code_version` that the worker must have; None for any.
        progress: where a worker process writes, now and then, how far the job is; None for nowhere.
    """

    job: Job
    scenario: Scenario | PickledScenario
    file: Path | None = None
    code: str | None = None
    progress: Path | None = None


@dataclass(frozen=True)
class JobResult:
    """What a worker gives back.

    Attributes:
        content: of its done-file, when it finished without a file of its own.
        trace: the file in which it recorded itself, compressed; beside ``content``, where a trace was asked for.
        refusal: the error, when bad input ended the job.
    """

    outcome: Outcome
    content: bytes = b""
    trace: bytes = b""
    refusal: Exception | None = None


def work(item: Work, on_pull: OnPull | None = None, run: Runner | None = None) -> JobResult:
    """Run a job; a child process ends at once when its driver is gone.

    Args:
        on_pull: called now and then with the number of pulls so far.
        run: what runs a job that records itself in a file; None: the simulator.

    Raises:
        OtherCodeError: this worker runs another coband.
        ScenarioError, DataError, GraphError, UnsupportedScenario: the input is bad.
    """
    if item.code is not None and code_version() != item.code:
        raise OtherCodeError(
            f"the worker on {socket.gethostname()} (process {os.getpid()}) has another coband than this one, or other "
            "versions of its libraries; install the same on both and start the worker again"
        )
    if item.progress is not None:
        on_pull = ProgressFile(item.progress)
    try:
        check_driver(item.job)
        scenario = item.scenario.load() if isinstance(item.scenario, PickledScenario) else item.scenario
        if item.file is not None:
            return JobResult(_recorded(item.job, scenario, item.file, on_pull, run))
        return _packed(item.job, scenario, on_pull)
    except DriverGone:
        os._exit(1)  # the pool's own way out waits for the driver to hang up


def _recorded(job: Job, scenario: Scenario, file: Path, on_pull: OnPull | None, run: Runner | None = None) -> Outcome:
    recorded = Recording(file, job)
    try:
        outcome = attempt(job, scenario, recorded.store, recorded.sink, on_pull, run)
    except BaseException:
        recorded.close("interrupted")
        raise
    recorded.close(outcome.status, outcome.record, outcome.error)
    return outcome


def _packed(job: Job, scenario: Scenario, on_pull: OnPull | None) -> JobResult:
    """Run a job whose results travel."""
    if job.trace != "off":
        return _traced(job, scenario, on_pull)
    tables: dict[str, Rows] = {}

    def keep(result: RunResult) -> None:
        tables.update(recording.tables(job.id, result))

    outcome = attempt(job, scenario, keep, None, on_pull)
    return JobResult(outcome, _done(outcome, tables))


def _done(outcome: Outcome, tables: Mapping[str, Rows]) -> bytes:
    """The content of its done-file; empty if it has none."""
    return b"" if outcome.record is None else packed(outcome.record, tables)


def _traced(job: Job, scenario: Scenario, on_pull: OnPull | None) -> JobResult:
    """Run a job whose results travel with its trace, which is recorded in a file of this machine first."""
    with TemporaryDirectory(prefix="coband-trace-") as scratch:
        file = Path(scratch) / "job.sqlite"
        outcome = _recorded(job, scenario, file, on_pull)
        trace = compressed(file.read_bytes())
        if outcome.record is None:
            return JobResult(outcome, trace=trace)
        return JobResult(outcome, _done(outcome, recording.stored_tables(file)), trace)
