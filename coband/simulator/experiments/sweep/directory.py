"""The directory of a sweep: that of a run, what lets a later driver go on, its status (written by the driver, readable
after the driver's death), and its summary: means of every variant, and the best parameters of every algorithm.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict
from pathlib import Path

from coband.simulator.experiments.runs import results
from coband.simulator.experiments.runs.code_version import code_version
from coband.simulator.experiments.runs.footing import judged
from coband.simulator.experiments.runs.hardware import differences, hardware
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.planner import FRESH, Planner, Task, Variant
from coband.simulator.experiments.runs.results import Best, Entry, Failure, Record, Results, Spread, dump
from coband.simulator.experiments.runs.status import EntryStatus, Status
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.work import JobResult
from coband.simulator.experiments.statistics import estimates as statistics
from coband.simulator.experiments.store import files, opening, recording, schema
from coband.simulator.experiments.store.directory import RunDirectory
from coband.simulator.experiments.store.files import (
    DATABASE,
    OutputError,
    StoreError,
    manifest_of,
    replace_bytes,
    replace_text,
)
from coband.simulator.experiments.store.manifest import Manifest
from coband.simulator.experiments.store.recording import CachedResult, decompressed, unpacked
from coband.simulator.experiments.sweep import lock
from coband.simulator.experiments.sweep.address import address
from coband.simulator.experiments.sweep.planner import TUNING, Choice, TuningPlanner
from coband.simulator.metrics import Metric


def write(directory: Path, status: Status) -> None:
    """Replace the status of a sweep."""
    replace_text(directory / files.STATUS, dump(asdict(status)))


def read(directory: Path) -> Status:
    """The status of the sweep in a directory; a driver that was killed shows as ``killed``.

    Raises:
        OutputError: there is no sweep, or its status is damaged.
    """
    file = directory / files.STATUS
    if not file.is_file():
        raise OutputError(f"{directory} holds no sweep: there is no {file}. Give the directory that --out named.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["entries"] = {name: EntryStatus(**entry) for name, entry in found["entries"].items()}
        status = Status(**found)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise OutputError(
            f"{file} is damaged ({error}); `coband sweep FILE --resume --out {directory}` writes it again."
        ) from error
    if status.state == "running" and not lock.is_held(directory):
        status.state = "killed"
    return status


def summary(study: Study, planner: Planner, failures: Sequence[Failure]) -> Results:
    """The object that ``coband sweep --json`` prints and results.json holds.

    It is that of a run, with variants for labels; each has its ``parameters`` and ``phase`` beside. With tuning,
    ``best`` has a line for each algorithm in each context.
    """
    phases = (FRESH, TUNING) if isinstance(planner, TuningPlanner) else (FRESH,)
    entries = [
        entry(variant, phase, planner)
        for phase in phases
        for variant in study.variants
        if planner.records(variant.number, phase)
    ]
    report = results.report(study.name, entries, failures)
    if isinstance(planner, TuningPlanner):
        order = {context: number for number, context in enumerate(dict.fromkeys(v.context for v in study.variants))}
        choices = sorted(planner.choices, key=lambda choice: order[choice.context])
        report["best"] = [_best(study, planner, choice) for choice in choices]
    return report


def parameters(variant: Variant) -> dict[str, str]:
    """Name -> label of the value."""
    return {parameter.name: parameter.text for parameter in variant.displayed}


def entry(variant: Variant, phase: str, planner: Planner) -> Entry:
    """The results of a variant in a phase, with what tells it apart."""
    found = planner.summary(variant, phase)
    return {**found, "entry": variant.entry, "phase": phase, "parameters": parameters(variant)}


def _best(study: Study, planner: TuningPlanner, choice: Choice) -> Best:
    """One line of the table of best parameters; the values are null where no candidate finished."""
    key = planner.rule.on
    found = choice.variant is not None
    variant = study.variants[choice.candidates[0] if choice.variant is None else choice.variant]
    tuned, fresh = (
        estimated(results.numbers(key, planner.records(variant.number, phase)), variant.scenario.metrics.get(key))
        for phase in (TUNING, FRESH)
    )
    return {
        "entry": choice.context[0],
        "on": key,
        "candidates": len(choice.candidates),
        "context": {p.name: p.text for p in variant.displayed if not p.tuned},
        "label": variant.label if found else None,
        "chosen": {p.name: p.text for p in variant.displayed if p.tuned} if found else None,
        "tuning": tuned if found else None,
        "fresh": fresh if found else None,
        "pulls": estimated(results.numbers("turns", planner.records(variant.number, FRESH)), None) if found else None,
        "judged": judged(key, planner.sides(choice.candidates, TUNING).values(), planner.stops_itself),
    }


def estimated(values: Sequence[float], metric: Metric | None) -> Spread:
    """Number of values, their mean and its interval: Student's, of proportions Wilson's."""
    if not values:
        return {"n": 0, "mean": None, "ci95": None}
    bounds = results.interval(metric, values)
    return {"n": len(values), "mean": statistics.mean(values), "ci95": None if bounds is None else list(bounds)}


DONE = "done"
WRITE_SECONDS = 1.0
KINDS = {"points": "a sweep", "objectives": "the search of a frontier"}
"""Key that the manifest of one kind of study alone has -> what to call it."""


class ResultCache:
    """The done-files of a sweep, each named after its address, and the traces beside them.

    Args:
        directory: where they are; made when the first one is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def file(self, address: str, level: str = "") -> Path:
        """Where the job with this address is, or would be; with a level, where its trace is."""
        return self._directory / address[:2] / f"{address}.{f'{level}.sqlite' if level else 'json'}.gz"

    def holds_any(self) -> bool:
        """Whether any job has finished."""
        return any(self._directory.glob("*/*"))

    def get(self, address: str) -> CachedResult | None:
        """A finished job; None when it is not there, or was cut off by a power failure."""
        with suppress(FileNotFoundError, ValueError):
            return unpacked(self.file(address).read_bytes())
        return None

    def trace(self, address: str, level: str) -> bytes | None:
        """The file in which a finished job recorded itself, if it is there and whole."""
        with suppress(FileNotFoundError, ValueError):
            return decompressed(self.file(address, level).read_bytes())
        return None

    def put(self, address: str, content: bytes, level: str = "") -> None:
        """Keep a finished job, or with a level its trace, whole or not at all.

        Raises:
            OSError: there is no room, or no permission.
        """
        file = self.file(address, level)
        try:
            replace_bytes(file, content)
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_bytes(file, content)


class SweepDirectory(RunDirectory):
    """A sweep's directory; its store is made again by each driver from the results that are kept beside.

    Each variant of the sweep is a label of the store.

    Args:
        path: an existing directory, empty or of an earlier driver of the same or a similar study.
        done: where finished jobs are kept, if several sweeps share them; None for a folder of the directory.
        again: whether finished jobs run again.
    """

    def __init__(self, path: Path, done: Path | None = None, again: bool = False) -> None:
        super().__init__(path)
        self._again = again
        self.code = code_version()
        self._cache = ResultCache(done or path / DONE)
        self._labels: set[str] = set()
        self._unseen: set[str] = set()  # fingerprints that an earlier driver showed, and this one has not met
        self._unused = False  # whether jobs have finished, none is used again, and nothing else says why
        self._last_write = -WRITE_SECONDS

    def other_hardware(self) -> str | None:
        """What an earlier driver computed with, in a sentence, if that was something else; its results do not count."""
        found = differences(manifest_of(self.path).get("hardware"), hardware())
        if not found:
            return None
        return (
            f"{self.path} was begun with other hardware or libraries ({'; '.join(found)}), whose last bits differ; its "
            "finished jobs are kept but not used, and run again here"
        )

    def held(self) -> AbstractContextManager[None]:
        """Hold the directory's lock.

        Raises:
            LockedError: another process holds it.
        """
        return lock.held(self.path)

    def open(self, study: Study) -> None:
        """Make the store; an earlier one is replaced.

        Raises:
            OutputError: a study of another kind has been there.
        """
        earlier, asked = manifest_of(self.path), study.facts()
        for key, kind in KINDS.items():
            if key in earlier and key not in asked:
                raise OutputError(
                    f"{self.path} holds {kind}, whose results this would replace: --resume goes on with a study of the "
                    "same kind; choose another --out DIR."
                )
        file = self.path / DATABASE
        with suppress(sqlite3.Error, StoreError), closing(opening.connect(file)) as store:
            rows = store.execute("SELECT fingerprint FROM jobs WHERE status = 'finished'")
            self._unseen = {fingerprint for (fingerprint,) in rows}
        recording.remove(file)
        self.remarks |= dict.fromkeys(study.unknown)
        explained = self._again or study.unknown or self.other_hardware() is not None
        self._unused = not explained and self._cache.holds_any()
        self._connect(study)

    def begin(self, manifest: Manifest) -> None:
        super().begin(manifest | {"code": self.code})

    def add(self, tasks: Sequence[Task], chosen: Sequence[int] = ()) -> None:
        """Number jobs that are to be run, and note their variants."""
        super().add(tasks, chosen)
        for task in tasks:
            label = self.job(task).label
            if label not in self._labels:
                self._labels.add(label)
                self.add_variant(task, label, task.variant in chosen if task.phase == FRESH else None)

    def key(self, task: Task) -> str:
        return address(self._study.variants[task.variant].digest, task.replication)

    def job_file(self, task: Task) -> None:
        """None: workers may be on other machines."""
        return

    def find(self, task: Task) -> Record | None:
        """Take in the result of an earlier driver, if there is one, with its trace where one is wanted."""
        place, job = self.key(task), self.job(task)
        done = self._cache.get(place)
        if done is not None:
            self._unseen.discard(str(done.record.get("fingerprint")))
        trace = None if job.trace == "off" else self._cache.trace(place, job.trace)
        if done is None or self._again or (trace is None and job.trace != "off"):
            return None
        self._insert(job, recording.job_row(job, "finished", done.record), done, trace)
        self._unused = False
        return done.record

    def take(self, tasks: Sequence[Task], result: JobResult) -> None:
        """Keep what a job has given: in its done-file, where it finished, and in the store."""
        place, job = self.key(tasks[0]), self.job(tasks[0])
        done = unpacked(result.content) if result.content else None
        trace = decompressed(result.trace) if result.trace else None
        if done is not None:
            self._unseen.discard(str(done.record["fingerprint"]))
            if trace is not None:
                self._cache.put(place, result.trace, job.trace)
            self._cache.put(place, result.content)
        record = None if done is None else done.record
        for task in tasks:
            job = self.job(task)
            row = recording.job_row(job, result.outcome.status, record, result.outcome.error)
            self._insert(job, row, done, trace)

    def _insert(self, job: Job, row: tuple[object, ...], done: CachedResult | None, trace: bytes | None) -> None:
        """Put a job into the store.

        Args:
            row: how it ended.
            done: what it has given; None when it broke off.
            trace: the file in which it recorded itself, if it did.
        """
        part = None if trace is None else self.path / f".{job.id}.sqlite"
        try:
            if part is not None and trace is not None:
                part.write_bytes(trace)
            with recording.attached(self._store, part):
                if part is not None:
                    recording.copy_tables(self._store, job.id, schema.OF_TRACES)
                for table, rows in () if done is None else done.tables.items():
                    if rows:
                        places = ", ".join("?" * len(rows[0]))
                        self._store.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({job.id}, {places})", rows)
                self._end_job(row)
        finally:
            if part is not None:
                recording.remove(part)

    def due(self, status: Status, pause: float) -> bool:
        """Whether it is time to write how far it is: about once a second."""
        return time.monotonic() - self._last_write >= WRITE_SECONDS

    def write(self, progress: Status, summary: Callable[[], Results]) -> None:
        """Write how far it is: status.json."""
        self._last_write = time.monotonic()
        write(self.path, progress)

    def end(self, progress: Status, summary: Results) -> None:
        write(self.path, progress)
        if self._unseen:
            text = "the scenario, its options or the code have changed since: what has finished and is no longer in it"
            self.remarks[f"{text} is kept in {self.path / DONE}, and not shown"] = None
        elif self._unused:
            text = "the scenario, its options, coband, or a file in the folder of your own code has changed since"
            self.remarks[f"no finished job in {self.path / DONE} was used again: {text}"] = None
        super().end(progress, summary)

    def discard(self) -> None:
        """Keep it: ``--resume`` goes on here, and earlier drivers may have finished jobs."""


def new(name: str, out: Path | None) -> SweepDirectory:
    """A new directory: ``out``, or runs/<name>-<number>.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    if out is not None and files.is_sweep(out):
        raise OutputError(f"{out} holds a sweep already; go on with it by --resume, or choose another --out DIR.")
    return SweepDirectory(files.new_place(name, out))


def earlier(name: str, out: Path | None, *, again: bool = False) -> SweepDirectory:
    """The directory to go on in: ``out``, which may be new, or the latest runs/<name>-<number> that is a sweep.

    Args:
        again: whether finished jobs run again.

    Raises:
        OutputError: there is none, or ``out`` holds something else.
    """
    if out is not None:
        return SweepDirectory(out if files.is_sweep(out) else files.new_place(name, out), again=again)
    stem = files.stem(name)
    found = sorted(path for path in files.RUNS.glob(f"{stem}-*") if path.name[len(stem) + 1 :].isdecimal())
    sweeps = [path for path in found if files.is_sweep(path)]
    if not sweeps:
        raise OutputError(
            f"there is no sweep {files.RUNS / stem}-... to go on with; name its directory with --out DIR."
        )
    return SweepDirectory(max(sweeps, key=lambda path: int(path.name[len(stem) + 1 :])), again=again)
