"""The directory of one run: where its scenario, manifest, results and store are."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from coband.simulator.experiments.runs.job import Job, Outcome
from coband.simulator.experiments.runs.results import dump
from coband.simulator.experiments.store import recording, schema

RUNS = Path("runs")
SCENARIO, MANIFEST, RESULTS, DATABASE, JOBS = "scenario.yaml", "manifest.json", "results.json", "run.sqlite", "jobs"


class OutputError(ValueError):
    """The run directory cannot be made; the text says why and what to do."""


class RunDirectory:
    """A run's directory and its store, open for writing; one driver writes it.

    Args:
        path: an existing, empty directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._jobs = path / JOBS
        self._manifest: dict[str, Any] = {}
        self._database: sqlite3.Connection | None = None

    def begin(self, scenario: str, manifest: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Write scenario and manifest and make the store.

        Raises:
            OutputError: another run has just taken the directory.
        """
        try:
            (self.path / MANIFEST).touch(exist_ok=False)
        except FileExistsError:
            raise OutputError(f"another run has just started in {self.path}; choose another directory.") from None
        self._jobs.mkdir()
        self._manifest = manifest
        replace_text(self.path / SCENARIO, scenario)
        replace_text(self.path / MANIFEST, dump(manifest))
        self._database = schema.connect(str(self.path / DATABASE), collected=True)
        self._store_meta(scenario=scenario, manifest=dump(manifest))
        schema.insert(self._database, "jobs", [recording.job_row(job, "waiting") for job in jobs])

    @property
    def _store(self) -> sqlite3.Connection:
        assert self._database is not None, "begin() comes first"
        return self._database

    def _store_meta(self, **values: str) -> None:
        schema.insert(self._store, "meta", values.items())

    def job_file(self, job: Job) -> Path:
        """Where a job records itself while it runs."""
        return self._jobs / f"{job.id:05d}.sqlite"

    def collect(self, job: Job, outcome: Outcome) -> None:
        """Take a job's recording into the run's store and remove its own file."""
        file, store = self.job_file(job), self._store
        found = file.exists()
        if found:
            store.execute("ATTACH ? AS part", (str(file),))
        try:
            with store:
                store.execute("BEGIN")
                for table in schema.COPIED if found else ():
                    store.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM part.{table}")
                row = recording.job_row(job, outcome.status, outcome.record, outcome.error)
                store.execute(f"INSERT OR REPLACE INTO jobs VALUES ({', '.join('?' * len(row))})", row)
        finally:
            if found:
                store.execute("DETACH part")
        recording.remove(file)

    def left_behind(self, job: Job) -> Outcome | None:
        """How far a job came that has not been collected; None when it has left no file."""
        file = self.job_file(job)
        if not file.exists():
            return None
        with closing(sqlite3.connect(file)) as connection:
            try:
                status, result = connection.execute("SELECT status, result FROM jobs").fetchone()
            except (sqlite3.DatabaseError, TypeError):  # killed before its tables, or its row, were there
                recording.remove(file)
                return None
        return Outcome(status, None if result is None else json.loads(result))

    def write_results(self, report: dict[str, Any], *, final: bool = False) -> None:
        """Replace results.json, so that at any time it holds all that is finished; the final one is indented."""
        replace_text(self.path / RESULTS, dump(report, indented=final))

    def end(self, status: str, finished: str) -> None:
        """Write the final manifest and make the store one file that can be copied and read anywhere."""
        self._manifest = {**self._manifest, "status": status, "finished": finished}
        replace_text(self.path / MANIFEST, dump(self._manifest))
        self._store_meta(manifest=dump(self._manifest))
        self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._store.execute("PRAGMA journal_mode = DELETE")
        self._store.close()
        if not any(self._jobs.iterdir()):
            self._jobs.rmdir()

    def close(self) -> None:
        """Let go of the store without ending the run; what is finished stays readable."""
        if self._database is not None:
            self._database.close()


def create(name: str, out: Path | None = None) -> RunDirectory:
    """A new run directory: ``out``, or runs/<name>-<number> with the next free number.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    try:
        return RunDirectory(_numbered(name) if out is None else _given(out))
    except OSError as error:
        place = error.filename or out or RUNS
        raise OutputError(
            f"no run directory can be made: {place}: {error.strerror}. Choose another place with --out DIR."
        ) from error


def _given(out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise OutputError(f"{out} is not empty, and a run overwrites nothing. Remove it, or choose another --out DIR.")
    return out


def stem(name: str) -> str:
    """The start of the names of a scenario's run directories."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"


def _numbered(name: str) -> Path:
    start = stem(name)
    RUNS.mkdir(exist_ok=True)
    pattern = re.compile(re.escape(start) + r"-(\d+)")
    taken = [int(match[1]) for entry in RUNS.iterdir() if (match := pattern.fullmatch(entry.name))]
    number = max(taken, default=0) + 1
    while True:
        path = RUNS / f"{start}-{number:04d}"
        try:
            path.mkdir()  # fails when another run was quicker, so no two runs share a directory
            return path
        except FileExistsError:
            number += 1


def replace_text(file: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, never a part."""
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_json(file: Path) -> Any:
    """The value in a JSON file."""
    return json.loads(file.read_text(encoding="utf-8"))
