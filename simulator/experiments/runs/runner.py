"""The driver of a run: hands out jobs, stores what comes back at once, and reports."""

from __future__ import annotations

import difflib
import os
import shlex
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from coband.simulator.experiments.runs import executors, results
from coband.simulator.experiments.runs.job import Job, OnPull, Outcome, Source, perform, work
from coband.simulator.experiments.runs.results import Failure, Record
from coband.simulator.experiments.scenario.scenario import Scenario, loads
from coband.simulator.experiments.store.directory import SCENARIO, RunDirectory
from coband.simulator.experiments.store.manifest import manifest, now

WORKER_DIED = "its worker process died, twice: it ran out of memory, crashed or was killed"


class SelectionError(ValueError):
    """Nothing to run was selected; the text lists what there is."""


@dataclass(frozen=True)
class ResolvedText:
    """A scenario as text, which travels to workers; ``base`` is the directory of its data paths."""

    text: str
    base: Path

    @classmethod
    def of(cls, scenario: Scenario) -> ResolvedText:
        """The text of a scenario."""
        return cls(scenario.to_yaml(), scenario.base)

    def load(self) -> Scenario:
        """The scenario again."""
        return loads(self.text, SCENARIO, base=self.base)


class Listener(Protocol):
    """Follows a run."""

    def begin(self, jobs: int) -> None:
        """So many jobs are about to run."""

    def progressed(self, jobs: float) -> None:
        """So many jobs are done, fractions included."""

    def failed(self, failure: Failure) -> None:
        """A job broke off."""


@dataclass
class Report:
    """What came out of a run.

    Attributes:
        object: what ``--json`` prints.
        failures: jobs that broke off.
        missing: number of jobs that an interruption kept from ending.
        stalled: (label, replication, turns never taken) of jobs in which agents waited in vain.
    """

    object: dict[str, Any]
    failures: list[Failure]
    missing: int
    interrupted: bool
    directory: Path
    stalled: list[tuple[str, int, int]] = field(default_factory=list)


def jobs_of(scenario: Scenario, only: Sequence[str] = (), replications: Sequence[int] = ()) -> list[Job]:
    """The jobs of a scenario, replication by replication, so that all labels advance together.

    Args:
        scenario: what to run.
        only: labels or names of algorithms; empty for all.
        replications: their numbers, from 0; empty for as many as the scenario says.

    Raises:
        SelectionError: an unknown name; the text lists the nearest ones.
    """
    entries = [(entry.label, entry.algorithm.name) for entry in scenario.algorithms]
    for name in only:
        _check_known(name, [word for entry in entries for word in entry])
    chosen = [entry for entry in entries if not only or not set(entry).isdisjoint(only)]
    numbers = sorted(set(replications)) or range(scenario.replications)
    pairs = [(replication, *entry) for replication in numbers for entry in chosen]
    return [
        Job(number, label, algorithm, replication, scenario.seed, scenario.trace)
        for number, (replication, label, algorithm) in enumerate(pairs)
    ]


def _check_known(name: str, known: list[str]) -> None:
    if name in known:
        return
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=3)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."
    raise SelectionError(f"no algorithm or label {name!r} in this scenario; {advice}")


def default_workers(jobs: int) -> int:
    """As many workers as there are jobs, or cores if they are fewer."""
    return max(1, min(jobs, executors.cores()))


class Driver:
    """Runs jobs and keeps what they give.

    Args:
        scenario: what the jobs are part of.
        source: the same scenario, as workers load it.
        jobs: what to run.
        directory: where results go; it has not begun yet.
        workers: number of processes; 1 runs everything in this one.
        replay: start of the command that repeats a job, such as ``["coband", "run", "x.yaml"]``.
        command: the command line, for the manifest.
        listener: follows the run.
    """

    def __init__(
        self,
        scenario: Scenario,
        source: Source,
        jobs: Sequence[Job],
        directory: RunDirectory,
        *,
        workers: int,
        replay: Sequence[str],
        command: Sequence[str],
        listener: Listener | None = None,
    ) -> None:
        self._scenario, self._source, self._jobs, self._directory = scenario, source, list(jobs), directory
        self._workers, self._replay, self._command, self._listener = workers, list(replay), command, listener
        chosen = {job.label: job.algorithm for job in self._jobs}
        self._labels = {entry.label: chosen[entry.label] for entry in scenario.algorithms if entry.label in chosen}
        self._records: dict[str, list[Record]] = {label: [] for label in self._labels}
        self._entries = {
            label: results.summarise(label, name, (), scenario.metrics) for label, name in self._labels.items()
        }
        self._failures: list[Failure] = []
        self._ended = 0
        self._turns = scenario.schedule.total_turns(scenario.agents.count)

    def run(self) -> Report:
        """Run all jobs; Ctrl-C stops them and keeps what is finished.

        Raises:
            ScenarioError, DataError: the input is bad; the run ends with status "failed".
        """
        scenario, directory = self._scenario, self._directory
        metrics = scenario.metrics.values()
        facts = manifest(scenario.name, scenario.seed, self._command, len(self._jobs), self._workers, metrics)
        directory.begin(scenario.to_yaml(), facts, self._jobs)
        directory.write_results(self._object())
        if self._listener is not None:
            self._listener.begin(len(self._jobs))
        status = "failed"
        try:
            self._run_all()
            status = "failed" if self._failures else "finished"
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            self._end(status)
        return self._report(interrupted=status == "interrupted")

    def _end(self, status: str) -> None:
        """Keep what jobs that broke off have recorded, and close."""
        for job in self._jobs:
            outcome = self._directory.left_behind(job)
            if outcome is not None and outcome.status == "finished":
                self._take(job, outcome)
            elif outcome is not None:
                self._directory.collect(job, Outcome("interrupted"))
        self._failures.sort(key=lambda failure: (failure.replication, failure.label))
        self._directory.write_results(self._object(), final=True)
        self._directory.end(status, now())

    def _run_all(self) -> None:
        """Run all jobs; those under way when a worker dies run again, each alone, so that only the culprit is lost."""
        waiting = deque(self._jobs)
        while waiting:
            for job in self._run_pool(waiting, self._workers):
                if self._run_pool(deque([job]), 1, apart=True):
                    self._take(job, Outcome("failed", error=WORKER_DIED))

    def _run_pool(self, waiting: deque[Job], workers: int, apart: bool = False) -> list[Job]:
        """Run jobs until none waits; returns those under way when a worker died."""
        local = workers == 1 and not apart
        executor = executors.Serial() if local else executors.processes(workers)
        running: dict[Future[Outcome], Job] = {}
        try:
            while waiting or running:
                while waiting and len(running) < (1 if local else 2 * workers):
                    running[self._submit(executor, waiting[0], local)] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self._take(running[future], future.result())
                    del running[future]
        except BrokenExecutor:
            return list(running.values())
        finally:
            executors.stop(executor)
        return []

    def _submit(self, executor: Executor, job: Job, local: bool) -> Future[Outcome]:
        file = self._directory.job_file(job)
        if local:
            return executor.submit(perform, job, self._source, file, self._on_pull())
        return executor.submit(work, replace(job, driver=os.getpid()), self._source, file)

    def _on_pull(self) -> OnPull | None:
        if self._listener is None or not self._turns:
            return None
        return partial(self._pulled, self._listener.progressed, self._turns)

    def _pulled(self, progressed: Any, turns: int, pulls: int) -> None:
        progressed(self._ended + min(1.0, pulls / turns))

    def _take(self, job: Job, outcome: Outcome) -> None:
        """Store what a job has given."""
        self._directory.collect(job, outcome)
        if outcome.record is not None:
            records = self._records[job.label]
            records.append(outcome.record)
            self._entries[job.label] = self._summary(job.label, records)
        else:
            self._note_failure(job, outcome)
        self._directory.write_results(self._object())
        self._ended += 1
        if self._listener is not None:
            self._listener.progressed(self._ended)

    def _summary(self, label: str, records: Sequence[Record]) -> dict[str, Any]:
        return results.summarise(label, self._labels[label], records, self._scenario.metrics)

    def _note_failure(self, job: Job, outcome: Outcome) -> None:
        arguments = ["--seed", str(job.seed), "--replication", str(job.replication), "--only", job.label]
        replay = shlex.join([*self._replay, *arguments, "--trace", "full"])
        failure = Failure(job.label, job.replication, outcome.status, outcome.error or "", replay)
        self._failures.append(failure)
        if self._listener is not None:
            self._listener.failed(failure)

    def _object(self) -> dict[str, Any]:
        return results.report(self._scenario.name, self._entries.values(), self._failures)

    def _report(self, interrupted: bool) -> Report:
        stalled = [
            (label, int(record["replication"] or 0), int(record["stalled"]))
            for label, records in self._records.items()
            for record in records
            if record["stalled"]
        ]
        missing = len(self._jobs) - self._ended
        return Report(self._object(), self._failures, missing, interrupted, self._directory.path, stalled)
