"""Verification of a stored run: fingerprint, ledger and results, computed again from the stored events; and whether
tables that events do not determine agree with the results. Regret, ages and energy are in no event.

A trace must also be consistent: what arrives has been sent, nothing arrives twice or before its cause.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from coband.simulator.core.network.local import SEEN
from coband.simulator.core.nodes.outbox import SERVER, called
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.runs.results import Record, own_numbers, summarise
from coband.simulator.experiments.runs.status import ENDED
from coband.simulator.experiments.scenario.yaml_nodes import plain, read
from coband.simulator.experiments.store import schema
from coband.simulator.experiments.store.files import RESULTS, SCENARIO
from coband.simulator.experiments.store.opening import complaint
from coband.simulator.experiments.store.store import StoredJob, StoredRun
from coband.simulator.experiments.store.variants import variants

SUMS = (
    ("agents", "SELECT sum(turns), sum(regret)", ("turns", "regret")),
    (
        "ledger_by_agent",
        "SELECT sum(uplink), sum(downlink), sum(peer)",
        ("uplink_scalars", "downlink_scalars", "peer_scalars"),
    ),
    ("ledger_by_field", "SELECT sum(scalars)", ("scalars",)),
    ("decisions", "SELECT avg(age), avg(age_time)", ("mean_age", "mean_age_time")),
)
"""What a table comes to, and the keys of the result that say so."""


@dataclass(frozen=True)
class TraceVerification:
    """The result of verifying the trace of one job.

    Attributes:
        remark: what could not be checked, and why; empty if everything was checked.
        differences: one sentence per error; empty if the trace is correct.
    """

    job: StoredJob
    events: int
    remark: str
    differences: tuple[str, ...]


def verify(run: StoredRun, jobs: Sequence[StoredJob] | None = None) -> Iterator[TraceVerification]:
    """Verify jobs (None: all), one after the other."""
    for job in run.jobs if jobs is None else jobs:
        yield _verify_job(job, _realised(run, job.label))


def _realised(run: StoredRun, label: str) -> bool:
    """Whether the regret of a label is the realised one, which noise can make fall."""
    own = variants(run).get(label)
    scenario: Any = plain(read(run.scenario, SCENARIO)[0]) if own is None else own.scenario()
    return bool(scenario.get("problem", {}).get("regret") == "realised")


def of_store(run: StoredRun) -> Iterator[str]:
    """What SQLite finds wrong with the files of a run, and what results.json has otherwise than the single jobs."""
    for file in run.files:
        if found := complaint(file):
            yield f"{file} is damaged ({found})"
    file = run.path / RESULTS
    if not file.is_file():
        return
    finished: dict[str, dict[int, Record]] = defaultdict(dict)
    for job in run.jobs:
        if job.record is not None:
            finished[job.label][job.replication] = job.record
    try:
        for entry in json.loads(file.read_bytes())["results"]:
            label, records = entry["label"], entry["replications"]
            for record in records:
                if finished[label].get(record["replication"]) != record:
                    yield f"{RESULTS} has another result of {label}, replication {record['replication']}"
            if any(job.algorithm != entry["algorithm"] for job in run.jobs if job.label == label):
                yield f"{RESULTS} has another algorithm of {label}"
            own = summarise(label, entry["algorithm"], records, run.metrics)
            yield from (f"{RESULTS} has another {key} of {label}" for key in ("mean", "ci95") if entry[key] != own[key])
            if run.manifest.get("status") in ENDED and len(records) != len(finished[label]):
                yield f"{RESULTS} has {len(records)} results of {label}, and the store {len(finished[label])}"
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        yield f"{file} is damaged ({error})"


def _verify_job(job: StoredJob, realised: bool) -> TraceVerification:
    if job.status == "waiting":
        return TraceVerification(job, 0, "the job never started", ())
    against_record = [] if job.record is None else list(_against_tables(job, job.record, realised))
    if job.trace == tr.OFF:
        if _row(job, "SELECT count(*) FROM events WHERE job = ?") != (0,):
            against_record.append("there are events of a job without a trace")
        remark = "the run kept no trace (trace: off), so there are no events to compare with"
        return TraceVerification(job, 0, remark, tuple(against_record))
    names = [text for (text,) in job.part.execute("SELECT text FROM names WHERE job = ? ORDER BY code", (job.id,))]
    walker = TraceWalk(names)
    # fingerprint_of reads its rows once and in order, so the trace need not fit into memory
    try:
        fingerprint = tr.fingerprint_of(walker.through(_stored_rows(job)), names)
    except (struct.error, TypeError, ValueError, LookupError) as error:
        damage = f"the event after {walker.events} others holds what no event can hold ({error})"
        return TraceVerification(job, walker.events, "", (damage,))
    if job.record is None:
        remark = f"partial trace of a job that is {job.status}: no fingerprint and no ledger to compare with"
        lost = ["the job finished, and its result is missing"] if job.status == "finished" else []
        return TraceVerification(job, walker.events, remark, (*walker.differences.values(), *lost))
    walker.end()
    found = [
        *walker.differences.values(),
        *_against_record(job.record, walker, fingerprint),
        *_against_ledger(job, walker),
        *against_record,
    ]
    return TraceVerification(job, walker.events, "", tuple(found))


def _stored_rows(job: StoredJob) -> Iterator[tr.Row]:
    """The events of a job in numbers, as they had them when they were recorded."""
    query = f"SELECT {', '.join(tr.NUMERIC)} FROM events WHERE job = ? ORDER BY seq"
    for row in job.part.execute(query, (job.id,)):
        event = tr.Row(*row)
        # SQLite stores NaN as NULL; only this column can be NaN
        yield event if event.value is not None else event._replace(value=float("nan"))


def _against_record(record: Record, walker: TraceWalk, fingerprint: str) -> Iterator[str]:
    if fingerprint != record["fingerprint"]:
        yield f"the fingerprint of the stored events is {fingerprint}, and the run's was {record['fingerprint']}"
    for key, total in walker.totals().items():
        if total != record.get(key):
            what = key.replace("_", " ")
            yield f"the sends of the trace add up to {total} {what}, and the result says {record.get(key)}"


def _against_ledger(job: StoredJob, walker: TraceWalk) -> Iterator[str]:
    query = "SELECT kind, direction, sends, messages, scalars FROM ledger WHERE job = ?"
    kept = {(kind, way): counts for kind, way, *counts in job.part.execute(query, (job.id,))}
    for key in sorted(kept.keys() | walker.sent.keys()):
        traced, booked = walker.sent.get(key, [0, 0, 0]), kept.get(key, [0, 0, 0])
        if traced != booked:
            yield (
                f"messages of kind {key[0]!r} ({key[1]}): the trace has {_counts(traced)}, the ledger {_counts(booked)}"
            )
    rounds = {round: scalars for round, scalars in walker.by_round.items() if scalars}
    query = "SELECT round, scalars FROM ledger_by_round WHERE job = ? AND scalars"
    if dict(job.part.execute(query, (job.id,)).fetchall()) != rounds:
        yield "the table ledger_by_round is not what the sends of the trace add up to"
    query = "SELECT agent, uplink FROM ledger_by_agent WHERE job = ? AND uplink"
    if dict(job.part.execute(query, (job.id,)).fetchall()) != {one: sum for one, sum in walker.by_agent.items() if sum}:
        yield "the table ledger_by_agent is not what the sends of the trace add up to"


def _row(job: StoredJob, query: str) -> tuple[Any, ...]:
    return tuple(job.part.execute(query, (job.id,)).fetchone() or ())


def _against_tables(job: StoredJob, record: Record, realised: bool) -> Iterator[str]:
    """Where the tables of a job are not those of its result, whether it has events or not."""
    columns = dict(
        zip(schema.NUMBERS, _row(job, f"SELECT {', '.join(schema.NUMBERS)} FROM jobs WHERE job = ?"), strict=True)
    )
    told = {"status": job.status, "seed": job.seed, "replication": job.replication, **columns}
    for key, value in told.items():
        if value != (expected := {"status": "finished", **record}.get(key)):
            yield f"the table jobs has {key} {value}, and the result says {expected}"
    for table, query, keys in SUMS:
        for key, value in zip(keys, _row(job, f"{query} FROM {table} WHERE job = ?"), strict=True):
            if value is not None and not _close(value, record.get(key)):
                yield f"the table {table} comes to {key} {value}, and the result says {record.get(key)}"
    points = job.part.execute("SELECT turn, time, scalars, regret FROM series WHERE job = ? ORDER BY turn", (job.id,))
    rows = points.fetchall()
    growing = [row[:-1] if realised else row for row in rows]
    if any(old > new for pair in pairwise(growing) for old, new in zip(*pair, strict=True) if None not in (old, new)):
        yield "a curve of the table series goes down"
    if rows and (rows[-1][0], rows[-1][-1]) != (record["turns"], record["regret"]):
        yield f"the table series ends at regret {rows[-1][-1]}, and the result says {record['regret']}"
    points = job.part.execute("SELECT turn, age FROM ages WHERE job = ? ORDER BY turn", (job.id,))
    ages = [(0, 0.0), *points]
    means = math.fsum((new - old) * (age or 0.0) for (old, _), (new, age) in pairwise(ages))
    if len(ages) > 1 and not _close(means / ages[-1][0], record.get("mean_age")):
        yield f"the table ages comes to a mean of {means / ages[-1][0]}, and the result says {record.get('mean_age')}"
    bits: dict[str, int] = {}
    for meaning, sum in job.part.execute("SELECT meaning, bits FROM ledger_by_field WHERE job = ?", (job.id,)):
        bits[f"{meaning}_bits"] = bits.get(f"{meaning}_bits", 0) + sum
    for key, sum in bits.items():
        if key in record and sum != record[key]:
            yield f"the table ledger_by_field comes to {key} {sum}, and the result says {record[key]}"
    yield from _against_agents(job, record)


def _against_agents(job: StoredJob, record: Record) -> Iterator[str]:
    query = "SELECT agent, turns, regret, rounds, result FROM agents WHERE job = ? ORDER BY agent"
    gaps = []
    for number, (agent, *numbers, text) in enumerate(job.part.execute(query, (job.id,))):
        own = json.loads(text or "{}")
        gaps.append(own.pop("closest_decision", None))
        known = record["agents"][number] if len(record.get("agents", ())) > number else {}
        if known and ([known[key] for key in ("turns", "regret", "rounds")], own_numbers(known)) != (numbers, own):
            yield f"the table agents has other numbers of agent {agent} than the result"
    closest = min((gap for gap in gaps if gap is not None), default=None)
    if closest != record.get("closest_decision"):
        yield f"the table agents has {closest} as closest decision, the result {record.get('closest_decision')}"


def _close(value: float, expected: Any) -> bool:
    """Whether sums are the same but for rounding."""
    return isinstance(expected, (int, float)) and math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)


def _counts(counts: Sequence[int]) -> str:
    return f"{counts[0]} sends, {counts[1]} messages, {counts[2]} scalars"


@dataclass(slots=True)
class SentMessage:
    """The state of a message in the trace.

    Attributes:
        peer: receiver, or everyone.
        pending: number of receivers that have not received it yet.
        reached: receivers that have received it; None when no receiver is pending.
        lost: receivers for which a copy was lost or given up.
    """

    seq: int
    node: int
    peer: int
    pending: int
    reached: set[int] | None = field(default_factory=set)
    lost: set[int] = field(default_factory=set)

    def arrive(self, copies: int) -> None:
        self.pending -= copies
        if not self.pending:
            self.reached = None  # frees memory: any further delivery is an error


class TraceWalk:
    """Reads a trace once and records the first error of each kind.

    Attributes:
        differences: kind of error -> sentence.
        sent: (kind of message, direction) -> [sends, messages, scalars], a multicast counting once per receiver.
        by_round, by_agent: scalars of messages of each round, and of each agent to the server.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.events = 0
        self.differences: dict[str, str] = {}
        self.sent: dict[tuple[str, str], list[int]] = {}
        self.by_round: Counter[int] = Counter()
        self.by_agent: Counter[int] = Counter()
        self._messages: dict[int, SentMessage] = {}

    def totals(self) -> dict[str, int]:
        """What the result of the job says of its messages."""
        found = {"messages": 0, "uplink_scalars": 0, "downlink_scalars": 0, "peer_scalars": 0, "scalars": 0}
        for (_, way), (_, messages, scalars) in self.sent.items():
            found["messages"] += messages
            found["scalars"] += scalars
            found["peer_scalars" if way == "peer" else f"{way}link_scalars"] += scalars
        return found

    def through(self, rows: Iterator[tr.Row]) -> Iterator[tr.Row]:
        """Yield the same rows, after checking each."""
        expected, clock = 0, -math.inf
        for row in rows:
            seq, time, event, node, peer, message, cause, kind, scalars = row[:9]
            if seq != expected:
                self._note("seq", f"events are missing or repeated: where number {expected} should be, {seq} is")
            if time < clock:
                self._note("time", f"time goes back at event {seq}: {time} after {clock}")
            if cause >= seq:
                self._note("cause", f"event {seq} has cause {cause}, which is not earlier")
            if event == tr.SEND:
                self._send(seq, node, peer, message, kind, scalars, int(row.value))
                if row.round >= 0:
                    self.by_round[row.round] += scalars * int(row.value)
                if peer == SERVER:
                    self.by_agent[node] += scalars * int(row.value)
            elif event == tr.DELIVER:
                self._deliver(seq, node, peer, message, cause, int(row.value) if node == tr.EVERYONE else 1)
            elif event == tr.DUPLICATE and self._is_seen(row.reason) and message in self._messages:
                sent = self._messages[message]
                if node == tr.EVERYONE:
                    sent.arrive(int(row.value))
                elif sent.reached is not None and node not in sent.reached:  # else a link has doubled it
                    sent.reached.add(node)
                    sent.arrive(1)
            elif event in (tr.DROP, tr.EXPIRE) and message in self._messages:
                self._messages[message].lost.add(peer)
            elif event == tr.TIMER and cause < 0:
                self._note("timer", f"timer {seq} rings at {called(node)}, but nothing has set it")
            expected, clock = seq + 1, time
            self.events += 1
            yield row

    def _note(self, kind: str, sentence: str) -> None:
        self.differences.setdefault(kind, sentence)

    def _send(self, seq: int, node: int, peer: int, message: int, kind: int, scalars: int, receivers: int) -> None:
        self._messages[message] = SentMessage(seq, node, peer, receivers)
        way = "down" if node == SERVER else "up" if peer == SERVER else "peer"
        name = self._names[kind] if 0 <= kind < len(self._names) else f"number {kind}"
        totals = self.sent.setdefault((name, way), [0, 0, 0])
        for index, count in enumerate((1, receivers, receivers * scalars)):
            totals[index] += count

    def _is_seen(self, reason: int) -> bool:
        """Whether a duplicate is one of a LOCAL message: its receiver ignores it, but the copy has arrived."""
        return 0 <= reason < len(self._names) and self._names[reason] == SEEN

    def _deliver(self, seq: int, node: int, peer: int, message: int, cause: int, copies: int) -> None:
        sent = self._messages.get(message)
        if sent is None or sent.seq != cause or sent.node != peer or sent.peer not in (node, tr.EVERYONE):
            self._note("send", f"delivery {seq}, of message {message}, has no matching send")
        elif sent.reached is None or node in sent.reached:
            self._note("twice", f"delivery {seq} brings message {message} to {called(node)} once more")
        else:
            sent.reached.add(node)
            sent.arrive(copies)

    def end(self) -> None:
        """Check that every message of a finished run has reached each of its receivers or was lost."""
        for message, sent in self._messages.items():
            if sent.reached is not None and sent.pending > len(sent.lost - sent.reached):
                missing = sent.pending - len(sent.lost - sent.reached)
                self._note("arrival", f"message {message}, sent at event {sent.seq}, is missing {missing} deliveries")
