"""Reads the trace of one job, event by event, from a finished run or from the file of a killed job; totals of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.store import schema
from coband.simulator.experiments.store.store import Event, StoredJob, StoredRun, StoreError

COLUMNS = ", ".join(tr.COLUMNS)


def address_name(address: int) -> str | None:
    """The name of a node or peer, as in the view ``trace``; None for nobody."""
    words = {SERVER: "server", tr.EVERYONE: "everyone", tr.NOBODY: None}
    return words.get(address, f"agent {address}")


def nodes(jobs: Iterable[StoredJob]) -> list[str]:
    """The nodes that have events in the traces of jobs, agents in order; "everyone" stands for several at once."""
    query = "SELECT DISTINCT node FROM events WHERE job = ?"
    found = sorted({address for job in jobs for (address,) in job.part.execute(query, (job.id,))})
    return [name for address in found if (name := address_name(address)) is not None]


def spelled(text: str | None, jobs: Sequence[StoredJob]) -> str | None:
    """The store's name of a node that the user names as "server", "agent 3" or "3".

    Args:
        text: as the user names it; None for any node.
        jobs: where it is to occur.

    Raises:
        StoreError: it has no event in any of them.
    """
    if text is None:
        return text
    match = re.fullmatch(r"(?:agent\s*)?(\d+)", text.strip())
    name = text.strip() if match is None else f"agent {int(match[1])}"
    query = f"{schema.TRACE} SELECT 1 FROM trace WHERE job = ? AND node = ? LIMIT 1"
    if any(job.part.execute(query, (job.id, name)).fetchone() for job in jobs):
        return name
    raise StoreError(f"--node {text!r} is not a node of this run; there is {_listed(nodes(jobs))}.")


def _listed(nodes: Sequence[str]) -> str:
    """Nodes in words; agents that follow each other as the first and the last of them."""
    agents = sorted(int(name.split()[1]) for name in nodes if name.startswith("agent "))
    words = [name for name in nodes if not name.startswith("agent ")]
    if len(agents) > 2 and agents[-1] - agents[0] == len(agents) - 1:
        words.append(f"agent {agents[0]} to agent {agents[-1]}")
    else:
        words += [f"agent {number}" for number in agents]
    return ", ".join(words)


class TraceReader:
    """Reads the trace of one job.

    Attributes:
        events: names of the events, by code.
        names: kinds and reasons, by code.

    Raises:
        StoreError: the job has no trace; the text says why.
    """

    def __init__(self, job: StoredJob) -> None:
        _require_trace(job)
        self.job = job
        self.events = dict(job.part.execute("SELECT code, name FROM event_names"))
        self.names = dict(job.part.execute("SELECT code, text FROM names WHERE job = ?", (job.id,)))
        # Only run.sqlite has a primary key; the file of a single job has its events in the order of their numbers.
        found = job.part.execute("SELECT sql FROM sqlite_master WHERE name = 'events'").fetchone()
        self._at = "job = ? AND seq = ?" if "WITHOUT ROWID" in found[0] else "job = ? AND rowid = 1 + ?"

    def raw(self, condition: str = "", values: Sequence[object] = ()) -> Iterator[tr.Row]:
        """Yield stored rows in order of seq; ``condition`` is SQL that starts with AND."""
        query = f"SELECT {COLUMNS} FROM events WHERE job = ? {condition} ORDER BY seq"
        return map(tr.Row._make, self.job.part.execute(query, (self.job.id, *values)))

    def decode(self, row: tr.Row) -> Event:
        """A stored row as an event with names in place of codes."""
        seq, time, event, node, peer, message, cause, kind, scalars, hop, round, version, value, reason, detail = row
        return Event(
            label=self.job.label,
            replication=self.job.replication,
            seq=seq,
            time=time,
            event=self.events.get(event, f"event {event}"),
            node=address_name(node),
            peer=address_name(peer),
            message=_none_if_missing(message),
            cause=_none_if_missing(cause),
            kind=self.names.get(kind),
            scalars=scalars,
            hop=hop,
            round=_none_if_missing(round),
            version=_none_if_missing(version),
            value=value,
            reason=self.names.get(reason),
            detail=detail,
        )

    def at(self, seq: int) -> Event:
        """The event with the number ``seq``.

        Raises:
            StoreError: there is no such event.
        """
        query = f"SELECT {COLUMNS} FROM events WHERE {self._at}"
        row = None if seq.bit_length() > 63 else self.job.part.execute(query, (self.job.id, seq)).fetchone()
        if row is None:
            (last,) = self.job.part.execute("SELECT max(seq) FROM events WHERE job = ?", (self.job.id,)).fetchone()
            have = f"they go from 0 to {last}" if last is not None else "there is none at all"
            raise StoreError(f"{_job_name(self.job)} has no event {seq}; {have}.")
        return self.decode(tr.Row._make(row))


def one_job(run: StoredRun, label: str | None = None, replication: int | None = None) -> StoredJob:
    """The only job with this label and replication; None: any.

    Raises:
        StoreError: there is no such job, or more than one.
    """
    jobs = run.select(label, replication)
    if len(jobs) == 1:
        return jobs[0]
    labels = list(dict.fromkeys(job.label for job in jobs))
    numbers = sorted({job.replication for job in jobs})
    choices = [f"--label ({', '.join(labels)})"] if len(labels) > 1 else []
    choices += [f"--replication ({_span(numbers)})"] if len(numbers) > 1 else []
    raise StoreError(f"{run.path} holds {len(jobs)} jobs, each with events of its own; choose {' and '.join(choices)}.")


def traced(jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """The jobs that have a trace.

    Raises:
        StoreError: no job has a trace.
    """
    found = [job for job in jobs if job.trace != tr.OFF and job.status != "waiting"]
    if jobs and not found:
        _require_trace(jobs[0])
    return found


def _require_trace(job: StoredJob) -> None:
    if job.trace == tr.OFF:
        raise StoreError(
            f"{_job_name(job)} kept no trace (trace: off). Run the scenario again with --trace protocol, or full."
        )
    if job.status == "waiting":
        raise StoreError(f"{_job_name(job)} never started, so it has no trace.")


def _job_name(job: StoredJob) -> str:
    return f"{job.label}, replication {job.replication},"


def _span(numbers: Sequence[int]) -> str:
    whole = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"{numbers[0]}..{numbers[-1]}" if whole else ", ".join(map(str, numbers))


def _none_if_missing(code: int) -> int | None:
    return None if code == tr.NONE else code


GROUPS = ("event", "kind", "node", "round")
COUNTS = ("events", "sends", "messages", "scalars", "deliveries")

_COUNTS = """count(*), sum(event = 'send'), coalesce(sum(CASE event WHEN 'send' THEN CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'send' THEN scalars * CAST(value AS INTEGER) END), 0),
    coalesce(sum(CASE event WHEN 'deliver' THEN
        CASE node WHEN 'everyone' THEN CAST(value AS INTEGER) ELSE 1 END END), 0)"""


class Tally(NamedTuple):
    """Totals of one group of events of one label, summed over replications.

    Attributes:
        groups: value of each grouping column (name of the event, kind or node, number of the round); None if missing.
        messages: number of messages; a multicast counts once per receiver.
        scalars: scalars sent; a multicast counts once per receiver.
    """

    label: str
    groups: tuple[str | int | None, ...]
    events: int
    sends: int
    messages: int
    scalars: int
    deliveries: int


def tally(jobs: Sequence[StoredJob], *by: str) -> list[Tally]:
    """Totals of each label, grouped by one or more of :data:`GROUPS`."""
    totals: dict[tuple[str, tuple[str | int | None, ...]], list[int]] = {}
    columns, width = ", ".join(by), len(by)
    query = f"{schema.TRACE} SELECT {columns}, {_COUNTS} FROM trace WHERE job = ? GROUP BY {columns} ORDER BY {columns}"
    for job in jobs:
        for row in job.part.execute(query, (job.id,)):
            groups, counts = tuple(row[:width]), row[width:]
            total = totals.setdefault((job.label, groups), [0] * len(counts))
            totals[job.label, groups] = [before + count for before, count in zip(total, counts, strict=True)]
    return [Tally(label, groups, *counts) for (label, groups), counts in totals.items()]
