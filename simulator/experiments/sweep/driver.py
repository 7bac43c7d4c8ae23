"""The driver of a sweep: finds what is done, has the rest run, and keeps what comes back."""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.job import Outcome
from coband.simulator.experiments.runs.results import Failure
from coband.simulator.experiments.store.directory import DATABASE, MANIFEST, RESULTS, SCENARIO, replace_text
from coband.simulator.experiments.store.manifest import manifest, now
from coband.simulator.experiments.sweep import lock, summary
from coband.simulator.experiments.sweep.address import address, code_version
from coband.simulator.experiments.sweep.collected import Collected, StorageError, writing
from coband.simulator.experiments.sweep.dispatch import Dispatcher
from coband.simulator.experiments.sweep.planner import Planner, Task, title
from coband.simulator.experiments.sweep.result_cache import CachedResult, ResultCache, unpacked
from coband.simulator.experiments.sweep.status import Progress, Status, StatusFile
from coband.simulator.experiments.sweep.study import Study
from coband.simulator.experiments.sweep.work import Work, pickled
from coband.simulator.experiments.sweep.workers import WorkerPool, WorkerPoolError
from coband.simulator.metrics import by_name

DONE = "done"


class Listener(Protocol):
    """Follows a sweep."""

    def changed(self, status: Status) -> None:
        """Some time has passed, or some jobs have ended."""

    def failed(self, failure: Failure) -> None:
        """A job broke off."""


@dataclass(frozen=True)
class Report:
    """What came out of a sweep.

    Attributes:
        object: what ``--json`` prints.
        status: how far it came.
        missing: number of jobs that have not ended.
    """

    object: dict[str, Any]
    status: Status
    missing: int
    directory: Path


@dataclass(frozen=True)
class Commands:
    """Command lines that the driver tells its user and its manifest about.

    Attributes:
        replay: start of the one that repeats a job, such as ``["coband", "run", "x.yaml"]``.
        resume: goes on with the sweep.
        given: began it.
    """

    replay: Sequence[str]
    resume: str
    given: Sequence[str]


class Driver:
    """Runs a study.

    Args:
        study: what to run.
        directory: an existing directory, empty or of an earlier driver of the same or a similar study.
        crew: who does the jobs.
        commands: for messages.
        listener: follows the sweep.
    """

    def __init__(
        self, study: Study, directory: Path, crew: WorkerPool, commands: Commands, listener: Listener | None = None
    ) -> None:
        self._study, self._directory, self._crew, self._commands = study, directory, crew, commands
        self._listener = listener
        self._agenda = Planner(study)
        self._files = ResultCache(directory / DONE)
        self._dispatcher = Dispatcher(crew, self._work, self._settle, self._tick)
        self._status = Status(
            study.name,
            resume=commands.resume,
            workers=crew.describe(),
            dashboard=crew.dashboard,
            entries={entry: Progress() for entry in study.entries},
        )
        self._status_file = StatusFile(directory, self._status)
        self._pending: dict[str, list[Task]] = {}
        self._scenarios: dict[int, bytes] = {}
        self._failures: list[Failure] = []
        self._manifest: dict[str, Any] = {}

    def run(self) -> Report:
        """Run all jobs that are not done yet; Ctrl-C stops them and keeps what is finished.

        Raises:
            LockedError: another driver works in the directory.
            StorageError: nothing can be written there.
            DataError: a data set is missing.
        """
        if self._study.missing is not None:
            raise self._study.missing
        with lock.held(self._directory):
            with writing():
                self._store = Collected(self._directory / DATABASE, self._study.variants)
            state, message = "stopped", ""
            try:
                self._begin()
                self._dispatcher.run()
                state = "failed" if self._failures else "finished"
            except KeyboardInterrupt:
                state = "interrupted"
            except (StorageError, WorkerPoolError) as error:
                message = str(error)
            finally:
                self._crew.abandon()
                self._status.state, self._status.message = state, message
                report = self._end()
        return report

    def _begin(self) -> None:
        study, seed = self._study, self._study.variants[0].scenario.seed
        metrics = by_name(*(tuple(variant.scenario.metrics.values()) for variant in study.variants)).values()
        facts = manifest(study.name, seed, self._commands.given, 0, self._crew.size(), metrics)
        self._manifest = {**facts, "points": study.points, "variants": len(study.variants), "code": code_version()}
        with writing():
            replace_text(self._directory / SCENARIO, study.text)
            self._write_manifest()
            self._store.store_meta(scenario=study.text)
            self._status_file.update(self._agenda.expected, at_once=True)
        self._enqueue(self._agenda.begin())
        self._tick()

    def _write_manifest(self) -> None:
        text = results.dump(self._manifest)
        replace_text(self._directory / MANIFEST, text)
        self._store.store_meta(manifest=text)

    def _end(self) -> Report:
        """Write down how it ended, as far as there is room."""
        report = summary.summary(self._study, self._agenda, self._failures)
        status = self._status
        with suppress(StorageError), writing():
            self._status_file.update(self._agenda.expected, at_once=True)
            self._manifest |= {"status": status.state, "finished": now(), "jobs": status.total}
            self._write_manifest()
            replace_text(self._directory / RESULTS, results.dump(report))
            self._store.end()
        self._store.close()
        if self._listener is not None:
            self._listener.changed(status)
        return Report(report, status, status.total - status.done - status.failed, self._directory)

    def _enqueue(self, tasks: Iterable[Task]) -> None:
        """Take what is done already; let the rest wait, what is the same only once."""
        fresh = deque(self._noted(tasks))
        while fresh:
            task = fresh.popleft()
            place = self._address(task)
            if place in self._pending:
                self._pending[place].append(task)
                continue
            done = self._files.get(place)
            if done is None:
                self._pending[place] = [task]
                self._dispatcher.waiting.append(place)
            else:
                self._progress(task).kept += 1
                fresh.extend(self._noted(self._finished(task, done)))
                self._tick()

    def _noted(self, tasks: Iterable[Task]) -> list[Task]:
        noted = list(tasks)
        with writing():
            self._store.add(noted, self._agenda.chosen)
        return noted

    def _address(self, task: Task) -> str:
        return address(self._study.variants[task.variant].digest, task.replication)

    def _progress(self, task: Task) -> Progress:
        return self._status.entries[self._study.variants[task.variant].entry]

    def _work(self, place: str) -> Work:
        task = self._pending[place][0]
        scenario = self._scenarios.get(task.variant)
        if scenario is None:
            scenario = self._scenarios[task.variant] = pickled(self._study.variants[task.variant].scenario)
        return Work(scenario, task.replication, code_version(), None if self._crew.outlives else os.getpid())

    def _settle(self, place: str, outcome: Outcome, content: bytes) -> None:
        """Keep what a job has given, for all that it was the job of."""
        more: list[Task] = []
        if outcome.record is not None:
            with writing():
                self._files.put(place, content)
            done = unpacked(content)
            first = self._pending[place][0]
            self._progress(first).seconds += float(done.record["wall_seconds"] or 0.0)
            for task in self._pending.pop(place):
                self._progress(task).kept += task is not first
                more += self._finished(task, done)
        else:
            for task in self._pending.pop(place):
                more += self._failed(task, outcome)
        self._enqueue(more)

    def _finished(self, task: Task, done: CachedResult) -> list[Task]:
        with writing():
            self._store.finish(task, done)
        self._progress(task).done += 1
        return self._agenda.ended(task, done.record)

    def _failed(self, task: Task, outcome: Outcome) -> list[Task]:
        variant = self._study.variants[task.variant]
        settings = [word for setting in variant.settings for word in ("--set", setting)]
        arguments = [
            "--seed",
            str(variant.scenario.seed),
            "--replication",
            str(task.replication),
            "--only",
            variant.entry,
            "--trace",
            "full",
        ]
        replay = shlex.join([*self._commands.replay, *settings, *arguments])
        failure = Failure(title(variant, task.phase), task.replication, outcome.status, outcome.error or "", replay)
        with writing():
            self._store.fail(task, outcome)
        self._failures.append(failure)
        self._progress(task).failed += 1
        self._status.fail(failure)
        if self._listener is not None:
            self._listener.failed(failure)
        return self._agenda.ended(task, None)

    def _tick(self) -> None:
        with writing():
            written = self._status_file.update(self._agenda.expected)
        if written and self._listener is not None:
            self._listener.changed(self._status)
