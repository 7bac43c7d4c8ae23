"""A live run beside the simulated run of its scenario: what was measured over what was predicted."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.runs.results import Record
from coband.simulator.experiments.store.store import Series, StoredJob, StoredRun

OVERHEADS = {
    "copies leave late by, median": "live_lateness_median",
    "copies leave late by, 90 %": "live_lateness_90",
    "from process to process, median": "live_transits_median",
    "from process to process, 90 %": "live_transits_90",
}
"""What a live run measures and a simulator has not, in units of simulated time."""
QUANTILES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Row:
    """One quantity, predicted and measured; None where a run does not have it."""

    group: str
    title: str
    predicted: float | None
    measured: float | None

    @property
    def ratio(self) -> float | None:
        if self.predicted is None or self.measured is None or self.predicted == 0:
            return None
        return self.measured / self.predicted


@dataclass(frozen=True)
class Pair:
    """A label and replication that both runs have finished."""

    label: str
    replication: int
    rows: tuple[Row, ...]


def live_and_simulated(runs: Sequence[StoredRun]) -> tuple[StoredRun, StoredRun] | None:
    """Of two runs, one of them live, (the simulated one, the live one); None if they are not such a pair."""
    if len(runs) != 2 or sum(map(is_live, runs)) != 1:
        return None
    predicted, measured = sorted(runs, key=is_live)
    return predicted, measured


def is_live(run: StoredRun) -> bool:
    """Whether a run was measured."""
    return "live" in run.manifest


def pairs(predicted: StoredRun, measured: StoredRun) -> Iterator[Pair]:
    """What both runs have finished, side by side."""
    known = {(job.label, job.replication): job for job in predicted.jobs if job.record is not None}
    for job in measured.jobs:
        other = known.get((job.label, job.replication))
        if job.record is not None and other is not None:
            rows = tuple(_rows(_Side(predicted, other), _Side(measured, job)))
            yield Pair(job.label, job.replication, rows)


def means(rows: Sequence[Sequence[Row]]) -> Iterator[Row]:
    """The means of each quantity over replications that have it, None where one of these has not predicted or measured
    it; of a kind of message that neither run of a replication has sent, both have 0."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in (row for replication in rows for row in replication):
        found[row.group, row.title].append(row)
    for (group, title), same in found.items():
        if group == "messages":
            same += [Row(group, title, 0, 0)] * (len(rows) - len(same))
        yield Row(group, title, _mean([row.predicted for row in same]), _mean([row.measured for row in same]))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


class _Side:
    """One job, and what is read of it."""

    def __init__(self, run: StoredRun, job: StoredJob) -> None:
        assert job.record is not None
        self.record: Record = job.record
        found = [series for series in run.series(job.label) if series.replication == job.replication]
        self.series: Series | None = found[0] if found and len(found[0].turns) else None
        ledger = job.part.execute(
            "SELECT kind, direction, messages FROM ledger WHERE job = ? ORDER BY direction DESC, kind", (job.id,)
        )
        self.messages = {f"{kind} ({direction})": int(messages) for kind, direction, messages in ledger}
        self.delays, self.rounds, self.bytes = _of_trace(job)

    def time_of(self, turns: float) -> float | None:
        if self.series is None:
            return None
        place = int(np.searchsorted(self.series.turns, turns))
        return float(self.series.times[place]) if place < len(self.series.times) else None

    def regret_at(self, time: float) -> float | None:
        if self.series is None:
            return None
        place = int(np.searchsorted(self.series.times, time, side="right")) - 1
        return float(self.series.regret[place]) if place >= 0 else 0.0


def _of_trace(job: StoredJob) -> tuple[dict[str, list[float]], list[float], int | None]:
    """Delays by kind of message, durations of rounds of communication, and bytes of messages, if these are known."""
    delays: dict[str, list[float]] = defaultdict(list)
    spans: dict[int, tuple[float, float]] = {}
    sends: dict[int, float] = {}
    total: int | None = None
    if job.trace == tr.OFF:
        return delays, [], None
    reader = TraceReader(job)
    for row in reader.raw():
        if row.event not in (tr.SEND, tr.DELIVER):
            continue
        if row.round >= 0:
            begun, _ = spans.get(row.round, (row.time, row.time))
            spans[row.round] = (begun, row.time)
        if row.event == tr.SEND:
            sends[row.seq] = row.time
            size = _bytes(row.detail)
            total = total if size is None else (total or 0) + size * int(row.value)
        elif row.cause in sends:
            delays[str(reader.names.get(row.kind))].append(row.time - sends[row.cause])
    return delays, [ended - begun for begun, ended in spans.values()], total


def _bytes(detail: str | None) -> int | None:
    """The size of a message as it was written, which live runs note."""
    if detail is None or '"bytes"' not in detail:
        return None
    found = json.loads(detail).get("bytes")
    return found if isinstance(found, int) else None


def _rows(predicted: _Side, measured: _Side) -> Iterator[Row]:
    sides = predicted, measured
    turns = int(predicted.record["turns"] or 0)
    for share in QUANTILES:
        yield Row("time", f"time of {share:.0%} of the turns", *(side.time_of(share * turns) for side in sides))
    for share in QUANTILES:
        time = predicted.time_of(share * turns)
        if time is not None:
            yield Row("regret", f"regret when {share:.0%} were predicted", *(side.regret_at(time) for side in sides))
    yield Row("regret", "regret in the end", *(side.record.get("regret") for side in sides))
    for kind in dict.fromkeys([*predicted.messages, *measured.messages]):
        yield Row("messages", f"messages: {kind}", *(side.messages.get(kind, 0) for side in sides))
    for key in ("messages", "wire_messages", "scalars", "rounds"):
        yield Row("messages", key.replace("_", " "), *(side.record.get(key) for side in sides))
    bits = predicted.record.get("bits")
    yield Row("bytes", "bytes of payload", *(_eighth(side.record.get("bits")) for side in sides))
    yield Row("bytes", "bytes written (predicted: payload)", _eighth(bits), measured.bytes)
    for name, level in (("median", 0.5), ("90 %", 0.9)):
        yield Row("rounds", f"time of a round, {name}", *(_quantile(side.rounds, level) for side in sides))
    for kind in dict.fromkeys([*predicted.delays, *measured.delays]):
        for name, level in (("median", 0.5), ("90 %", 0.9)):
            values = (_quantile(side.delays.get(kind, []), level) for side in sides)
            yield Row("delays", f"delay of {kind}, {name}", *values)
    for title, key in OVERHEADS.items():
        yield Row("overheads", title, None, measured.record.get(key))


def _eighth(bits: float | None) -> float | None:
    return None if bits is None else bits / 8


def _quantile(values: Sequence[float], level: float) -> float | None:
    return float(np.quantile(values, level)) if values else None
