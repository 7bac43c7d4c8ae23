"""One attempt at a job, wherever a worker is: what it is given and gives back, and what is said if it breaks off."""

from __future__ import annotations

import gc
import os
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from coband.simulator.arrays import TooLarge
from coband.simulator.core.engine import RunResult
from coband.simulator.core.nodes.message import NodeMistake
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.core.records.trace import Sink
from coband.simulator.experiments.runs.code_version import code_version, one_thread, sha256
from coband.simulator.experiments.runs.job import DriverGone, Job, JobFailure, OnPull, built, check_driver
from coband.simulator.experiments.runs.results import Record, record
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.store import recording
from coband.simulator.experiments.store.recording import Recording, Rows, compressed, packed
from coband.simulator.plugins.entry_points import exception_told, frames_of_plugins
from coband.simulator.plugins.functions import pickled, unpickled
from coband.simulator.scenario_errors import RAISED, BrokenOff


def told(error: BaseException) -> str:
    """The text of a mistake, with the place in the code of a plugin; of other errors the traceback.

    Where the code of a plugin is involved the traceback begins with its first line, and what of coband called it is
    left out. Memory that runs out elsewhere is nobody's mistake.
    """
    frames = frames_of_plugins(error)
    if isinstance(error, MemoryError) and not frames:
        reason = f" ({error})" if str(error) else ""
        return f"out of memory{reason}; take fewer agents, turns or arms, or fewer --workers"
    if not isinstance(error, (NodeMistake, SystemExit)):
        return "".join(traceback.format_exception(type(error), error, frames[0] if frames else error.__traceback__))
    return _placed(error, frames)


def mistake(error: BaseException) -> str:
    """The mistake of a plugin in one sentence, with its place in its code; empty where no plugin is involved."""
    frames = frames_of_plugins(error)
    return _placed(error, frames) if frames or isinstance(error, NodeMistake) else ""


def _placed(error: BaseException, frames: list[TracebackType]) -> str:
    text = str(error) if isinstance(error, NodeMistake) else exception_told(error)
    if not frames or getattr(error, "placed", False):
        return text
    return f"{frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno}: {text}"


@dataclass(frozen=True)
class Outcome:
    """What a job has given.

    Attributes:
        status: ``finished`` with a record, or ``violated`` or ``failed`` with an error text.
        content: of its done-file, when it finished.
        trace: the file in which it recorded itself, compressed, where that has to travel.
        refusal: the error, when bad input ended the job.
    """

    status: str
    record: Record | None = None
    error: str | None = None
    content: bytes = b""
    trace: bytes = b""
    refusal: Exception | None = None


Runner = Callable[[Job, Scenario, Sink | None, OnPull | None], RunResult]
"""Runs a job: (job, scenario, where the trace goes, what is told the number of pulls now and then)."""


PASSED_ON: tuple[type[Exception], ...] = (*BAD_INPUT, DriverGone)
"""What ends more than one job."""


YOUNG_OBJECTS = 50_000  # a trace makes thousands of small tuples; collecting garbage every 700 of them finds none


def attempt(
    job: Job,
    scenario: Scenario,
    keep: Callable[[RunResult], None],
    sink: Sink | None = None,
    on_pull: OnPull | None = None,
    run: Runner | None = None,
) -> Outcome:
    """Run a job, whatever comes of it.

    Args:
        job: what to run; its label names the entry of the scenario.
        scenario: what it is part of.
        keep: called with the result of a run that went well, before it counts as finished.
        sink: takes the trace, where the scenario has one.
        on_pull: called now and then with the number of pulls so far.
        run: what runs it; None: the simulator.

    Raises:
        ScenarioError, DataError, GraphError, UnsupportedScenario: the input is bad.
        DriverGone: nobody waits for the job.
    """
    with one_thread(), few_collections():
        return _attempt(job, scenario, keep, sink, on_pull, run)


def _attempt(
    job: Job,
    scenario: Scenario,
    keep: Callable[[RunResult], None],
    sink: Sink | None,
    on_pull: OnPull | None,
    run: Runner | None,
) -> Outcome:
    """`attempt`; when it returns, nothing refers to the nodes of the run any more."""
    start, begun = time.perf_counter(), time.process_time()
    try:
        result = built(job, scenario, sink, on_pull).run() if run is None else run(job, scenario, sink, on_pull)
        wall_seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - begun
        keep(result)
    except PASSED_ON:
        raise
    except InvariantViolation as violation:
        return Outcome("violated", error=str(violation))
    except (JobFailure, BrokenOff, TooLarge) as error:
        return Outcome("failed", error=str(error))
    except RAISED as error:
        return Outcome("failed", error=told(error))
    return Outcome("finished", record(result, job.seed, job.replication, wall_seconds, cpu_seconds))


@contextmanager
def few_collections() -> Iterator[None]:
    """Let the garbage collector look less often, and once at the end, only at what the job has made.

    A run's nodes refer to each other, and would keep their arrays while the next run needs the memory. What was there
    before, modules above all, takes ten times as long to look through as a small job takes to run, and is set aside.
    Where somebody else has set things aside already, these stay so, and what is older than the run is left alone.
    """
    thresholds, set_aside = gc.get_threshold(), gc.get_freeze_count() > 0
    if not set_aside:
        gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if set_aside:
            gc.collect(1)
        else:
            gc.collect()
            gc.unfreeze()


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


PROGRESS_SECONDS = 0.5


class ProgressFile:
    """Follows a job and writes the number of its pulls to a file, at most twice a second, whole or not at all."""

    def __init__(self, file: Path) -> None:
        self._file, self._last = file, time.monotonic()

    def __call__(self, pulls: int) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            draft = self._file.with_suffix(".new")
            with suppress(OSError):  # the job goes on without it
                draft.write_text(str(pulls), encoding="ascii")
                os.replace(draft, self._file)


def perform(
    job: Job,
    scenario: Scenario | PickledScenario,
    file: Path | None = None,
    code: str | None = None,
    on_pull: OnPull | None = None,
    run: Runner | None = None,
) -> Outcome:
    """Run a job as a worker; a child process ends at once when its driver is gone.

    Args:
        scenario: what it is part of.
        file: where it records its trace while it runs; None to send it back at its end.
        code: `code_version` that the worker must have; None for any.
        on_pull: called now and then with the number of pulls so far.
        run: what runs it; None: the simulator.

    Raises:
        OtherCodeError: this worker runs another coband.
        ScenarioError, DataError, GraphError, UnsupportedScenario: the input is bad.
    """
    if code is not None and code_version() != code:
        raise OtherCodeError(
            f"the worker on {socket.gethostname()} (process {os.getpid()}) has another coband than this one, or other "
            "versions of its libraries; install the same on both and start the worker again"
        )
    try:
        check_driver(job)
        loaded = scenario.load() if isinstance(scenario, PickledScenario) else scenario
        if job.trace == "off" or file is not None:
            return _kept(job, loaded, None if job.trace == "off" else file, on_pull, run)
        with TemporaryDirectory(prefix="coband-trace-") as scratch:
            file = Path(scratch) / "job.sqlite"
            outcome = _kept(job, loaded, file, on_pull, run)
            return replace(outcome, trace=compressed(file.read_bytes()))
    except DriverGone:
        os._exit(1)  # the pool's own way out waits for the driver to hang up


def _kept(job: Job, scenario: Scenario, file: Path | None, on_pull: OnPull | None, run: Runner | None) -> Outcome:
    """Run a job, and keep its results; where there is a file, it records itself there."""
    recorded, tables = None if file is None else Recording(file, job), dict[str, Rows]()

    def keep(result: RunResult) -> None:
        tables.update(recording.tables(job.id, result) if recorded is None else recorded.store(result))

    try:
        outcome = attempt(job, scenario, keep, None if recorded is None else recorded.sink, on_pull, run)
    except BaseException:
        if recorded is not None:
            recorded.close("interrupted")
        raise
    if recorded is not None:
        recorded.close(outcome.status, outcome.record, outcome.error)
    return outcome if outcome.record is None else replace(outcome, content=packed(outcome.record, tables))
