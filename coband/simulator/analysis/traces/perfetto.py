"""Export to Chrome's trace-event format, for Perfetto (https://ui.perfetto.dev) and other viewers.

Each job is a process. Each node has one track for turns, one for waits, and one for messages and notes, the server
first and then agents by number. Messages are flows: arrows lead from sends to deliveries. Communication rounds,
downtimes and messages of which a copy never arrived are spans, which may overlap. Regret and scalars sent are counters.
Perfetto drops a slice that partly overlaps another slice of its track, and nests slices that share a moment, so a
conflicting slice goes to an additional track. Times are rounded to nanoseconds before durations are computed, so that
adjacent slices do not overlap. Perfetto orders tracks by the numbers of threads, and puts the thread with the number of
its process first; the numbers here are in the order of nodes, and none is that of a process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.experiments.store.store import Event, StoredJob

Item = dict[str, Any]
Write = Callable[[str], object]

NANOSECONDS = 1_000_000_000
LONGEST = 4_000_000
"""Largest number of seconds for which the format's double-precision microseconds still resolve nanoseconds."""
LARGEST = 2**31
"""Numbers of threads are below this one."""
STACK = 64
"""Largest number of nested slices at one moment of a track; Perfetto's limit is 512, but fewer are readable."""
TURNS, WAITS, MESSAGES = "", " waits", " messages"
ORDER = (TURNS, WAITS, MESSAGES)
SPARE = 128
"""Thread numbers that are reserved for one node and kind of track."""
COMPACT = (",", ":")
UNSAID = ("scalars", "hop")
"""Details that are not shown where they are 0."""


def write(jobs: Sequence[StoredJob], out: Write) -> None:
    """Write the traces of jobs as one JSON object, event by event."""
    out('{"displayTimeUnit": "ms", "traceEvents": [')
    separator = "\n"
    for job in jobs:
        for item in _Export(TraceReader(job)).items():
            out(separator + json.dumps(item, allow_nan=False, separators=COMPACT))
            separator = ",\n"
    out("\n]}\n")


@dataclass(slots=True)
class _Track:
    """A row of the display, with the last slice on it."""

    id: int
    start: int = -1
    end: int = -1
    stacked: int = 0

    def add(self, start: int, end: int) -> bool:
        """Add a slice and return True, unless it conflicts with another; slices arrive in order of their ends."""
        if start == end == self.start == self.end:
            self.stacked += 1
            if self.stacked >= STACK:
                return False
        elif start < self.end or (start == self.end and self.start == self.end):
            return False
        else:
            self.stacked = 0
        self.start, self.end = start, end
        return True


@dataclass(slots=True)
class _MessageInFlight:
    """A message in flight: the time of its send, and the number of copies that have not arrived."""

    start: int
    copies: int
    event: Event


@dataclass
class _Export:
    """The export of one job.

    Attributes:
        tracks: (node, kind of track) -> its tracks.
        turns, waits, downtimes: node -> start and first event of the one in progress.
        flights: number of a message -> its state.
        rounds: number of a round -> its first and last time.
    """

    reader: TraceReader
    tracks: dict[tuple[str, str], list[_Track]] = field(default_factory=dict)
    turns: dict[str, tuple[int, Event]] = field(default_factory=dict)
    waits: dict[str, tuple[int, Event]] = field(default_factory=dict)
    downtimes: dict[str, tuple[int, Event]] = field(default_factory=dict)
    flights: dict[int, _MessageInFlight] = field(default_factory=dict)
    rounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    _spans: int = 0
    _last: int = 0
    _more: int = LARGEST

    def __post_init__(self) -> None:
        job = self.reader.job
        self._process = job.id + 1
        query = "SELECT max(time), max(node) FROM events WHERE job = ?"
        last, agent = job.part.execute(query, (job.id,)).fetchone()
        last = last or 0.0
        nodes = 3 if agent is None else agent + 3
        self._threads = self._process * nodes * len(ORDER) * SPARE
        self._unit = 1.0  # displayed seconds per unit of simulated time
        while last * self._unit > LONGEST:
            self._unit /= 1000

    def items(self) -> Iterator[Item]:
        job = self.reader.job
        unit = "" if self._unit == 1 else f", {self._unit:g} s of display for one unit of time"
        yield self._name("process_name", 0, f"{job.label}, replication {job.replication}{unit}")
        for row in self.reader.raw():
            event = self.reader.decode(row)
            now = self._last = self._nanoseconds(event.time)
            if event.round is not None:
                self.rounds[event.round] = (self.rounds.get(event.round, (now, now))[0], now)
            yield from self._event(event, now)
        yield from self._unfinished()
        for number, (start, end) in self.rounds.items():
            yield from self._span("round", f"round {number}", start, end, {"round": number})
        yield from self._counters()

    def _event(self, event: Event, now: int) -> Iterator[Item]:
        node = event.node or ""
        match event.event:
            case "turn":
                self.turns[node] = now, event
            case "choose" if node in self.turns:  # a late reward may come after the next turn has begun
                yield from self._finish(self.turns, node, TURNS, now, f"turn {self.turns[node][1].value:g}")
            case "wait":
                self.waits[node] = now, event
            case "resume" if node in self.waits:
                yield from self._finish(self.waits, node, WAITS, now, "waits")
            case "down":
                self.downtimes[node] = self._nanoseconds(event.time - (event.value or 0.0)), event
            case "up" if node in self.downtimes:
                start, down = self.downtimes.pop(node)
                end = self._nanoseconds(event.time - (event.value or 0.0))
                yield from self._span("offline", f"{node} offline", start, end, _arguments(down))
            case "send":
                yield from self._send(event, now)
            case "deliver":
                yield from self._deliver(event, now)
            case "timer":
                yield from self._slice(node, MESSAGES, f"timer {event.kind}", now, now, _arguments(event))
            case "choose" | "reward":
                pass  # part of the turn's slice
            case _:
                if event.event == "duplicate" and event.message is not None:
                    self._remove_copy(event)
                yield from self._slice(node, MESSAGES, event.event, now, now, _arguments(event))

    def _send(self, event: Event, now: int) -> Iterator[Item]:
        copies = int(event.value or 0)
        assert event.message is not None
        if copies:
            self.flights[event.message] = _MessageInFlight(now, copies, event)
        arrow = {"bind_id": self._unique_id(event.seq), "flow_out": True}
        yield from self._slice(event.node or "", MESSAGES, f"send {event.kind}", now, now, _arguments(event), arrow)

    def _deliver(self, event: Event, now: int) -> Iterator[Item]:
        assert event.message is not None
        flight = self.flights.get(event.message)
        arrow = {}
        if flight is not None:
            arrow = {"bind_id": self._unique_id(flight.event.seq), "flow_in": True}
            self._remove_copy(event)
        yield from self._slice(event.node or "", MESSAGES, f"receive {event.kind}", now, now, _arguments(event), arrow)

    def _remove_copy(self, event: Event) -> None:
        """Record that one copy, or the number of copies in the row, is no longer in flight."""
        flight = self.flights.get(event.message or 0)
        if flight is not None and (event.event == "deliver" or event.reason == "seen"):
            flight.copies -= int(event.value or 0) if event.node == "everyone" else 1
            if flight.copies <= 0:
                del self.flights[flight.event.message or 0]

    def _unfinished(self) -> Iterator[Item]:
        """Yield everything that has not ended; it lasts until the end of the trace."""
        end = self._last
        for node in list(self.turns):
            yield from self._finish(self.turns, node, TURNS, end, f"turn {self.turns[node][1].value:g}")
        for node in list(self.waits):
            yield from self._finish(self.waits, node, WAITS, end, "waits")
        for node, (start, down) in self.downtimes.items():
            yield from self._span("offline", f"{node} offline", start, end, _arguments(down))
        for flight in self.flights.values():
            arguments = {**_arguments(flight.event), "copies that did not arrive": flight.copies}
            yield from self._span("message", str(flight.event.kind), flight.start, end, arguments)

    def _finish(self, begun: dict[str, tuple[int, Event]], node: str, what: str, end: int, name: str) -> Iterator[Item]:
        start, event = begun.pop(node)
        yield from self._slice(node, what, name, start, end, _arguments(event))

    def _slice(
        self, node: str, what: str, name: str, start: int, end: int, arguments: Item, more: Item | None = None
    ) -> Iterator[Item]:
        tracks = self.tracks.setdefault((node, what), [])
        track = next((track for track in tracks if track.add(start, end)), None)
        if track is None:
            track = _Track(self._thread(node, what, len(tracks)))
            track.add(start, end)
            tracks.append(track)
            yield self._name("thread_name", track.id, f"{node}{what}{f' {len(tracks)}' if len(tracks) > 1 else ''}")
            yield {**self._name("thread_sort_index", track.id, ""), "args": {"sort_index": _position(node, what)}}
        yield {
            "ph": "X",
            "name": name,
            "pid": self._process,
            "tid": track.id,
            "ts": _microseconds(start),
            "dur": _microseconds(end - start),
            "args": arguments,
            **(more or {}),
        }

    def _thread(self, node: str, what: str, number: int) -> int:
        """The number of a thread; the few beyond the reserved ones come after all others."""
        if number < SPARE:
            return self._threads + _position(node, what) * SPARE + number
        self._more -= 1
        return self._more

    def _span(self, category: str, name: str, start: int, end: int, arguments: Item) -> Iterator[Item]:
        """Yield a span, which may overlap other spans."""
        self._spans += 1
        common = {"cat": category, "name": name, "pid": self._process, "tid": 0, "id": self._unique_id(self._spans)}
        yield {"ph": "b", **common, "ts": _microseconds(start), "args": arguments}
        yield {"ph": "e", **common, "ts": _microseconds(end)}

    def _counters(self) -> Iterator[Item]:
        job = self.reader.job
        query = "SELECT time, regret, scalars FROM series WHERE job = ? ORDER BY turn"
        for time, *values in job.part.execute(query, (job.id,)):
            for name, value in zip(("regret", "scalars"), values, strict=True):
                if value is not None:
                    stamp = _microseconds(self._nanoseconds(time))
                    yield {"ph": "C", "name": name, "pid": self._process, "ts": stamp, "args": {"value": value}}

    def _name(self, what: str, track: int, name: str) -> Item:
        return {"ph": "M", "name": what, "pid": self._process, "tid": track, "args": {"name": name}}

    def _unique_id(self, number: int) -> str:
        """An identifier that no other job uses, in the format's hexadecimal notation."""
        return hex(self._process << 40 | number)

    def _nanoseconds(self, time: float) -> int:
        return round(time * self._unit * NANOSECONDS)


def _microseconds(nanoseconds: int) -> float:
    """Convert to microseconds, the unit of the format, with three significant decimals."""
    return nanoseconds / 1000


def _position(node: str, what: str) -> int:
    """Position of a track: the server first, then agents by number; for each node turns, then waits, then messages."""
    number = int(node.removeprefix("agent ")) + 2 if node.startswith("agent ") else int(node == "everyone")
    return number * len(ORDER) + ORDER.index(what)


def _arguments(event: Event) -> Item:
    """The details that Perfetto shows for a selected slice."""
    names = ("seq", "cause", "peer", "message", "scalars", "round", "version", "value", "reason", "hop", "detail")
    shown = {name: getattr(event, name) for name in names}
    return {name: value for name, value in shown.items() if value is not None and (value or name not in UNSAID)}
