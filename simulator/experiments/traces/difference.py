"""Where two traces part: the first event of one that the other lacks although all that led to it is common to both.

Two traces are the same when every node does the same things in the same order, for the same reasons and at the same
times. How events of different nodes at one moment are interleaved, how events and messages are numbered and how names
are coded does not count. So the traces are read side by side, one moment after the other; within a moment an event of
one trace answers to an event of the other when both come next at their node, say the same, and their causes answer to
each other. Memory: eight bytes an event, and the events of one moment.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from coband.simulator.core.audit import trace as tr
from coband.simulator.core.audit.trace import Row
from coband.simulator.experiments.store.store import Event
from coband.simulator.experiments.traces.reading import TraceReader

COPIED = slice(tr.COLUMNS.index("kind") + 1, tr.COLUMNS.index("reason"))
"""The columns that mean the same in any trace: from scalars to value."""
ON_THE_WAY = ("drop", "duplicate", "expire", "retransmit")
"""What happens to a copy on its link is no step of the node that it is booked at."""
COMPARED = ("time", "event", "node", "peer", "kind", "scalars", "hop", "round", "version", "value", "reason")
"""The columns of an event that tell what happens, whatever it is numbered."""
UNANSWERED = -2
Pair = tuple[Row | None, Row | None]


@dataclass(frozen=True)
class Comparison:
    """How far two traces agree.

    Attributes:
        common: number of events that answer to each other, up to the first difference.
        here: the event of the first trace with which they part; None where it has none.
        there: what the second trace has in its place, next at the same node; None where it has none.
    """

    common: int
    here: Event | None = None
    there: Event | None = None

    @property
    def same(self) -> bool:
        """Whether there is no difference."""
        return self.here is None and self.there is None

    @property
    def time(self) -> float:
        """When they part."""
        return min(event.time for event in (self.here, self.there) if event is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """In what the two events differ; "cause" alone when they say the same for different reasons."""
        if self.here is None or self.there is None:
            return ()
        found = tuple(name for name in COMPARED if getattr(self.here, name) != getattr(self.there, name))
        return found or ("cause",)


def compare(first: TraceReader, second: TraceReader) -> Comparison:
    """Read two traces side by side until they part."""
    sides = _moments(first), _moments(second)
    matching = _Matching(first, second)
    while True:
        here, there = (next(side, None) for side in sides)
        if here is None and there is None:
            return Comparison(matching.common)
        if here is None or there is None or here[0].time != there[0].time:
            pair = _apart(first, second, here, there)
        else:
            parted = matching.match(here, there)
            if parted is None:
                continue
            pair = parted
        return Comparison(
            matching.common,
            None if pair[0] is None else first.spell(pair[0]),
            None if pair[1] is None else second.spell(pair[1]),
        )


def _moments(reader: TraceReader) -> Iterator[list[Row]]:
    """The events of a trace, by simulated time."""
    return (list(rows) for _, rows in groupby(reader.raw(), key=attrgetter("time")))


def _apart(first: TraceReader, second: TraceReader, here: list[Row] | None, there: list[Row] | None) -> Pair:
    """One trace has a moment that the other lacks: nothing but common events comes before its first event."""
    if there is None or (here is not None and here[0].time < there[0].time):
        assert here is not None
        return here[0], _next_at(second, here[0].node, there)
    return _next_at(first, there[0].node, here), there[0]


def _next_at(reader: TraceReader, node: int, moment: list[Row] | None) -> Row | None:
    """The next event at a node from a moment on."""
    if moment is None:
        return None
    return next(reader.raw("AND seq >= ? AND node = ?", (moment[0].seq, node)), None)


class _Matching:
    """Finds the events of a second trace that answer to those of a first one.

    Attributes:
        common: how many have been found.
    """

    def __init__(self, first: TraceReader, second: TraceReader) -> None:
        self.common = 0
        self._first, self._second = first, second
        self._answers = array("q")  # by number of the first trace's event

    def match(self, here: Sequence[Row], there: Sequence[Row]) -> Pair | None:
        """Match the events of one moment; None when all have an answer, else those that part first."""
        waiting: dict[Any, deque[Row]] = defaultdict(deque)
        for row in there:
            waiting[self._track(self._second, row, row.cause)].append(row)
        parted: set[Any] = set()
        found: Pair | None = None
        for row in here:
            cause = self._answers[row.cause] if row.cause != tr.NONE else tr.NONE
            track = self._track(self._first, row, cause)
            queue = waiting[track]
            if track not in parted and queue and self._answer_to_each_other(row, cause, queue[0]):
                self._answers.append(queue.popleft().seq)
                self.common += 1
                continue
            self._answers.append(UNANSWERED)
            if cause != UNANSWERED and track not in parted:
                found = found or (row, queue[0] if queue else None)
            parted.add(track)
        if found is None:
            rest = [queue[0] for queue in waiting.values() if queue]
            return (None, min(rest, key=attrgetter("seq"))) if rest else None
        return found

    @staticmethod
    def _track(reader: TraceReader, row: Row, cause: int) -> Any:
        """What an event is the next step of: its node, its link, or, where many agents share it, its cause."""
        if row.node == tr.EVERYONE:
            return "after", cause
        if reader.events.get(row.event) in ON_THE_WAY:
            return "link", row.node, row.peer
        return "node", row.node

    def _answer_to_each_other(self, here: Row, cause: int, there: Row) -> bool:
        if cause != there.cause or here.peer != there.peer or here[COPIED] != there[COPIED]:
            return False
        first, second = self._first, self._second
        return (
            first.events.get(here.event) == second.events.get(there.event)
            and first.names.get(here.kind) == second.names.get(there.kind)
            and first.names.get(here.reason) == second.names.get(there.reason)
        )
