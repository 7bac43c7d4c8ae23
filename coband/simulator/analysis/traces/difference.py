"""The first difference of two traces: an event that only one of them has, although both have all of its causes.

Two traces are equal if every node does the same things in the same order, with the same causes and at the same times.
The interleaving of simultaneous events of different nodes, the numbers of events and messages, and the codes of names
do not matter. The traces are therefore read side by side, one moment of simulated time after the other. Within a
moment, an event of one trace matches an event of the other if both are the next event of their node, their contents
are equal, and their causes match. Memory: eight bytes per event, plus the events of one moment.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.trace import Row
from coband.simulator.experiments.store.store import Event, StoredJob, StoredRun, StoreError

COPIED = slice(tr.COLUMNS.index("kind") + 1, tr.COLUMNS.index("reason"))
"""The columns that mean the same in any trace: from scalars to value."""
LINK_EVENTS = ("drop", "duplicate", "expire", "retransmit")
"""Events that happen to a copy on its link; they have their own order, apart from the events of the node."""
COMPARED = ("time", "event", "node", "peer", "kind", "scalars", "hop", "round", "version", "value", "reason")
"""The compared columns: the contents of an event without its numbers."""
UNMATCHED = -2
Pair = tuple[Row | None, Row | None]


@dataclass(frozen=True)
class TraceComparison:
    """The result of comparing two traces.

    Attributes:
        common: number of matching events before the first difference.
        here: the first trace's event at the first difference; None if it has none there.
        there: the second trace's event at the first difference, the next one at the same node; None if it has none.
    """

    common: int
    here: Event | None = None
    there: Event | None = None

    @property
    def same(self) -> bool:
        return self.here is None and self.there is None

    @property
    def time(self) -> float:
        """Simulated time of the first difference."""
        return min(event.time for event in (self.here, self.there) if event is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which the two events differ; only "cause" if their contents are equal."""
        if self.here is None or self.there is None:
            return ()
        found = tuple(name for name in COMPARED if getattr(self.here, name) != getattr(self.there, name))
        return found or ("cause",)


def compare(first: TraceReader, second: TraceReader) -> TraceComparison:
    """Read two traces side by side until the first difference."""
    sides = _moments(first), _moments(second)
    matching = _Matching(first, second)
    while True:
        here, there = (next(side, None) for side in sides)
        if here is None and there is None:
            return TraceComparison(matching.common)
        if here is None or there is None or here[0].time != there[0].time:
            pair = _first_only(first, second, here, there)
        else:
            diverged = matching.match(here, there)
            if diverged is None:
                continue
            pair = diverged
        return TraceComparison(
            matching.common,
            None if pair[0] is None else first.decode(pair[0]),
            None if pair[1] is None else second.decode(pair[1]),
        )


def _moments(reader: TraceReader) -> Iterator[list[Row]]:
    """Yield the events of a trace, grouped by simulated time."""
    return (list(rows) for _, rows in groupby(reader.raw(), key=attrgetter("time")))


def _first_only(first: TraceReader, second: TraceReader, here: list[Row] | None, there: list[Row] | None) -> Pair:
    """The first difference if one trace has events at a time at which the other has none."""
    if there is None or (here is not None and here[0].time < there[0].time):
        assert here is not None
        return here[0], _next_at_node(second, here[0].node, there)
    return _next_at_node(first, there[0].node, here), there[0]


def _next_at_node(reader: TraceReader, node: int, moment: list[Row] | None) -> Row | None:
    """The first event at a node at or after the given moment."""
    if moment is None:
        return None
    return next(reader.raw("AND seq >= ? AND node = ?", (moment[0].seq, node)), None)


class _Matching:
    """Matches the events of two traces."""

    def __init__(self, first: TraceReader, second: TraceReader) -> None:
        self.common = 0
        self._first, self._second = first, second
        self._matches = array("q")  # number of the second trace's event, by number of the first trace's event

    def match(self, here: Sequence[Row], there: Sequence[Row]) -> Pair | None:
        """Match the events of one moment; return None if all match, else the first pair that differs."""
        waiting: dict[Any, deque[Row]] = defaultdict(deque)
        for row in there:
            waiting[self._stream_of(self._second, row, row.cause)].append(row)
        diverged: set[Any] = set()
        found: Pair | None = None
        for row in here:
            cause = self._matches[row.cause] if row.cause != tr.NONE else tr.NONE
            stream = self._stream_of(self._first, row, cause)
            queue = waiting[stream]
            if stream not in diverged and queue and self._correspond(row, cause, queue[0]):
                self._matches.append(queue.popleft().seq)
                self.common += 1
                continue
            self._matches.append(UNMATCHED)
            if cause != UNMATCHED and stream not in diverged:
                found = found or (row, queue[0] if queue else None)
            diverged.add(stream)
        if found is None:
            rest = [queue[0] for queue in waiting.values() if queue]
            return (None, min(rest, key=attrgetter("seq"))) if rest else None
        return found

    @staticmethod
    def _stream_of(reader: TraceReader, row: Row, cause: int) -> Any:
        """The sequence to which an event belongs: its node, its link, or its cause if it concerns several agents."""
        if row.node == tr.EVERYONE:
            return "after", cause
        if reader.events.get(row.event) in LINK_EVENTS:
            return "link", row.node, row.peer
        return "node", row.node

    def _correspond(self, here: Row, cause: int, there: Row) -> bool:
        if cause != there.cause or here.peer != there.peer or here[COPIED] != there[COPIED]:
            return False
        first, second = self._first, self._second
        return (
            first.events.get(here.event) == second.events.get(there.event)
            and first.names.get(here.kind) == second.names.get(there.kind)
            and first.names.get(here.reason) == second.names.get(there.reason)
        )


def pairs(
    first: StoredRun, second: StoredRun, label: str | None, other_label: str | None, replication: int | None
) -> list[tuple[StoredJob, StoredJob]]:
    """Pairs of jobs with the same label and replication, in the order of the first run.

    Args:
        other_label: the corresponding label in the second run, if it differs.

    Raises:
        StoreError: a name does not exist, or the runs have no common label and replication.
    """
    if other_label is not None and label is None:
        raise StoreError("--other-label needs --label, the label in A that it stands against.")
    here = first.select(label, replication)
    there = {(job.label, job.replication): job for job in second.select(other_label or label, replication)}
    found = [(job, there[key]) for job in here if (key := (other_label or job.label, job.replication)) in there]
    if not found:
        raise StoreError(
            f"{first.path} and {second.path} have no label and replication in common: {', '.join(first.labels)} "
            f"and {', '.join(second.labels)}. Name one of each with --label and --other-label."
        )
    return found
