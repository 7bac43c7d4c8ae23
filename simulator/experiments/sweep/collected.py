"""All results of a sweep in one SQLite file with the tables of a run: each variant is a label of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coband.simulator.experiments.runs.job import Job, Outcome
from coband.simulator.experiments.scenario.yaml_text import to_yaml
from coband.simulator.experiments.store import recording, schema
from coband.simulator.experiments.sweep.planner import Task, title
from coband.simulator.experiments.sweep.result_cache import CachedResult
from coband.simulator.experiments.sweep.study import Variant


class StorageError(RuntimeError):
    """Results cannot be written; the text says why."""


@contextmanager
def writing() -> Iterator[None]:
    """Turn what may go wrong with files into one error.

    Raises:
        StorageError: no room, no permission, a disk that has gone.
    """
    try:
        yield
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        raise StorageError(f"{place}{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise StorageError(f"the store cannot be written: {error}") from error


class Collected:
    """The store of a sweep, made anew by each driver; the done-files are what it is made from.

    Args:
        file: of the store; an earlier one is replaced.
        variants: of the sweep, by number.
    """

    def __init__(self, file: Path, variants: tuple[Variant, ...]) -> None:
        recording.remove(file)
        self._connection = schema.connect(str(file), collected=True)
        self._variants = variants
        self._jobs: dict[Task, int] = {}
        self._known: set[str] = set()

    def store_meta(self, **values: str) -> None:
        """Keep a text under a key."""
        schema.insert(self._connection, "meta", values.items())

    def add(self, tasks: Iterable[Task], chosen: Iterable[int] = ()) -> None:
        """Note jobs that are to be run, and with them their variants.

        Args:
            tasks: the jobs.
            chosen: numbers of the variants that tuning chose.
        """
        added = list(tasks)
        best = set(chosen)
        for task in added:
            self._jobs[task] = len(self._jobs)
            self._add_variant(task, best)
        schema.insert(self._connection, "jobs", [recording.job_row(self._job(task), "waiting") for task in added])

    def _add_variant(self, task: Task, chosen: set[int]) -> None:
        variant = self._variants[task.variant]
        label = title(variant, task.phase)
        if label in self._known:
            return
        self._known.add(label)
        marked = int(task.variant in chosen) if task.phase != "tuning" else None
        scenario = to_yaml(variant.scenario.resolved())
        row = (label, variant.number, variant.entry, variant.algorithm, task.phase, marked, scenario)
        schema.insert(self._connection, "variants", [row])
        schema.insert(
            self._connection,
            "parameters",
            [(label, p.key.path, p.key.name, p.value.label, p.value.number) for p in variant.parameters],
        )

    def _job(self, task: Task) -> Job:
        variant = self._variants[task.variant]
        label, seed = title(variant, task.phase), variant.scenario.seed
        return Job(self._jobs[task], label, variant.algorithm, task.replication, seed, "off")

    def finish(self, task: Task, done: CachedResult) -> None:
        """Take in a finished job."""
        connection, job = self._connection, self._job(task)
        with connection:
            connection.execute("BEGIN")
            for table, rows in done.tables.items():
                if rows:
                    places = ", ".join("?" * (1 + len(rows[0])))
                    statement = f"INSERT OR REPLACE INTO {table} VALUES ({places})"
                    connection.executemany(statement, ((job.id, *row) for row in rows))
            self._replace(recording.job_row(job, "finished", done.record))

    def fail(self, task: Task, outcome: Outcome) -> None:
        """Note that a job broke off."""
        self._replace(recording.job_row(self._job(task), outcome.status, None, outcome.error))

    def _replace(self, row: tuple[object, ...]) -> None:
        self._connection.execute(f"INSERT OR REPLACE INTO jobs VALUES ({', '.join('?' * len(row))})", row)

    def end(self) -> None:
        """Make it one file that can be copied and read anywhere."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()
