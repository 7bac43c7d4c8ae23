"""One job's trace, read event by event: a collected run's by its key, a killed job's by its place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.store.store import Event, StoredJob, StoredRun, StoreError

SERVER = -1
COLUMNS = ", ".join(tr.COLUMNS)


def spell_address(address: int) -> str | None:
    """A node or a peer in the words of the view ``trace``."""
    words = {SERVER: "server", tr.EVERYONE: "everyone", tr.NOBODY: None}
    return words.get(address, f"agent {address}")


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
        # Only the collected file has a key; a job's own file has the events one after the other.
        found = job.part.execute("SELECT sql FROM sqlite_master WHERE name = 'events'").fetchone()
        self._at = "job = ? AND seq = ?" if "WITHOUT ROWID" in found[0] else "job = ? AND rowid = 1 + ?"

    def raw(self, condition: str = "", values: Sequence[object] = ()) -> Iterator[tr.Row]:
        """Stored rows in order of seq, nan as None; ``condition`` is SQL that starts with AND."""
        query = f"SELECT {COLUMNS} FROM events WHERE job = ? {condition} ORDER BY seq"
        return map(tr.Row._make, self.job.part.execute(query, (self.job.id, *values)))

    def spell(self, row: tr.Row) -> Event:
        """A stored row in words."""
        seq, time, event, node, peer, message, cause, kind, scalars, hop, round, version, value, reason, detail = row
        return Event(
            self.job.label,
            self.job.replication,
            seq,
            time,
            self.events.get(event, f"event {event}"),
            spell_address(node),
            spell_address(peer),
            _some(message),
            _some(cause),
            self.names.get(kind),
            scalars,
            hop,
            _some(round),
            _some(version),
            value,
            self.names.get(reason),
            detail,
        )

    def at(self, seq: int) -> Event:
        """One event.

        Raises:
            StoreError: there is none of that number.
        """
        row = self._lookup(seq)
        if row is None:
            last = self.last
            have = f"they go from 0 to {last}" if last is not None else "there is none at all"
            raise StoreError(f"{_name(self.job)} has no event {seq}; {have}.")
        return self.spell(row)

    def _lookup(self, seq: int) -> tr.Row | None:
        query = f"SELECT {COLUMNS} FROM events WHERE {self._at}"
        row = self.job.part.execute(query, (self.job.id, seq)).fetchone()
        return None if row is None else tr.Row._make(row)

    @property
    def last(self) -> int | None:
        """The number of the last event, None when there is none."""
        query = "SELECT max(seq) FROM events WHERE job = ?"
        number: int | None = self.job.part.execute(query, (self.job.id,)).fetchone()[0]
        return number


def one_job(run: StoredRun, label: str | None = None, replication: int | None = None) -> StoredJob:
    """The job that a label and a replication single out.

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
        StoreError: none has.
    """
    found = [job for job in jobs if job.trace != tr.OFF and job.status != "waiting"]
    if jobs and not found:
        _require_trace(jobs[0])
    return found


def _require_trace(job: StoredJob) -> None:
    if job.trace == tr.OFF:
        raise StoreError(
            f"{_name(job)} kept no trace (trace: off). Run the scenario again with --trace protocol, or full."
        )
    if job.status == "waiting":
        raise StoreError(f"{_name(job)} never started, so it has no trace.")


def _name(job: StoredJob) -> str:
    return f"{job.label}, replication {job.replication},"


def _span(numbers: Sequence[int]) -> str:
    whole = len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1
    return f"{numbers[0]}..{numbers[-1]}" if whole else ", ".join(map(str, numbers))


def _some(code: int) -> int | None:
    return None if code == tr.NONE else code
