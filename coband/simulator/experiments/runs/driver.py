"""The driver of runs and sweeps: finds what is done, has the rest run, keeps what comes back, and reports. Ctrl-C does
not cut a step of it in two.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from coband.simulator.experiments.runs.attempt import Outcome, PickledScenario, ProgressFile, perform
from coband.simulator.experiments.runs.executor import Dispatcher, ExecutorError, InProcess, JobExecutor, Local
from coband.simulator.experiments.runs.planner import Tally, Task, sent
from coband.simulator.experiments.runs.reporting import Commands, EndedJob, EndedPoint, Listener, Report
from coband.simulator.experiments.runs.results import Failure, Record, Results
from coband.simulator.experiments.runs.status import EntryStatus, Status, UnderWay, now
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.files import StorageError, writing
from coband.simulator.experiments.store.manifest import manifest
from coband.simulator.metrics import by_name
from coband.simulator.plugins.functions import not_installed

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def finished_first() -> Iterator[None]:
    """Let a Ctrl-C, and a SIGTERM that this process handles, wait until the block has ended.

    A second one does not wait. Signals reach the main thread alone; in others this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    waiting: list[int] = []

    def later(number: int, frame: FrameType | None) -> None:
        if waiting:
            before[number](number, frame)
        waiting.append(number)

    for number in before:
        signal.signal(number, later)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            before[waiting[0]](waiting[0], None)


LOOK_SECONDS, WRITE_SECONDS = 0.5, 1.0


class CalledOff(BaseException):
    """The listener has heard enough; like Ctrl-C it ends jobs under way. The text says why."""


def drive(
    study: Study,
    place: RunDirectory,
    *,
    workers: int | JobExecutor = 1,
    commands: Commands | None = None,
    listener: Listener | None = None,
) -> Report:
    """Run all jobs of a study that are not done yet; Ctrl-C stops them and keeps what is finished.

    Args:
        place: where results go.
        workers: number of processes, 1 for this one; or an executor, which its owner shuts down.

    Raises:
        LockedError, OutputError: another driver works in the directory.
        StorageError: nothing can be written there.
        ScenarioError, DataError, GraphError, UnsupportedScenario: the input is bad, for all jobs.
    """
    if not isinstance(workers, int):
        return _Driver(study, place, workers, commands or Commands(), listener).run()
    most = len(study.variants) * len(study.possible_replications)
    # All processes of a pool start together, needed or not; whoever asks for several wants jobs out of this one.
    with InProcess() if workers == 1 else Local(min(workers, max(2, most))) as executor:
        return drive(study, place, workers=executor, commands=commands, listener=listener)


class _Driver:
    """Runs a study once."""

    def __init__(
        self, study: Study, place: RunDirectory, executor: JobExecutor, commands: Commands, listener: Listener | None
    ) -> None:
        self._study, self._place, self._executor, self._commands = study, place, executor, commands
        self._listener = listener
        self._tally = Tally(study.variants, study.entries)
        self._tally.series = place.series
        self._planner = study.planner(self._tally)
        self._first = next(self._planner, ())
        self._dispatcher = Dispatcher[str](executor, self._submit, self._settle, self._tick)
        self._scratch = TemporaryDirectory(prefix="coband-") if executor.children else None
        self._under_way = UnderWay(None if self._scratch is None else Path(self._scratch.name))
        self._status = Status(
            study.name,
            resume=commands.resume,
            workers=executor.describe(),
            dashboard=executor.dashboard,
            entries={entry: EntryStatus() for entry in study.entries},
        )
        self._begun = self._looked = self._written = time.monotonic()
        self._current = ""
        self._enough = ""
        self._pending: dict[str, list[Task]] = {}  # by address
        self._pickled: dict[int, PickledScenario] = {}
        self._failures: list[Failure] = []

    def run(self) -> Report:
        if (lacking := self._study.lacking) is not None:
            raise lacking
        status, place = self._status, self._place
        with place.held():
            with writing(self._place.path):
                place.open(self._study)
            ended, refused = "stopped", False
            try:
                self._begin()
                self._dispatcher.run()
                ended = "failed" if self._failures else "finished"
            except KeyboardInterrupt:
                ended = "interrupted"
            except CalledOff as reason:
                ended, status.message, status.called_off = "stopped", str(reason), True
            except BAD_INPUT:
                ended, refused = "failed", True
                raise
            except (StorageError, ExecutorError) as error:
                status.message = str(error)
            finally:
                self._executor.abandon()
                if self._scratch is not None:
                    self._scratch.cleanup()
                status.state = ended
                report = self._end()
                if refused and not status.ended:
                    place.discard()
        return report

    def _begin(self) -> None:
        study = self._study
        metrics = by_name(*(tuple(variant.scenario.metrics.values()) for variant in study.variants)).values()
        seed, size = study.variants[0].scenario.seed, self._executor.size()
        facts = manifest(study.name, seed, self._commands.given, study.jobs, size, metrics)
        if self._executor.cluster is not None:
            facts["cluster"] = self._executor.cluster
        if names := not_installed(variant.scenario.resolved() for variant in study.variants):
            facts["not_installed"] = names
        with writing(self._place.path):
            self._place.begin(facts | study.facts())
        self._tally.add(self._first)
        self._tick(at_once=True)
        self._enqueue(self._first)

    def _end(self) -> Report:
        """Keep what jobs that broke off have recorded, and write down how it ended, as far as there is room."""
        status, place = self._status, self._place
        with self._noting_trouble():
            for tasks in self._pending.values():
                if (outcome := place.left_behind(tasks[0])) is not None:
                    place.take(tasks, outcome)
                    if outcome.record is not None:
                        for task in tasks:
                            self._finished(task, outcome.record)
        self._refresh()
        summary = self._summary()
        with self._noting_trouble():
            place.end(status, summary)
        place.close()
        if self._listener is not None:
            self._listener.changed(status)
        missing = status.total - status.ended
        idle = dict.fromkeys(one.scenario.idle for one in self._study.variants)
        remarks = [*filter(None, idle), *place.remarks, *self._tally.remarks(self._study.until)]
        return Report(summary, status, self._failures, missing, place.path, remarks)

    @contextmanager
    def _noting_trouble(self) -> Iterator[None]:
        """Files that cannot be written at the end are no reason to write less of the others."""
        try:
            with writing(self._place.path):
                yield
        except StorageError as error:
            if not self._status.message:
                self._status.state, self._status.message = "stopped", str(error)

    def _summary(self) -> Results:
        self._failures.sort(key=lambda failure: (failure.replication, failure.label))
        return self._study.summary(self._tally, self._failures)

    def _enqueue(self, tasks: Iterable[Task]) -> None:
        """Take what is done already; let the rest wait, what is the same only once."""
        fresh = deque(self._added(tasks))
        while fresh:
            task = fresh.popleft()
            key = self._place.job(task).address
            if key in self._pending:
                self._pending[key].append(task)
                continue
            with writing(self._place.path):
                record = self._place.find(task)
            if record is None:
                self._pending[key] = [task]
                self._dispatcher.waiting.append(key)
            else:
                self._entry(task).kept += 1
                fresh.extend(self._added(self._finished(task, record)))
                self._tick()

    def _added(self, tasks: Iterable[Task]) -> list[Task]:
        added = list(tasks)
        with writing(self._place.path):
            self._place.add(added, self._tally.chosen)
        return added

    def _entry(self, task: Task) -> EntryStatus:
        return self._status.entries[self._study.variants[task.variant].entry]

    def _submit(self, executor: JobExecutor, key: str) -> Future[Outcome]:
        """Hand out a job."""
        task = self._pending[key][0]
        job, scenario = self._place.job(task), self._study.variants[task.variant].scenario
        here = executor.in_process or executor.children
        where = self._place.job_file(task) if here else None, self._place.code
        progress = self._under_way.begins(key, scenario.schedule.total_turns(scenario.agents.count))
        if executor.in_process:
            self._current = key
            return executor.submit(perform, job, scenario, *where, self._pulled)
        if task.variant not in self._pickled:
            self._pickled[task.variant] = PickledScenario.of(scenario)
        job = replace(job, driver=os.getpid() if executor.children else None)
        on_pull = None if progress is None else ProgressFile(progress)
        return executor.submit(perform, job, self._pickled[task.variant], *where, on_pull)

    def _settle(self, key: str, outcome: Outcome) -> None:
        """Keep what a job has given, for all that it was the job of, and count it."""
        if outcome.refusal is not None and self._study.bad_input_ends:
            raise outcome.refusal
        with finished_first():
            self._keep(key, outcome)

    def _keep(self, key: str, outcome: Outcome) -> None:
        first, *others = tasks = self._pending[key]
        with writing(self._place.path):
            self._place.take(tasks, outcome)
        del self._pending[key]
        record, more = outcome.record, list[Task]()
        self._under_way.ends(key)
        if record is None:
            for task in tasks:
                more += self._failed(task, outcome)
        else:
            self._entry(first).seconds += float(record["wall_seconds"] or 0.0)
            for task in others:
                self._entry(task).kept += 1
            for task in tasks:
                more += self._finished(task, record)
        self._enqueue(more)

    def _finished(self, task: Task, record: Record) -> Sequence[Task]:
        self._entry(task).done += 1
        return self._ended(task, record)

    def _ended(self, task: Task, record: Record | None) -> Sequence[Task]:
        """Note that a task has ended; returns what is to be run in consequence."""
        self._tally.take(task, record)
        more = sent(self._planner, (task, record))
        self._tally.add(more)
        self._told(task, record)
        return more

    def _told(self, task: Task, record: Record | None) -> None:
        """Tell the listener of a job that has ended, and heed what it says at the next tick."""
        if self._listener is None or self._enough:
            return
        variant, key = self._study.variants[task.variant], (task.variant, task.phase)
        about = (variant.title(task.phase), task.phase, variant.shown, self._status.ended, self._status.total)
        point = None if self._tally.is_open(*key) else EndedPoint(*about, records=self._tally.records(*key))
        end = EndedJob(*about, replication=task.replication, record=record, point=point)
        self._enough = self._listener.ended(end) or ""

    def _failed(self, task: Task, outcome: Outcome) -> Sequence[Task]:
        label, error = self._study.title(task), outcome.error or ""
        failure = Failure(label, task.replication, outcome.status, error, self._replay(task))
        self._failures.append(failure)
        self._entry(task).failed += 1
        self._status.fail(failure)
        if self._listener is not None:
            self._listener.failed(failure)
        return self._ended(task, None)

    def _replay(self, task: Task) -> str:
        variant = self._study.variants[task.variant]
        if names := not_installed([variant.scenario.resolved()]):
            return f"coband.run(..., only={variant.entry!r}, trace='full') where {', '.join(names)} is defined"
        return self._commands.repeat(variant.settings, variant.scenario.seed, task.replication, variant.entry)

    def _tick(self, *, at_once: bool = False) -> None:
        """Go on, unless the listener has had enough."""
        if self._enough:
            raise CalledOff(self._enough)
        self._look(at_once=at_once)

    def _refresh(self) -> None:
        """Bring totals and times up to date."""
        self._status.elapsed = time.monotonic() - self._begun
        self._status.updated = now()
        self._status.under_way = self._under_way.look() if self._status.state == "running" else 0.0
        for entry, total in self._tally.expected().items():
            self._status.entries[entry].total = total

    def _pulled(self, pulls: int) -> None:
        """A job in this process goes on."""
        self._under_way.advances(self._current, pulls)
        with suppress(StorageError):  # not the job's fault; the next tick reports it
            self._look()

    def _look(self, *, at_once: bool = False) -> None:
        """Tell the listener how far it is, and write that down, when it is time."""
        moment = time.monotonic()
        if self._listener is not None and (at_once or moment - self._looked >= LOOK_SECONDS):
            self._looked = moment
            self._refresh()
            self._listener.changed(self._status)
        if at_once or moment - self._written >= WRITE_SECONDS:
            self._written = moment
            self._refresh()
            with writing(self._place.path):
                self._place.write(self._status)
