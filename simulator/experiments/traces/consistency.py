"""Whether a stored run is what was written: its checksums, the digests of its jobs, and the files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.store import damage, digests, directory
from coband.simulator.experiments.store.store import StoredJob, StoredRun

STATUS = "status.json"
ENDED = ("finished", "failed", "interrupted", "stopped")


def inconsistencies(run: StoredRun) -> Iterator[str]:
    """One sentence for everything about a run that is not as it was written.

    Raises:
        DamagedStoreError: its pages are damaged.
    """
    state = damage.require_whole(run.file, always=True).state
    if state == "changed":
        yield f"{run.file} was changed after its run had ended"
    tables = {name for (name,) in run.connection.execute("SELECT name FROM sqlite_master")}
    if "digests" in tables:
        if state == "open" and run.manifest.get("status") in ENDED:
            yield f"{run.file} has no checksums, although its run has ended: they are damaged, or it was killed at its end"
        yield from _digests(run)
    yield from _event_names(run)
    if run.path.is_dir():
        yield from _beside(run)


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
    """What the other files of the directory have, and the store has not."""
    manifest = _read(run.path / directory.MANIFEST)
    if manifest is not None and manifest != run.manifest and run.manifest.get("status") in ENDED:
        yield f"{directory.MANIFEST} and the copy of it in {run.file.name} differ"
    finished = {(job.label, job.replication): job.record["fingerprint"] for job in run.jobs if job.record is not None}
    results = _read(run.path / directory.RESULTS) or {}
    for entry in results.get("results", ()):
        for record in entry["replications"]:
            key = str(entry["label"]), int(record["replication"])
            if finished.get(key) != record["fingerprint"]:
                yield f"{directory.RESULTS} has another result of {key[0]}, replication {key[1]}, or it is missing here"
    status = _read(run.path / STATUS) or {}
    done = sum(entry["done"] for entry in status.get("entries", {}).values())
    if done > len(finished):
        yield f"{STATUS} counts {done} finished jobs, and the store has {len(finished)}"


def _read(file: Path) -> Any:
    """The content of a JSON file; None if there is none yet."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return json.loads(text) if text else None


def _name(job: StoredJob) -> str:
    return f"{job.label}, replication {job.replication}"
