"""What a stored run holds, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from coband.simulator.api.table import Table
from coband.simulator.experiments.runs.results import AGENT_KEYS
from coband.simulator.experiments.store.store import StoredJob, StoredRun
from coband.simulator.experiments.store.variants import StoredVariant, variants

_JOB = ("label", "algorithm", "replication")
_LEDGER = ("kind", "direction", "sends", "messages", "scalars", "scalars_broadcast_once")
_FIELDS = ("kind", "direction", "field", "meaning", "scalars", "bits")
_SERIES = ("turn", "time", "regret", "scalars")
_NOT_IN_A_CELL = ("agents", "warnings")
_TEXTS = ("label", "algorithm", "graph", "fingerprint", "phase")
INTERVAL = ("low", "high")


def results(run: StoredRun) -> Table:
    """A row per finished job."""
    described = _Described(run)
    rows = (
        {**described.of(job), **{key: value for key, value in job.record.items() if key not in _NOT_IN_A_CELL}}
        for job in run.select()
        if job.record is not None
    )
    return Table.from_dicts(rows, _TEXTS, first=(*_JOB, *described.names))


def summary(run: StoredRun) -> Table:
    """A row per label."""
    described = _Described(run)
    rows = []
    for entry in run.results()["results"]:
        row = {"label": entry["label"], "algorithm": entry["algorithm"], **described.label(entry["label"])}
        row["n"] = len(entry["replications"])
        for key, mean in entry["mean"].items():
            row |= {key: mean, **_bounds(key, entry["ci95"].get(key))}
        rows.append(row)
    return Table.from_dicts(rows, _TEXTS, first=("label", "algorithm", *described.names, "n"))


def _bounds(key: str, bounds: Sequence[float] | None) -> dict[str, float | None]:
    """The ends of an interval, if there is one."""
    return {f"{key}_{end}": value for end, value in zip(INTERVAL, bounds or (None, None), strict=True)}


def series(run: StoredRun) -> Table:
    """Points of the curves."""
    query = f"SELECT {', '.join(_SERIES)} FROM series WHERE job = ? ORDER BY turn"
    return _of_jobs(run, _SERIES, query)


def ledger(run: StoredRun) -> Table:
    """What was sent, by kind and direction."""
    query = f"SELECT {', '.join(_LEDGER)} FROM ledger WHERE job = ? ORDER BY kind, direction"
    return _of_jobs(run, _LEDGER, query, texts=("kind", "direction"))


def fields(run: StoredRun) -> Table:
    """What the fields of messages took."""
    query = f"SELECT {', '.join(_FIELDS)} FROM ledger_by_field WHERE job = ? ORDER BY kind, direction, field"
    return _of_jobs(run, _FIELDS, query, texts=_FIELDS[:4])


def _of_jobs(run: StoredRun, names: Sequence[str], query: str, texts: Sequence[str] = ()) -> Table:
    rows = ((job.label, job.replication, *row) for job in _finished(run) for row in job.part.execute(query, (job.id,)))
    return Table.from_rows(("label", "replication", *names), rows, ("label", *texts))


def agents(run: StoredRun) -> Table:
    """A row per agent of each finished job."""
    rows = ({"label": label, **agent} for label in run.labels for agent in run.by_agent(label))
    return Table.from_dicts(rows, ("label",), first=("label", "replication", *AGENT_KEYS))


def failures(run: StoredRun) -> Table:
    """A row per job that broke off."""
    rows = ((job.label, job.replication, job.status, job.error) for job in run.select() if job.status in _BROKEN)
    return Table.from_rows(("label", "replication", "kind", "error"), rows, ("label", "kind", "error"))


_BROKEN = ("violated", "failed")


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


def stopped(lines: Iterable[Mapping[str, Any]]) -> Table:
    """Candidates that halving has stopped."""
    names = ("label", "entry", "on", "replications", "mean", "bound")
    found = ({**{name: line[name] for name in names}, **line["parameters"]} for line in lines)
    return Table.from_dicts(found, names[:3], first=names)


def parameter_names(run: StoredRun) -> list[str]:
    """Names of the parameters of a sweep's grid; none for a run."""
    return list(dict.fromkeys(one.name for variant in variants(run).values() for one in variant.parameters))


def _finished(run: StoredRun) -> Iterator[StoredJob]:
    return (job for job in run.select() if job.record is not None)


class _Described:
    """What is known of the labels of a sweep beside their name: entry, phase and parameters; of a run, nothing."""

    def __init__(self, run: StoredRun) -> None:
        self._variants = variants(run)
        self.names = ("entry", "phase", *parameter_names(run)) if self._variants else ()

    def of(self, job: StoredJob) -> dict[str, Any]:
        """Of a job."""
        return {"label": job.label, "algorithm": job.algorithm, **self.label(job.label)}

    def label(self, label: str) -> dict[str, Any]:
        """Of a label."""
        variant = self._variants.get(label)
        return {} if variant is None else {"entry": variant.entry, "phase": variant.phase, **_parameters(variant)}


def _parameters(variant: StoredVariant) -> dict[str, Any]:
    """Name -> value: a number where it is one, otherwise its text."""
    return {one.name: one.text if one.number is None else one.number for one in variant.parameters}
