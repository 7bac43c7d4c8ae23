"""Checks of a stored trace: is it what the run saw, and does it agree with itself and with the ledger?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from simulator.core import trace as tr
from simulator.core.local import SEEN
from simulator.experiments.store import StoredJob, StoredRun

SEND, DELIVER, DROP, EXPIRE, DUPLICATE = (tr.CODES[name] for name in ("send", "deliver", "drop", "expire", "duplicate"))


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
    (events,) = job.part.execute("SELECT count(*) FROM events WHERE job = ?", (job.id,)).fetchone()
    if job.trace == tr.OFF:
        return Verdict(job, 0, "the run kept no trace (trace: off), so there is nothing to check", ())
    if job.status == "waiting":
        return Verdict(job, 0, "the job never started", ())
    checks = [_numbered(job, events), _orderly_times(job), _earlier_causes(job), _deliveries(job)]
    remark = ""
    if job.record is None:
        remark = f"partial trace of a job that is {job.status}: no fingerprint and no ledger to compare with"
    else:
        checks += [_arrivals(job), _fingerprint(job), _ledger(job)]
    return Verdict(job, events, remark, tuple(difference for check in checks for difference in check))


def _numbered(job: StoredJob, events: int) -> Iterator[str]:
    first, last, distinct = job.part.execute(
        "SELECT min(seq), max(seq), count(DISTINCT seq) FROM events WHERE job = ?", (job.id,)
    ).fetchone()
    if events and (first, last, distinct) != (0, events - 1, events):
        yield f"seq has gaps or repeats: {events} events are numbered {first} to {last}, {distinct} different numbers"


def _orderly_times(job: StoredJob) -> Iterator[str]:
    row = job.part.execute(
        """
        SELECT seq, time, before FROM
            (SELECT seq, time, lag(time) OVER (ORDER BY seq) AS before FROM events WHERE job = ?)
        WHERE time < before LIMIT 1
        """,
        (job.id,),
    ).fetchone()
    if row:
        yield f"time goes back at event {row[0]}: {row[1]} after {row[2]}"


def _earlier_causes(job: StoredJob) -> Iterator[str]:
    row = job.part.execute("SELECT seq, cause FROM events WHERE job = ? AND cause >= seq LIMIT 1", (job.id,)).fetchone()
    if row:
        yield f"event {row[0]} has cause {row[1]}, which is not earlier"


def _deliveries(job: StoredJob) -> Iterator[str]:
    """Each delivery belongs to a send of the same message to that node, by the node that sent it, and happens once."""
    row = job.part.execute(
        f"""
        SELECT d.seq, d.message FROM events d
        LEFT JOIN (SELECT seq, message, node, peer, time FROM events WHERE job = ?1 AND event = {SEND}) s
            ON s.message = d.message
        WHERE d.job = ?1 AND d.event = {DELIVER} AND (s.seq IS NULL OR s.seq <> d.cause OR s.node <> d.peer
            OR s.time > d.time OR s.peer NOT IN (d.node, {tr.EVERYONE})) LIMIT 1
        """,
        (job.id,),
    ).fetchone()
    if row:
        yield f"delivery {row[0]} of message {row[1]} has no matching send"
    row = job.part.execute(
        f"""
        SELECT message, node FROM events WHERE job = ? AND event = {DELIVER}
        GROUP BY message, node HAVING count(*) > 1 LIMIT 1
        """,
        (job.id,),
    ).fetchone()
    if row:
        yield f"message {row[0]} was delivered more than once to {_spell(row[1])}"


def _arrivals(job: StoredJob) -> Iterator[str]:
    """At the end of a run every message has reached each of its receivers, or was lost on the way there.

    A copy of a LOCAL message that came to a node which had seen it has arrived too; a row about several nodes counts
    as many as its value says.
    """
    row = job.part.execute(
        f"""
        SELECT s.message, s.value, coalesce(d.arrived, 0), coalesce(l.lost, 0)
        FROM events s
        LEFT JOIN (SELECT message, sum(CASE node WHEN {tr.EVERYONE} THEN value ELSE 1 END) AS arrived FROM events
            WHERE job = ?1 AND (event = {DELIVER} OR event = {DUPLICATE} AND reason =
                (SELECT code FROM names WHERE job = ?1 AND text = '{SEEN}'))
            GROUP BY message) d ON d.message = s.message
        LEFT JOIN (SELECT message, count(DISTINCT peer) AS lost FROM events
            WHERE job = ?1 AND event IN ({DROP}, {EXPIRE}) GROUP BY message) l ON l.message = s.message
        WHERE s.job = ?1 AND s.event = {SEND} AND (coalesce(d.arrived, 0) > s.value
            OR coalesce(d.arrived, 0) + coalesce(l.lost, 0) < s.value) LIMIT 1
        """,
        (job.id,),
    ).fetchone()
    if row:
        message, receivers, arrived, lost = row
        yield f"message {message} had {receivers:g} receivers: {arrived} deliveries and {lost} losses are stored"


def _fingerprint(job: StoredJob) -> Iterator[str]:
    columns = ", ".join(tr.NUMERIC)
    rows = job.part.execute(f"SELECT {columns} FROM events WHERE job = ? ORDER BY seq", (job.id,))
    names = [text for (text,) in job.part.execute("SELECT text FROM names WHERE job = ? ORDER BY code", (job.id,))]
    # SQLite keeps NaN as NULL; only value can be NaN
    whole = (row if row[12] is not None else (*row[:12], math.nan, *row[13:]) for row in rows)
    found = tr.fingerprint_of(cast(Sequence[Sequence[float]], whole), names)  # read once, row by row
    stored = (job.record or {}).get("fingerprint")
    if found != stored:
        yield f"the fingerprint of the stored events is {found}, and the run's was {stored}"


def _ledger(job: StoredJob) -> Iterator[str]:
    sent = job.part.execute(
        f"""
        SELECT k.text, CASE WHEN e.node = -1 THEN 'down' WHEN e.peer = -1 THEN 'up' ELSE 'peer' END, count(*),
            CAST(sum(e.value) AS INTEGER), CAST(sum(e.scalars * e.value) AS INTEGER)
        FROM events e JOIN names k ON k.job = e.job AND k.code = e.kind
        WHERE e.job = ? AND e.event = {SEND} GROUP BY 1, 2 ORDER BY 1, 2
        """,
        (job.id,),
    ).fetchall()
    kept = job.part.execute(
        "SELECT kind, direction, sends, messages, scalars FROM ledger WHERE job = ? ORDER BY kind, direction", (job.id,)
    ).fetchall()
    for line in sorted(set(sent) ^ set(kept)):
        where = "trace has" if line in sent else "ledger has"
        yield f"the {where} {line[2]} sends, {line[3]} messages and {line[4]} scalars of {line[0]!r} {line[1]}"
    total, reported = sum(line[4] for line in sent), (job.record or {}).get("scalars")
    if total != reported:
        yield f"the sends of the trace add up to {total} scalars, and the result says {reported}"


def _spell(node: int) -> str:
    return "the server" if node == -1 else f"agent {node}"
