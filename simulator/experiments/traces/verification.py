"""Checks of a stored trace: is it what the run saw, and does it agree with itself and with the ledger?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.network.local import SEEN
from coband.simulator.experiments.store.store import StoredJob, StoredRun

SEND, DELIVER, DROP, EXPIRE = (tr.CODES[name] for name in ("send", "deliver", "drop", "expire"))
DUPLICATE = tr.CODES["duplicate"]
SERVER = -1


@dataclass(frozen=True)
class Verdict:
    """What the checks say of one job.

    Attributes:
        events: number of events stored.
        remark: what could not be checked, and why; empty when everything was.
        differences: one sentence each; empty when the trace is as it should be.
    """

    job: StoredJob
    events: int
    remark: str
    differences: tuple[str, ...]


def verify(run: StoredRun, jobs: Sequence[StoredJob] | None = None) -> Iterator[Verdict]:
    """Check jobs (all if None), one after the other."""
    return map(_verdict, run.jobs if jobs is None else jobs)


def _verdict(job: StoredJob) -> Verdict:
    if job.trace == tr.OFF:
        return Verdict(job, 0, "the run kept no trace (trace: off), so there is nothing to check", ())
    if job.status == "waiting":
        return Verdict(job, 0, "the job never started", ())
    names = [text for (text,) in job.part.execute("SELECT text FROM names WHERE job = ? ORDER BY code", (job.id,))]
    walk = Walk(names)
    fingerprint = tr.fingerprint_of(walk.through(_rows(job)), names)
    if job.record is None:
        remark = f"partial trace of a job that is {job.status}: no fingerprint and no ledger to compare with"
        return Verdict(job, walk.events, remark, tuple(walk.differences.values()))
    walk.end()
    found = [*walk.differences.values(), *_against_record(job.record, walk, fingerprint), *_against_ledger(job, walk)]
    return Verdict(job, walk.events, "", tuple(found))


def _rows(job: StoredJob) -> Iterator[tr.Row]:
    columns = ", ".join(tr.NUMERIC)
    for row in starmap(tr.Row, job.part.execute(f"SELECT {columns} FROM events WHERE job = ? ORDER BY seq", (job.id,))):
        # SQLite keeps NaN as NULL, and only this column can be NaN
        yield row if row.value is not None else row._replace(value=math.nan)


def _against_record(record: dict[str, Any], walk: Walk, fingerprint: str) -> Iterator[str]:
    if fingerprint != record["fingerprint"]:
        yield f"the fingerprint of the stored events is {fingerprint}, and the run's was {record['fingerprint']}"
    total = sum(sent[2] for sent in walk.sent.values())
    if total != record["scalars"]:
        yield f"the sends of the trace add up to {total} scalars, and the result says {record['scalars']}"


def _against_ledger(job: StoredJob, walk: Walk) -> Iterator[str]:
    query = "SELECT kind, direction, sends, messages, scalars FROM ledger WHERE job = ?"
    kept = {(kind, way): counts for kind, way, *counts in job.part.execute(query, (job.id,))}
    for key in sorted(kept.keys() | walk.sent.keys()):
        traced, booked = walk.sent.get(key, [0, 0, 0]), kept.get(key, [0, 0, 0])
        if traced != booked:
            yield (
                f"messages of kind {key[0]!r} ({key[1]}): the trace has {_counts(traced)}, the ledger {_counts(booked)}"
            )


def _counts(counts: Sequence[int]) -> str:
    return f"{counts[0]} sends, {counts[1]} messages, {counts[2]} scalars"


@dataclass(slots=True)
class Sent:
    """A message under way.

    Attributes:
        pending: receivers that it has neither reached nor been lost for.
        reached: who has it; None once nobody is pending.
        lost: for whom it was lost or given up, at least once.
    """

    seq: int
    node: int
    peer: int
    pending: int
    reached: set[int] | None = field(default_factory=set)
    lost: set[int] = field(default_factory=set)

    def arrive(self, copies: int) -> None:
        """So many copies have come to receivers."""
        self.pending -= copies
        if not self.pending:
            self.reached = None  # nothing more may come, so who has it need not be remembered


class Walk:
    """Goes through a trace once and notes, of each kind of mistake, the first.

    Attributes:
        differences: kind of mistake -> sentence.
        sent: (kind of message, direction) -> [sends, messages, scalars], a multicast counting once per receiver.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.events = 0
        self.differences: dict[str, str] = {}
        self.sent: dict[tuple[str, str], list[int]] = {}
        self._messages: dict[int, Sent] = {}

    def through(self, rows: Iterator[tr.Row]) -> Iterator[tr.Row]:
        """The same rows, each checked on its way."""
        expected, clock = 0, -math.inf
        for row in rows:
            seq, time, event, node, peer, message, cause, kind, scalars = row[:9]
            if seq != expected:
                self._note("seq", f"events are missing or repeated: where number {expected} should be, {seq} is")
            if time < clock:
                self._note("time", f"time goes back at event {seq}: {time} after {clock}")
            if cause >= seq:
                self._note("cause", f"event {seq} has cause {cause}, which is not earlier")
            if event == SEND:
                self._send(seq, node, peer, message, kind, scalars, int(row.value))
            elif event == DELIVER:
                self._deliver(seq, node, peer, message, cause, int(row.value) if node == tr.EVERYONE else 1)
            elif event == DUPLICATE and self._is_seen(row.reason) and message in self._messages:
                self._messages[message].arrive(int(row.value) if node == tr.EVERYONE else 1)
            elif event in (DROP, EXPIRE) and message in self._messages:
                self._messages[message].lost.add(peer)
            expected, clock = seq + 1, time
            self.events += 1
            yield row

    def _note(self, kind: str, sentence: str) -> None:
        self.differences.setdefault(kind, sentence)

    def _send(self, seq: int, node: int, peer: int, message: int, kind: int, scalars: int, receivers: int) -> None:
        self._messages[message] = Sent(seq, node, peer, receivers)
        way = "down" if node == SERVER else "up" if peer == SERVER else "peer"
        name = self._names[kind] if 0 <= kind < len(self._names) else f"number {kind}"
        totals = self.sent.setdefault((name, way), [0, 0, 0])
        for index, count in enumerate((1, receivers, receivers * scalars)):
            totals[index] += count

    def _is_seen(self, reason: int) -> bool:
        """Whether a duplicate is that of a LOCAL message, which its receiver ignores: it has arrived, all the same."""
        return 0 <= reason < len(self._names) and self._names[reason] == SEEN

    def _deliver(self, seq: int, node: int, peer: int, message: int, cause: int, copies: int) -> None:
        sent = self._messages.get(message)
        if sent is None or sent.seq != cause or sent.node != peer or sent.peer not in (node, tr.EVERYONE):
            self._note("send", f"delivery {seq}, of message {message}, has no matching send")
        elif sent.reached is None or node in sent.reached:
            self._note("twice", f"delivery {seq} brings message {message} to {_spell(node)} once more")
        else:
            sent.reached.add(node)
            sent.arrive(copies)

    def end(self) -> None:
        """At the end of a finished run every message has reached each of its receivers, or was lost on the way."""
        for message, sent in self._messages.items():
            if sent.reached is not None and sent.pending > len(sent.lost - sent.reached):
                missing = sent.pending - len(sent.lost - sent.reached)
                self._note("arrival", f"message {message}, sent at event {sent.seq}, is missing {missing} deliveries")


def _spell(node: int) -> str:
    return "the server" if node == SERVER else f"agent {node}"
