"""The directory of one run: where its scenario, manifest, results and store are."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.experiments.runs.attempt import Outcome
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.planner import Task
from coband.simulator.experiments.runs.results import Record, Results, dump
from coband.simulator.experiments.runs.status import Status, now
from coband.simulator.experiments.scenario import files
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.store import recording, schema
from coband.simulator.experiments.store.files import (
    DATABASE,
    JOBS,
    MANIFEST,
    RESULTS,
    SCENARIO,
    OutputError,
    address,
    new_place,
    replace_text,
)
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.store import Series, read_series

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.study import Study

OFTEN, SELDOM = 20, 10
"""results.json is written again, with all records, after ``OFTEN`` times the seconds that the last write took, or when
it lacks one in ``SELDOM`` of the jobs that have ended."""
INDENTED = 100
"""Jobs up to which results.json is indented at the end; of more jobs it would take long, and nobody reads it."""


class RunDirectory:
    """A run's directory and its store, open for writing; one driver writes it.

    Args:
        path: an existing, empty directory.

    Attributes:
        code: version of the code that workers must have, where results are kept for later drivers; None for any.
        remarks: sentences about results of earlier drivers that are not used.
    """

    code: str | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remarks: dict[str, None] = {}
        self._parts = path / JOBS
        self._manifest: Manifest = {}
        self._jobs: dict[Task, Job] = {}
        self._written = -1
        self._last_write = self._write_seconds = 0.0
        self._database: sqlite3.Connection | None = None

    def held(self) -> AbstractContextManager[None]:
        """Keep other drivers out, as long as that is needed: nobody else finds a new directory empty."""
        return nullcontext()

    def open(self, study: Study) -> None:
        """Make the store.

        Raises:
            OutputError: another run has just taken the directory.
        """
        try:
            (self.path / MANIFEST).touch(exist_ok=False)
        except FileExistsError:
            raise OutputError(f"another run has just started in {self.path}; choose another directory.") from None
        self._parts.mkdir()
        self._connect(study)

    def _connect(self, study: Study) -> None:
        self._study = study
        self._database = schema.connect(str(self.path / DATABASE), collected=True)

    def begin(self, manifest: Manifest) -> None:
        """Write scenario and manifest, and the files that the scenario needs beside it."""
        self._manifest = manifest
        files.write(((one.scenario.problem, one.scenario.base) for one in self._study.variants), self.path)
        replace_text(self.path / SCENARIO, self._study.text)
        self._store_meta(scenario=self._study.text)
        self._write_manifest()

    @property
    def _store(self) -> sqlite3.Connection:
        assert self._database is not None, "open() comes first"
        return self._database

    def _store_meta(self, **values: str) -> None:
        schema.insert(self._store, "meta", values.items())

    def _write_manifest(self) -> None:
        text = dump(self._manifest)
        replace_text(self.path / MANIFEST, text)
        self._store_meta(manifest=text)

    def add(self, tasks: Sequence[Task], chosen: Sequence[int] = ()) -> None:
        """Number jobs that are to be run.

        Args:
            chosen: numbers of the variants that tuning chose.
        """
        for task in tasks:
            variant = self._study.variants[task.variant]
            self._jobs[task] = Job(
                id=len(self._jobs),
                label=self._study.title(task),
                algorithm=variant.algorithm,
                replication=task.replication,
                seed=variant.scenario.seed,
                trace=variant.scenario.trace,
                entry=variant.entry,
            )
        schema.insert(self._store, "jobs", [recording.job_row(self._jobs[task], "waiting") for task in tasks])

    def series(self, task: Task) -> Series:
        """The curves of a finished job that the store has taken in."""
        return read_series(self._store, self._jobs[task].id, task.replication)

    def add_variant(self, task: Task, label: str, chosen: bool | None) -> None:
        """Note the scenario and the parameters of a label whose scenario is not that of the run.

        Args:
            label: how results call it.
            chosen: whether tuning has chosen it; None where nothing is tuned.
        """
        variant = self._study.variants[task.variant]
        marked = None if chosen is None else int(chosen)
        scenario = to_yaml(variant.scenario.resolved())
        row = (label, variant.number, variant.entry, variant.algorithm, task.phase, marked, scenario)
        schema.insert(self._store, "variants", [row])
        parameters = [(label, p.key, p.name, p.text, p.number) for p in variant.parameters]
        schema.insert(self._store, "parameters", parameters)

    def job(self, task: Task) -> Job:
        return self._jobs[task]

    def key(self, task: Task) -> Hashable:
        """What tells jobs apart: those with equal keys run once."""
        return task

    def find(self, task: Task) -> Record | None:
        """Take in the result of an earlier driver, if there is one."""
        return None

    def job_file(self, task: Task) -> Path | None:
        """Where a job records itself while it runs; None when its results travel."""
        return self._parts / f"{self._jobs[task].id:05d}.sqlite"

    def take(self, tasks: Sequence[Task], outcome: Outcome) -> None:
        """Keep what a job has given.

        Args:
            tasks: all that it was the job of.
            outcome: what it has given; the rest is in its file.
        """
        for task in tasks:
            self._collect(task, outcome)

    def _collect(self, task: Task, outcome: Outcome) -> None:
        """Take a job's recording into the run's store and remove its own file."""
        file, job = self.job_file(task), self._jobs[task]
        assert file is not None
        found = file.exists()
        with recording.attached(self._store, file if found else None):
            if found:
                recording.copy_tables(self._store, job.id, (*schema.OF_TRACES, *schema.OF_RESULTS))
            self._end_job(recording.job_row(job, outcome.status, outcome.record, outcome.error))
        recording.remove(file)

    def _end_job(self, row: tuple[object, ...]) -> None:
        """Note how a job has ended."""
        self._store.execute(f"INSERT OR REPLACE INTO jobs VALUES ({', '.join('?' * len(row))})", row)

    def left_behind(self) -> Iterator[tuple[Task, Outcome]]:
        """Jobs that have recorded something and have not been taken, and how far they came."""
        for task in self._jobs:
            file = self.job_file(task)
            if file is not None and file.exists():
                status, result = _last_status(file)
                if status is None:  # killed before its tables, or its row, were there
                    recording.remove(file)
                else:
                    yield task, Outcome(status if status == "finished" else "interrupted", result)

    def due(self, status: Status, pause: float) -> bool:
        """Whether it is time to write how far it is: after every job that takes long enough.

        Args:
            pause: seconds until this is asked again.
        """
        new, waited = status.ended - self._written, time.monotonic() - self._last_write
        return new > 0 and (SELDOM * new >= status.ended or waited + pause >= OFTEN * self._write_seconds)

    def write(self, status: Status, summary: Callable[[], Results]) -> None:
        """Write how far it is: results.json, with all that is finished, unless jobs take very little time."""
        begun, self._written = time.monotonic(), status.ended
        replace_text(self.path / RESULTS, dump(summary(), indented=False))
        self._last_write = time.monotonic()
        self._write_seconds = self._last_write - begun

    def end(self, status: Status, summary: Results) -> None:
        """Write results and manifest, and make the store one file that can be copied and read anywhere."""
        replace_text(self.path / RESULTS, dump(summary, indented=status.total <= INDENTED))
        self._manifest |= {"status": status.state, "finished": now(), "jobs": status.total}
        self._write_manifest()
        self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._store.execute("PRAGMA journal_mode = DELETE")
        self.close()
        if self._parts.is_dir() and not any(self._parts.iterdir()):
            self._parts.rmdir()

    def discard(self) -> None:
        """Leave nothing of a run that was refused before anything had finished, so that the same command can be given
        again."""
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        """Close the store; what is finished stays readable."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _last_status(file: Path) -> tuple[str | None, Record | None]:
    """Status and record in a job's own file."""
    with closing(sqlite3.connect(address(file, "rw"), uri=True)) as connection:
        try:
            status, result = connection.execute("SELECT status, result FROM jobs").fetchone()
        except (sqlite3.DatabaseError, TypeError):
            return None, None
    return status, None if result is None else json.loads(result)


def create(name: str, out: Path | None = None) -> RunDirectory:
    """A new run directory: ``out``, or runs/<name>-<number> with the next free number.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    return RunDirectory(new_place(name, out))
