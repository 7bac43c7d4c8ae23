"""The directory of a run or a sweep, which is a run of several points, and the one driver that writes it.

* A lock keeps other drivers out; it goes when its process goes, however that ends.
* Each finished job is a file in ``done``, named by its *address*, the digest of everything that determines its result.
  A later driver takes what is there and runs the rest.
* ``run.sqlite`` is made of these files by each driver. They hold no traces: a traced job records itself in a file in
  ``jobs``, which goes into ``run.sqlite`` when the job has ended. A later driver puts the store that it finds into
  ``jobs``, and takes traces from there.
* ``status.json`` says about once a second how far it is; ``results.json`` comes at the end.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from coband.simulator.experiments.runs.address import address
from coband.simulator.experiments.runs.attempt import Outcome
from coband.simulator.experiments.runs.code_version import code_version, differences, hardware
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.planner import FRESH, Task
from coband.simulator.experiments.runs.results import Record, Results, dump
from coband.simulator.experiments.runs.status import Status, held, now
from coband.simulator.experiments.scenario.files import write
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.store import files, recording, schema
from coband.simulator.experiments.store.files import OutputError
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.recording import CachedResult, Recorded, ResultCache, decompressed, unpacked
from coband.simulator.experiments.store.store import Series, read_series

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.study import Study

INDENTED = 100
"""Jobs up to which results.json is indented; of more jobs it would take long, and nobody reads it."""


class RunDirectory:
    """A directory, open for writing.

    Args:
        path: an existing directory.
        resume: whether earlier drivers of the same or a similar study may have been there; otherwise it is empty.
        done: where finished jobs are kept, if several studies share them; None for a folder of the directory.
        again: whether finished jobs run again.

    Attributes:
        code: version of the code that workers must have.
        remarks: sentences about results of earlier drivers that are not used.
    """

    def __init__(self, path: Path, *, resume: bool = False, done: Path | None = None, again: bool = False) -> None:
        self.path, self.code = path, code_version()
        self.remarks: dict[str, None] = {}
        self._resume, self._again = resume or again, again
        self._cache = ResultCache(done or path / files.DONE)
        self._parts = path / files.JOBS
        self._begun = time.time_ns()  # names of files that no other driver gives
        self._manifest: Manifest = {}
        self._jobs: dict[Task, Job] = {}
        self._labels: set[str] = set()
        self._traces: dict[tuple[str, str], Recorded] = {}  # of earlier drivers, by address and level
        self._unseen: set[str] = set()  # fingerprints that an earlier driver showed, and this one has not met
        self._unused = self._discarded = False
        self._database: sqlite3.Connection | None = None

    def other_hardware(self) -> str | None:
        """What an earlier driver computed with, in a sentence, if that was something else; its results do not count."""
        found = differences(files.manifest_of(self.path).get("hardware"), hardware())
        if not found:
            return None
        return (
            f"{self.path} was begun with other hardware or libraries ({'; '.join(found)}), whose last bits differ; its "
            "finished jobs are kept but not used, and run again here"
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory's lock.

        Raises:
            LockedError: another process holds it.
            StorageError: nothing can be written there.
        """
        try:
            with held(self.path):
                yield
        finally:
            if self._discarded:
                shutil.rmtree(self.path, ignore_errors=True)

    def open(self, study: Study) -> None:
        """Make the store; the traces in an earlier one are kept until this driver has ended.

        Raises:
            OutputError: another run has just taken the directory, or a study of another kind has been there.
        """
        earlier, kind = files.manifest_of(self.path), files.kind_of(study.facts())
        try:
            (self.path / files.MANIFEST).touch(exist_ok=self._resume)
        except FileExistsError:
            raise OutputError(f"another run has just started in {self.path}; choose another directory.") from None
        if earlier and files.kind_of(earlier) != kind:
            raise OutputError(
                f"{self.path} holds {files.kind_of(earlier)}, whose results this would replace: --resume goes on with "
                "a study of the same kind; choose another --out DIR."
            )
        self._study, self._swept = study, kind != files.RUN
        self.remarks |= dict.fromkeys(study.unknown)
        explained = self._again or study.unknown or self.other_hardware() is not None
        self._unused = not explained and self._cache.holds_any()
        self._parts.mkdir(exist_ok=True)
        self._take_over(self.path / files.DATABASE)
        self._database = schema.connect(str(self.path / files.DATABASE), collected=True)

    def _take_over(self, store: Path) -> None:
        """Find what an earlier driver has left: set its store aside, and keep what it had no time to keep."""
        before = recording.recorded(store) if store.is_file() else []
        self._unseen = {str(one.record.get("fingerprint")) for one in before if one.record is not None}
        if any(one.record is not None and one.trace != "off" for one in before):
            with suppress(sqlite3.Error), closing(schema.reopened(store)) as connection:  # somebody may read it
                schema.make_whole(connection)
            recording.move(store, self._parts / f"{self._begun}.sqlite")
        recording.remove(store)
        for file in sorted(self._parts.glob("*.sqlite")):
            finished = [one for one in recording.recorded(file) if one.record is not None and not self._again]
            self._traces |= {(one.address, one.trace): one for one in finished}
            for one in finished:
                with suppress(sqlite3.Error):  # it is damaged, and the job runs again
                    if self._cache.get(one.address) is None:
                        self._cache.put(one.address, one.content())
            if not finished:
                recording.remove(file)

    def begin(self, manifest: Manifest) -> None:
        """Write scenario and manifest, and the files that the scenario needs beside it."""
        self._manifest = manifest | {"code": self.code}
        write(((one.scenario.problem, one.scenario.base) for one in self._study.variants), self.path)
        files.replace_text(self.path / files.SCENARIO, self._study.text)
        schema.insert(self._store, "meta", [("scenario", self._study.text)])
        self._write_manifest()

    @property
    def _store(self) -> sqlite3.Connection:
        assert self._database is not None, "open() comes first"
        return self._database

    def _write_manifest(self) -> None:
        text = dump(self._manifest)
        files.replace_text(self.path / files.MANIFEST, text)
        schema.insert(self._store, "meta", [("manifest", text)])

    def add(self, tasks: Sequence[Task], chosen: Sequence[int] = ()) -> None:
        """Number jobs that are to be run; of a sweep, also note their variants.

        Args:
            chosen: numbers of the variants that tuning chose.
        """
        for task in tasks:
            variant = self._study.variants[task.variant]
            job = self._jobs[task] = Job(
                id=len(self._jobs),
                label=self._study.title(task),
                algorithm=variant.algorithm,
                replication=task.replication,
                seed=variant.scenario.seed,
                trace=variant.scenario.trace,
                entry=variant.entry,
                address=address(variant.digest, task.replication),
            )
            if self._swept and job.label not in self._labels:
                self._labels.add(job.label)
                self._add_variant(task, job.label, task.variant in chosen if task.phase == FRESH else None)
        schema.insert(self._store, "jobs", [recording.job_row(self._jobs[task], "waiting") for task in tasks])

    def _add_variant(self, task: Task, label: str, chosen: bool | None) -> None:
        """Note the scenario and the parameters of a label; ``chosen``: None where nothing is tuned."""
        variant = self._study.variants[task.variant]
        marked = None if chosen is None else int(chosen)
        scenario = to_yaml(variant.scenario.resolved())
        row = (label, variant.number, variant.entry, variant.algorithm, task.phase, marked, scenario)
        schema.insert(self._store, "variants", [row])
        parameters = [(label, p.key, p.name, p.text, p.number) for p in variant.parameters]
        schema.insert(self._store, "parameters", parameters)

    def series(self, task: Task) -> Series:
        """The curves of a finished job."""
        return read_series(self._store, self._jobs[task].id, task.replication)

    def job(self, task: Task) -> Job:
        """What to run; jobs with equal addresses run once."""
        return self._jobs[task]

    def job_file(self, task: Task) -> Path | None:
        """Where a job records its trace while it runs on this machine; None if it has none."""
        job = self._jobs[task]
        return None if job.trace == "off" else self._parts / f"{self._begun}-{job.id:05d}.sqlite"

    def find(self, task: Task) -> Record | None:
        """Take in the result of an earlier driver, if there is one, with its trace; without, where one is wanted, it
        does not count."""
        job = self._jobs[task]
        done = self._cache.get(job.address)
        if done is not None:
            self._unseen.discard(str(done.record.get("fingerprint")))
        levels = ("full", "protocol") if job.trace == "off" else (job.trace,)
        trace = next((found for level in levels if (found := self._traces.get((job.address, level)))), None)
        if done is None or self._again or (trace is None and job.trace != "off"):
            return None
        if trace is not None:
            self._jobs[task] = replace(job, trace=trace.trace)
        try:
            self._insert(task, Outcome("finished", done.record), done, trace)
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            self._jobs[task] = job
            return None  # the store of its trace is damaged
        self._unused = False
        return done.record

    def take(self, tasks: Sequence[Task], outcome: Outcome) -> None:
        """Keep what a job has given: in its done-file, where it finished, and in the store.

        Args:
            tasks: all that it was the job of.
        """
        job, file = self._jobs[tasks[0]], self.job_file(tasks[0])
        if file is not None and outcome.trace:
            file.write_bytes(decompressed(outcome.trace))
        done = unpacked(outcome.content) if outcome.content else None
        if done is not None:
            self._unseen.discard(str(done.record["fingerprint"]))
            self._cache.put(job.address, outcome.content)
        trace = None
        if file is not None and file.exists():
            trace = Recorded(file, job.id, job.address, job.trace, outcome.status, outcome.record, outcome.error)
        for task in tasks:
            self._insert(task, outcome, done, trace)
        if file is not None:
            recording.remove(file)

    def _insert(self, task: Task, outcome: Outcome, done: CachedResult | None, trace: Recorded | None) -> None:
        """Put a job into the store.

        Args:
            done: what it has given; None when it broke off.
            trace: where it has recorded itself, if it has.
        """
        job = self._jobs[task]
        with recording.attached(self._store, None if trace is None else trace.file):
            if trace is not None:
                recording.copy_tables(self._store, schema.OF_TRACES, trace.number, job.id)
            for table, rows in () if done is None else done.tables.items():
                if rows:
                    places = ", ".join("?" * len(rows[0]))
                    self._store.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({job.id}, {places})", rows)
            row = recording.job_row(job, outcome.status, outcome.record, outcome.error)
            self._store.execute(f"INSERT OR REPLACE INTO jobs VALUES ({', '.join('?' * len(row))})", row)

    def left_behind(self, task: Task) -> Outcome | None:
        """What a job has recorded that nobody has waited for; None if nothing."""
        file = self.job_file(task)
        for one in () if file is None or not file.exists() else recording.recorded(file):
            status = one.status if one.status in ("finished", "failed", "violated") else "interrupted"
            return Outcome(status, one.record, one.error, content=one.content())
        return None

    def write(self, status: Status) -> None:
        """Write how far it is."""
        files.replace_text(self.path / files.STATUS, dump(asdict(status)))

    def end(self, status: Status, summary: Results) -> None:
        """Write status, results and manifest, and make the store one file, unless somebody reads it all the time."""
        self.write(status)
        if self._unseen:
            text = "the scenario, its options or the code have changed since: what has finished and is no longer in it"
            shown = {(job.address, job.trace) for job in self._jobs.values()}
            but = ", but for its traces, which are gone" if self._traces.keys() - shown else ""
            self.remarks[f"{text} is kept in {self.path / files.DONE}{but}, and not shown"] = None
        elif self._unused:
            text = "the scenario, its options, coband, or a file in the folder of your own code has changed since"
            self.remarks[f"no finished job in {self.path / files.DONE} was used again: {text}"] = None
        files.replace_text(self.path / files.RESULTS, dump(summary, indented=status.total <= INDENTED))
        self._manifest |= {"status": status.state, "finished": now(), "jobs": status.total}
        self._write_manifest()
        schema.make_whole(self._store)
        self.close()
        if status.state in ("finished", "failed") or not any(self._parts.iterdir()):
            shutil.rmtree(self._parts)

    def discard(self) -> None:
        """Leave nothing of a study that was refused before anything had finished, so that the same command can be given
        again; but what was there before stays."""
        self._discarded = not self._resume

    def close(self) -> None:
        """Close the store; what is finished stays readable."""
        if self._database is not None:
            self._database.close()
            self._database = None


def create(
    name: str, out: Path | None = None, *, swept: bool = False, resume: bool = False, again: bool = False
) -> RunDirectory:
    """The directory to run in: ``out``, or runs/<name>-<number>, of which the next number is free.

    Args:
        swept: whether it is that of a sweep or a search.
        resume: go on in ``out``, which may be new, or in the latest one of this name.
        again: the same, but finished jobs run again.

    Raises:
        OutputError: ``out`` holds something already, no directory can be made there, or there is none to go on in.
    """
    begun = out is not None and _begun(out, swept)
    if not (resume or again):
        if begun and swept:
            raise OutputError(f"{out} holds results already; go on with --resume, or choose another --out DIR.")
        return RunDirectory(files.new_place(name, out))
    if out is not None:
        return RunDirectory(out if begun else files.new_place(name, out), resume=True, again=again)
    start = files.stem(name)
    numbers = {path: path.name[len(start) + 1 :] for path in files.RUNS.glob(f"{start}-*") if _begun(path, swept)}
    found = {path: int(number) for path, number in numbers.items() if number.isdecimal()}
    if not found:
        raise OutputError(f"there is no {files.RUNS / start}-... to go on with; name the directory with --out DIR.")
    return RunDirectory(max(found, key=lambda path: found[path]), resume=True, again=again)


def _begun(path: Path, swept: bool) -> bool:
    """Whether a driver of such a study has been there, or one that was killed before it could say what it drives."""
    manifest = files.manifest_of(path)
    return (files.kind_of(manifest) != files.RUN) == swept if manifest else (path / files.LOCK).is_file()
