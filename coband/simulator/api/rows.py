"""What a stored run holds, as tables, and every pull of its jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from os import PathLike
from typing import Any

import coband
from coband.simulator.analysis.traces.exporting import TEXTS
from coband.simulator.analysis.traces.query import query
from coband.simulator.analysis.traces.reading import spelled, traced
from coband.simulator.api.driving import count_of
from coband.simulator.api.errors import RunError, check, translated
from coband.simulator.api.table import Table
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.runs.repeating import PULL
from coband.simulator.experiments.runs.repeating import pulls as repeated
from coband.simulator.experiments.runs.results import AGENT_KEYS
from coband.simulator.experiments.runs.work import PickledScenario
from coband.simulator.experiments.runs.workers import Serial, processes, stop
from coband.simulator.experiments.scenario.files import ScenarioText
from coband.simulator.experiments.scenario.loading import load_point
from coband.simulator.experiments.store.files import called
from coband.simulator.experiments.store.store import Event, Filter, StoredJob, StoredRun, StoreError, open_run
from coband.simulator.experiments.store.variants import variants

_JOB = ("label", "algorithm", "replication")
_LEDGER = ("kind", "direction", "sends", "messages", "scalars", "scalars_broadcast_once")
_FIELDS = ("kind", "direction", "field", "meaning", "scalars", "bits")
_SERIES = ("turn", "time", "regret", "scalars")
_NOT_IN_A_CELL = ("agents", "warnings")
_TEXTS = ("label", "algorithm", "graph", "fingerprint", "phase")
INTERVAL = ("low", "high")
_BROKEN = ("violated", "failed")
QUERY_SECONDS = 60.0


class StoredTables:
    """The tables of a run on disk, which are read when they are first used and then kept.

    Args:
        path: the run directory, its run.sqlite, or ``latest``.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        check(StoredTables.__init__, path=path)
        with translated():
            self.path = called(path)
        with self._opened() as run:
            self.manifest: Mapping[str, Any] = run.manifest
            self.labels: list[str] = list(run.labels)
            self._scenario = run.scenario

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.manifest.get("scenario", ""))

    @property
    def status(self) -> str:
        """``finished``, ``failed`` (some jobs broke off), ``interrupted``, ``stopped``, or ``running``.

        The last is also the status of a run that was killed.
        """
        return str(self.manifest.get("status", ""))

    @cached_property
    def results(self) -> Table:
        """A row per label and replication: regret, scalars, rounds, times, fingerprint, and what algorithms report."""
        with self._opened() as run:
            described = _Described(run)
            rows = (
                {"label": job.label, "algorithm": job.algorithm, **described.label(job.label)}
                | {key: value for key, value in job.record.items() if key not in _NOT_IN_A_CELL}
                for job in run.select()
                if job.record is not None
            )
            return Table.from_dicts(rows, _TEXTS, first=(*_JOB, *described.names))

    @cached_property
    def summary(self) -> Table:
        """A row per label: the number of replications, and mean and 95 % interval (low, high) of each number."""
        with self._opened() as run:
            described = _Described(run)
            rows = []
            for entry in run.results()["results"]:
                row = {"label": entry["label"], "algorithm": entry["algorithm"], **described.label(entry["label"])}
                row["n"] = len(entry["replications"])
                for key, mean in entry["mean"].items():
                    row |= {key: mean, **_bounds(key, entry["ci95"].get(key))}
                rows.append(row)
            return Table.from_dicts(rows, _TEXTS, first=("label", "algorithm", *described.names, "n"))

    @cached_property
    def series(self) -> Table:
        """Cumulative regret and scalars, and simulated time, after up to 1000 turns of each label and replication."""
        return self._of_jobs(_SERIES, "series", "turn")

    @cached_property
    def ledger(self) -> Table:
        """Sends, messages and scalars by label, replication, kind of message and direction."""
        return self._of_jobs(_LEDGER, "ledger", "kind, direction", texts=_LEDGER[:2])

    @cached_property
    def fields(self) -> Table:
        """Scalars and bits by label, replication, kind of message, direction and field, with what the field holds."""
        return self._of_jobs(_FIELDS, "ledger_by_field", "kind, direction, field", texts=_FIELDS[:4])

    @cached_property
    def agents(self) -> Table:
        """A row per label, replication and agent: turns, regret, scalars, and what algorithms report of agents."""
        with self._opened() as run:
            rows = ({"label": label, **agent} for label in run.labels for agent in run.by_agent(label))
            return Table.from_dicts(rows, ("label",), first=("label", "replication", *AGENT_KEYS))

    @cached_property
    def pulls(self) -> Table:
        """A row per pull: label, replication, agent, turn, time, arm, pulls, reward, regret; with or without a trace.

        ``turn`` counts the turns of the agent, from 1 (phases, where it pulls in batches), ``arm`` the arms of that
        turn, from 0; ``pulls`` is how often the arm is pulled at once, 1 but in batches, of which ``reward`` is the
        mean and ``regret`` the sum. A store keeps nothing of this, so all jobs run again, in one process per core,
        with the same random draws; their fingerprints show that they are the stored ones. `pulls_of` repeats some.

        Raises:
            RunError: a job cannot be repeated here, bit by bit.
        """
        return self.pulls_of()

    def pulls_of(self, label: str | None = None, replication: int | None = None, workers: int | None = None) -> Table:
        """`pulls` of some jobs.

        Args:
            label, replication: those of the jobs; None for all.
            workers: processes; None for one per job, at most one per core.

        Raises:
            RunError: there is no such job, or it cannot be repeated here.
        """
        check(StoredTables.pulls_of, **locals())
        from coband.simulator.api.rows import pulls

        with self._opened() as run:
            return pulls(run, label, replication, workers)

    @cached_property
    def failures(self) -> Table:
        """Jobs that broke off, with the error."""
        with self._opened() as run:
            rows = (
                (job.label, job.replication, job.status, job.error) for job in run.select() if job.status in _BROKEN
            )
            return Table.from_rows(("label", "replication", "kind", "error"), rows, ("label", "kind", "error"))

    def events(
        self,
        sql: str | None = None,
        *,
        label: str | None = None,
        replication: int | None = None,
        event: str | None = None,
        node: str | int | None = None,
        kind: str | None = None,
        message: int | None = None,
        start: float | None = None,
        end: float | None = None,
        seconds: float = QUERY_SECONDS,
    ) -> Table:
        """Events of the trace, or the answer to a query.

        Args:
            sql: one SELECT on the run's store, such as ``"SELECT event, count(*) AS n FROM trace GROUP BY event"``;
                the tables are described in the documentation of the store. Nothing else is given with it but
                ``seconds``.
            label, replication, event, node, kind, message: only these; a node is ``"server"``, ``"agent 3"`` or 3.
            start, end: simulated times, both included.
            seconds: limit of the time that a query takes.

        Raises:
            RunError: no trace was kept, there is no such label, event or node, or the query is wrong or too slow.
        """
        check(StoredTables.events, **locals())
        where = Filter(event, None if node is None else str(node), kind, start, end, message)
        with self._opened() as run:
            if sql is not None:
                if (label, replication) != (None, None) or where != Filter():
                    raise RunError("give sql= or conditions on events, not both.")
                found = query(run.file, sql, seconds)
                if twice := [name for name in dict.fromkeys(found.columns) if found.columns.count(name) > 1]:
                    raise RunError(f"the query has several columns {', '.join(twice)}; name them apart with AS.")
                return Table.from_rows(found.columns, found.rows)
            where = replace(where, node=spelled(where.node, traced(run.select(label, replication))))
            return Table.from_rows(Event._fields, run.events(label, replication, where), TEXTS)

    def _of_jobs(self, names: Sequence[str], table: str, order: str, texts: Sequence[str] = ()) -> Table:
        """Columns of a table of the store, of all finished jobs."""
        statement = f"SELECT {', '.join(names)} FROM {table} WHERE job = ? ORDER BY {order}"
        with self._opened() as run:
            done = [job for job in run.select() if job.record is not None]
            rows = (
                (job.label, job.replication, *row) for job in done for row in job.part.execute(statement, (job.id,))
            )
            return Table.from_rows(("label", "replication", *names), rows, ("label", *texts))

    @contextmanager
    def _opened(self) -> Iterator[StoredRun]:
        with translated(), open_run(self.path) as run:
            yield run


def _bounds(key: str, bounds: Sequence[float] | None) -> dict[str, float | None]:
    """The ends of an interval, if there is one."""
    return {f"{key}_{end}": value for end, value in zip(INTERVAL, bounds or (None, None), strict=True)}


def best(lines: Iterable[Mapping[str, Any]]) -> Table:
    """The lines of the table of best parameters."""
    rows = []
    for line in lines:
        row = {"entry": line["entry"], **line["context"], **(line["chosen"] or {}), "label": line["label"]}
        row |= {"candidates": line["candidates"], "on": line["on"]}
        for phase in ("tuning", "fresh"):
            found = line[phase] or {"n": 0, "mean": None, "ci95": None}
            row |= {f"{phase}_n": found["n"], f"{phase}_mean": found["mean"], **_bounds(phase, found["ci95"])}
        rows.append(row)
    return Table.from_dicts(rows, ("entry", "label", "on"))


def parameter_names(run: StoredRun) -> list[str]:
    """Names of the parameters of a sweep's grid; none for a run."""
    return list(dict.fromkeys(one.name for variant in variants(run).values() for one in variant.parameters))


class _Described:
    """What is known of the labels of a sweep beside their name: entry, phase and parameters; of a run, nothing."""

    def __init__(self, run: StoredRun) -> None:
        self._variants = variants(run)
        self.names = ("entry", "phase", *parameter_names(run)) if self._variants else ()

    def label(self, label: str) -> dict[str, Any]:
        """Of a label; a parameter is a number where it is one, otherwise its text."""
        variant = self._variants.get(label)
        if variant is None:
            return {}
        parameters = {one.name: one.text if one.number is None else one.number for one in variant.parameters}
        return {"entry": variant.entry, "phase": variant.phase, **parameters}


def pulls(run: StoredRun, label: str | None, replication: int | None, workers: int | None) -> Table:
    """The pulls of the finished jobs of a label and a replication; None for all."""
    jobs = list(_jobs(run, label, replication))
    count = count_of(workers, len(jobs))
    with ExitStack() as stack:
        executor: Executor = Serial()
        if count > 1 or not coband.BLAS_IS_PINNED:
            executor = processes(count)
            stack.callback(stop, executor)
        found = [(job, executor.submit(_pulls, job, scenario, fingerprint)) for job, scenario, fingerprint in jobs]
        rows = chain.from_iterable(((job.label, job.replication, *pull) for pull in one.result()) for job, one in found)
        return Table.from_rows(("label", "replication", *PULL), rows, ("label",))


def _pulls(job: Job, scenario: PickledScenario, fingerprint: str) -> list[tuple[float | None, ...]]:
    return list(repeated(job, scenario.load(), fingerprint))


def _jobs(run: StoredRun, label: str | None, replication: int | None) -> Iterator[tuple[Job, PickledScenario, str]]:
    """The finished jobs, with their scenarios and fingerprints."""
    by_label: dict[str, list[StoredJob]] = {}
    for job in run.select(label, replication):
        if job.record is not None:
            by_label.setdefault(job.label, []).append(job)
    if not by_label:
        raise StoreError(f"{run.path}: no job has finished, so there are no pulls.")
    swept, base = variants(run), run.path if run.path.is_dir() else run.path.parent
    for name, jobs in by_label.items():
        text, entry = (swept[name].text, swept[name].entry) if name in swept else (run.scenario, name)
        scenario = load_point(ScenarioText(text, str(run.path), base), ["expect=[]"]).scenario
        algorithm = next(one.algorithm.name for one in scenario.algorithms if one.label == entry)
        for stored in sorted(jobs, key=attrgetter("replication")):
            assert stored.record is not None
            again = Job(0, name, algorithm, stored.replication, scenario.seed, "protocol", entry=entry)
            yield again, PickledScenario.of(scenario), str(stored.record["fingerprint"])
