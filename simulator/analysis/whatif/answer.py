"""The answer to a question: what changed in the numbers, and where the traces part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coband.simulator.analysis.traces.difference import TraceComparison, compare
from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.runs.results import NOT_AVERAGED, numbers
from coband.simulator.experiments.statistics.estimates import Estimate, estimate, paired_difference
from coband.simulator.experiments.store.store import StoredJob, StoredRun

MEASURES = ("regret", "scalars", "messages", "rounds", "simulated_time", "wire_scalars", "dropped", "expired")
"""Numbers that are always shown, where a result has them."""
NOT_COMPARED = (*NOT_AVERAGED, "wall_seconds", "cpu_seconds", "closest_decision")


@dataclass(frozen=True)
class Change:
    """One number of a result in the stored run and in the what-if run, over replications.

    Attributes:
        difference: changed - stored, paired by replication.
    """

    name: str
    stored: float
    changed: float
    difference: Estimate


@dataclass(frozen=True)
class Answer:
    """What a change does to one label.

    Attributes:
        parting: per replication, how the traces compare; empty if one of them has no trace.
    """

    label: str
    changed_label: str
    replications: tuple[int, ...]
    changes: tuple[Change, ...]
    parting: Mapping[int, TraceComparison]

    def shown(self, declared: frozenset[str]) -> list[Change]:
        """The changes for a table: of the usual measures, and of ``declared`` ones that are no longer equal."""
        return [
            change
            for change in self.changes
            if change.name in MEASURES or (change.name in declared and change.difference.mean)
        ]

    def as_json(self) -> dict[str, object]:
        return {
            "label": self.label,
            "changed_label": self.changed_label,
            "replications": list(self.replications),
            "changes": {
                one.name: {"stored": one.stored, "changed": one.changed, "difference": estimate_json(one.difference)}
                for one in self.changes
            },
            "traces": {str(number): _parting_json(found) for number, found in self.parting.items()},
        }


def answers(stored: StoredRun, changed: StoredRun, of: Mapping[str, str]) -> Iterator[Answer]:
    """Compare a what-if run with the run that it changes; ``of``: label of the former -> label of the latter."""
    for changed_label, label in of.items():
        before = {job.replication: job for job in stored.select(label) if job.record is not None}
        after = {job.replication: job for job in changed.select(changed_label) if job.record is not None}
        common = tuple(sorted(before.keys() & after.keys()))
        pairs = {number: (before[number], after[number]) for number in common}
        yield Answer(label, changed_label, common, tuple(_changes(pairs)), _partings(pairs))


def _changes(pairs: Mapping[int, tuple[StoredJob, StoredJob]]) -> Iterator[Change]:
    records = [(one.record or {}, other.record or {}) for one, other in pairs.values()]
    names = dict.fromkeys(name for one, _ in records for name in one if name not in NOT_COMPARED)
    for name in names:
        first = numbers(name, [one for one, _ in records])
        second = numbers(name, [other for _, other in records])
        if len(first) == len(second) == len(records):
            difference = paired_difference(second, first)
            yield Change(name, estimate(first).mean, estimate(second).mean, difference)


def _partings(pairs: Mapping[int, tuple[StoredJob, StoredJob]]) -> dict[int, TraceComparison]:
    return {
        number: compare(TraceReader(one), TraceReader(other))
        for number, (one, other) in pairs.items()
        if tr.OFF not in (one.trace, other.trace)
    }


def estimate_json(found: Estimate | None) -> dict[str, object] | None:
    """A mean and its interval, as ``--json`` prints them."""
    if found is None:
        return None
    return {"mean": found.mean, "ci95": None if found.interval is None else list(found.interval)}


def _parting_json(found: TraceComparison) -> dict[str, object]:
    here, there = (None if event is None else event._asdict() for event in (found.here, found.there))
    time = None if found.same else found.time
    return {"same": found.same, "common": found.common, "time": time, "stored": here, "changed": there}
