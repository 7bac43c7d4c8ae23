"""Whether a stored run is what was written: its seal, the digests of its jobs, and the files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from coband.simulator.analysis.traces import recomputed
from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.runs.status import ENDED
from coband.simulator.experiments.store import damage, digests, files, wal
from coband.simulator.experiments.store.store import StoredJob, StoredRun
from coband.simulator.experiments.store.summaries import is_changed

STATUS = "status.json"


def inconsistencies(run: StoredRun) -> Iterator[str]:
    """One sentence for everything about a run that is not as it was written, or not as single results have it.

    Raises:
        DamagedStoreError: its pages are damaged.
    """
    as_written = True
    for sentence in _unlike_written(run):
        as_written = False
        yield sentence
    if as_written:
        yield from recomputed.in_comparisons(run)


def _unlike_written(run: StoredRun) -> Iterator[str]:
    state = damage.require_whole(run.file, always=True)
    if state == "changed":
        yield f"{run.file} was changed after its run had ended"
    for file in run.files:
        if place := wal.damage(file):
            raise damage.damaged(run.file, f"{place} ({file.name}-wal)")
    tables = {name for (name,) in run.connection.execute("SELECT name FROM sqlite_master")}
    if "digests" in tables:
        if state == "open" and _has_ended(run):
            yield f"{run.file} has no seal, although its run has ended: it is lost, or its driver was killed"
        yield from _digests(run)
    yield from _event_names(run)
    if run.path.is_dir():
        yield from _beside(run)


def _has_ended(run: StoredRun) -> bool:
    return run.manifest.get("status") in ENDED


def _digests(run: StoredRun) -> Iterator[str]:
    for job in run.jobs:
        if job.part is run.connection and job.status not in ("waiting", "running"):
            kept = digests.kept(job.part, job.id)
            if kept is None:
                yield f"{_name(job)} has ended, and its digest is missing"
            elif kept != digests.digest(job.part, job.id):
                yield f"{_name(job)}: its rows are not what they were when it ended"


def _event_names(run: StoredRun) -> Iterator[str]:
    names = dict(run.connection.execute("SELECT code, name FROM event_names"))
    if any(names.get(code, name) != name for code, name in enumerate(tr.EVENTS)):
        yield "the table of event names is not what coband writes"


def _beside(run: StoredRun) -> Iterator[str]:
    """What the other files of the directory say, and the store does not, and which of them are missing."""
    checks = {files.SCENARIO: _scenario, files.MANIFEST: _manifest, files.RESULTS: _results, STATUS: _status}
    written = {files.SCENARIO: run.scenario, files.MANIFEST: run.manifest, files.RESULTS: _has_ended(run)}
    for name, check in checks.items():
        file = run.path / name
        try:
            if file.is_file():
                yield from check(run, file.read_bytes())
            elif written.get(name):
                yield f"{file} is missing"
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            yield f"{file} is damaged ({error})"


def _scenario(run: StoredRun, content: bytes) -> Iterator[str]:
    if content.decode("utf-8") != run.scenario:
        yield f"{files.SCENARIO} and the copy of it in {run.file.name} differ"


def _manifest(run: StoredRun, content: bytes) -> Iterator[str]:
    found = json.loads(content) if content or _has_ended(run) else {}
    if found != run.manifest and _has_ended(run):
        yield f"{files.MANIFEST} and the copy of it in {run.file.name} differ"


def _results(run: StoredRun, content: bytes) -> Iterator[str]:
    if is_changed(run, content):
        yield f"{files.RESULTS} is not what the run wrote when it ended"
    found, finished = json.loads(content), _finished(run)
    for entry in found["results"]:
        for record in entry["replications"]:
            key = str(entry["label"]), int(record["replication"])
            if finished.get(key) != record:
                yield f"{files.RESULTS} has another result of {key[0]}, replication {key[1]}, or it is missing here"
    yield from recomputed.in_results(found, run.metrics)


def _status(run: StoredRun, content: bytes) -> Iterator[str]:
    found = json.loads(content)
    done, finished = sum(entry["done"] for entry in found["entries"].values()), len(_finished(run))
    if done > finished:
        yield f"{STATUS} counts {done} finished jobs, and the store has {finished}"


def _finished(run: StoredRun) -> dict[tuple[str, int], Any]:
    """The records that are in the store now: a run in progress has more of them than when it was opened."""
    query = "SELECT label, replication, result FROM jobs WHERE result IS NOT NULL"
    parts = {id(job.part): job.part for job in run.jobs} | {0: run.connection}
    rows = (row for part in parts.values() for row in part.execute(query))
    return {(label, replication): json.loads(result) for label, replication, result in rows}


def _name(job: StoredJob) -> str:
    return f"{job.label}, replication {job.replication}"
