"""A stored run as pandas data frames: the tables of Python's `Run`, which ``coband show --table`` prints too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from coband.simulator.analysis.traces.query import QueryError, query
from coband.simulator.analysis.traces.reading import traced
from coband.simulator.core.metrics import CORE_NAMES
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs.results import AGENT_KEYS
from coband.simulator.experiments.scenario.yaml_nodes import plain, read
from coband.simulator.experiments.store.schema import TRACE
from coband.simulator.experiments.store.store import Event, StoredRun, StoreError
from coband.simulator.experiments.store.variants import variants

JOB = ("label", "replication")
MEASURES = ("regret", "scalars", "messages", "rounds", "simulated_time")
PULLS = "turns"
MADE = ("wall_seconds", "fingerprint")
ESTIMATE = ("mean", "low", "high", "n")
WHOLE = ("message", "cause", "round", "version")
"""Columns of events that hold whole numbers where they hold anything."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What formulas of spreadsheets begin with."""
_NOT_IN_A_CELL = ("agents", "warnings")
_BROKEN = ("violated", "failed")


def frame(rows: Iterable[Mapping[str, Any]], first: Sequence[str] = ()) -> pd.DataFrame:
    """A data frame of mappings; the columns ``first`` are there in any case, before those that rows bring."""
    found = list(rows)
    return pd.DataFrame(found, columns=list(dict.fromkeys([*first, *(name for row in found for name in row)])))


def measures(run: StoredRun) -> list[str]:
    """The aim of the problem, then `MEASURES`, then what problem and algorithms declare to be better low or high.

    Pulls are the second where they differ, since numbers are compared at equal pulls then.
    """
    records = [job.record for job in run.jobs if job.record is not None]
    problem = plain(read(run.scenario, "run.sqlite")[0]).get("problem") or {}
    aim = Registry.installed().aim_of(str(problem.get("kind")))
    declared = [name for name, metric in run.metrics.items() if metric.better and name not in CORE_NAMES]
    pulls = [PULLS] if len({record[PULLS] for record in records}) > 1 else []
    known = [name for name in (aim, *pulls, *MEASURES, *declared) if any(name in record for record in records)]
    return list(dict.fromkeys([*known, *MEASURES]))


def parameters(run: StoredRun) -> pd.DataFrame:
    """A row per label of a sweep: its algorithm's entry, phase and environment, and a column per key of the grid."""
    rows: list[dict[str, object]] = []
    for label, one in variants(run).items():
        environment = ", ".join(f"{name}={text}" for name, text in one.faced.items())
        rows.append({"label": label, "entry": one.entry, "phase": one.phase, "environment": environment})
        rows[-1].update({each.name: each.text if each.number is None else each.number for each in one.parameters})
    return frame(rows, ("label", "entry", "phase", "environment")).set_index("label")


def results(run: StoredRun) -> pd.DataFrame:
    """A row per label and replication: pulls, the measures, seconds and fingerprint; in a sweep also the parameters."""
    shown = tuple(dict.fromkeys((PULLS, *measures(run), *MADE)))
    rows = (
        {"label": job.label, "replication": job.replication, "algorithm": job.algorithm}
        | {name: job.record.get(name) for name in shown}
        for job in run.select()
        if job.record is not None
    )
    found, known = frame(rows, (*JOB, "algorithm", *shown)), parameters(run)
    known = known[[name for name in known.columns if name not in found.columns]]
    joined = found.join(known, on="label") if len(known) else found
    return joined[[*JOB, "algorithm", *(known.columns if len(known) else ()), *shown]]


def details(run: StoredRun) -> pd.DataFrame:
    """A row per label and replication: every other number that is reported."""
    left_out = {PULLS, *measures(run), *MADE, *_NOT_IN_A_CELL}
    rows = (
        {"label": job.label, **{key: value for key, value in job.record.items() if key not in left_out}}
        for job in run.select()
        if job.record is not None
    )
    return frame(rows, JOB)


def estimates(run: StoredRun, names: Sequence[str] = ()) -> pd.DataFrame:
    """A row per label and measure: the mean, the ends of its 95 % interval, and the number of replications.

    Raises:
        StoreError: nobody reports such a number.
    """
    entries = [entry for entry in run.results()["results"] if entry["replications"]]
    known = {name: None for entry in entries for name in entry["mean"]}
    if unknown := [name for name in names if name not in known]:
        raise StoreError(f"no number {unknown[0]!r} was reported; there is {', '.join(known)}.")
    rows = {
        (entry["label"], name): (
            entry["mean"].get(name),
            *(entry["ci95"].get(name) or (None, None)),
            len(entry["replications"]),
        )
        for entry in entries
        for name in names or measures(run)
    }
    index = pd.MultiIndex.from_tuples(list(rows), names=["label", "measure"])
    return pd.DataFrame(list(rows.values()), index, list(ESTIMATE)).astype(dict.fromkeys(ESTIMATE[:3], float))


def _stored(name: str, columns: str, order: str) -> Callable[[StoredRun], pd.DataFrame]:
    """Columns of a table of the store, of all finished jobs."""
    statement = f"SELECT {columns} FROM {name} WHERE job = ? ORDER BY {order}"

    def read(run: StoredRun) -> pd.DataFrame:
        done = [job for job in run.select() if job.record is not None]
        rows = ((job.label, job.replication, *row) for job in done for row in job.part.execute(statement, (job.id,)))
        return pd.DataFrame(rows, columns=[*JOB, *columns.split(", ")])

    return read


def agents(run: StoredRun) -> pd.DataFrame:
    """A row per label, replication and agent: turns, regret, scalars, and what algorithms report of agents."""
    rows = ({"label": label, **agent} for label in run.labels for agent in run.by_agent(label))
    return frame(rows, (*JOB, *AGENT_KEYS))


def failures(run: StoredRun) -> pd.DataFrame:
    """The jobs that broke off, with the error."""
    rows = [(job.label, job.replication, job.status, job.error) for job in run.select() if job.status in _BROKEN]
    return pd.DataFrame(rows, columns=[*JOB, "kind", "error"])


def of_events(found: Iterable[Event]) -> pd.DataFrame:
    """Events; whole numbers with gaps are of the type ``Int64``."""
    return pd.DataFrame(found, columns=list(Event._fields)).astype(dict.fromkeys(WHOLE, "Int64"))


def events(run: StoredRun, where: str, values: Sequence[object]) -> pd.DataFrame:
    """The events of the trace that meet a condition.

    Raises:
        StoreError: no trace was kept, or the condition is wrong.
    """
    columns, rows = ", ".join(Event._fields), list[Event]()
    try:
        for job in traced(run.select()):
            own = f"(SELECT * FROM trace WHERE job = {job.id})"  # all that the condition can see
            found = job.part.execute(f"{TRACE} SELECT {columns} FROM {own} WHERE {where} ORDER BY seq", values)
            rows += map(Event._make, found)
        return of_events(rows)
    except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
        raise QueryError(
            f"the condition {where!r} is wrong: {error}; columns are {', '.join(Event._fields)}."
        ) from error


def answer(run: StoredRun, sql: str, seconds: float) -> pd.DataFrame:
    """The answer to one SELECT on the run's store."""
    found = query(run.file, sql, seconds)
    return pd.DataFrame(found.rows, columns=list(found.columns))


def best(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per line of the table of best parameters; ``tuning`` numbers are of the replications that chose."""
    rows = []
    for line in lines:
        row = {"entry": line["entry"], **line["context"], **(line["chosen"] or {}), "label": line["label"]}
        row |= {"candidates": line["candidates"], "on": line["on"]}
        for phase in ("tuning", "fresh"):
            spread = line[phase] or {"n": 0, "mean": None, "ci95": None}
            low, high = spread["ci95"] or (None, None)
            numbers = {"n": spread["n"], "mean": spread["mean"], "low": low, "high": high}
            row |= {f"{phase}_{key}": value for key, value in numbers.items()}
        rows.append(row)
    return frame(rows)


STORED: dict[str, Callable[..., pd.DataFrame]] = {
    "summary": estimates,
    "results": results,
    "details": details,
    "series": _stored("series", "turn, time, regret, scalars", "turn"),
    "ledger": _stored("ledger", "kind, direction, sends, messages, scalars, scalars_broadcast_once", "kind, direction"),
    "fields": _stored("ledger_by_field", "kind, direction, field, meaning, scalars, bits", "kind, direction, field"),
    "agents": agents,
    "parameters": parameters,
    "failures": failures,
}
"""The tables that are stored, or follow from what is stored of one label."""


def written(found: pd.DataFrame, form: str, left: int | None = None, columns: str | None = None) -> str:
    """A table as LaTeX, Markdown or CSV; an index that says something becomes columns.

    Args:
        found: the table.
        form: "latex", "markdown" or "csv". A text in CSV that spreadsheets would take for a formula has an apostrophe
            before it.
        left: how many columns stand at the left; None for those of texts.
        columns: names of those that are written, with commas between; None for all.

    Raises:
        StoreError: there is no such column.
    """
    plain = found if isinstance(found.index, pd.RangeIndex) else found.reset_index()
    plain = plain.set_axis(list(map(str, plain.columns)), axis=1)
    align = {
        name: "l" if (left is None and not pd.api.types.is_numeric_dtype(kind)) or number < (left or 0) else "r"
        for number, (name, kind) in enumerate(plain.dtypes.items())
    }
    if columns is not None:
        wanted = [one.strip() for one in columns.split(",")]
        if unknown := [name for name in wanted if name not in align]:
            raise StoreError(f"the table has no column {unknown[0]!r}; it has {', '.join(plain.columns)}.")
        plain = plain[wanted]
    if form == "csv":
        return plain.map(_inert).to_csv(index=False)
    cells, marks = plain.map(cell), [align[name] for name in plain.columns]
    if form == "latex":
        return cells.to_latex(index=False, escape=True, column_format="".join(marks))
    lines = [list(cells.columns), [{"l": "---", "r": "---:"}[one] for one in marks], *cells.to_numpy().tolist()]
    return "".join(f"| {' | '.join(one.replace('|', chr(92) + '|') for one in line)} |\n" for line in lines)


def cell(value: object) -> str:
    """A value as a table for readers has it."""
    if value is None or value is pd.NA or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _inert(value: object) -> object:
    """A cell that no spreadsheet takes for a formula; numbers that are texts stay as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
