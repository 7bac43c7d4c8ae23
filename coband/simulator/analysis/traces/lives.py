"""The history of a message: its send, its copies, its hops, and what its deliveries or its loss caused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coband.simulator.analysis.traces.causes import cause_of
from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.store.store import Event, StoreError

LIMIT = 64
"""Largest number of effects that are kept for a message."""


@dataclass(frozen=True)
class MessageHistory:
    """The history of a message, from its first send to all its deliveries.

    Attributes:
        origin: the first send; on a graph, other sends forward the message.
        events: all events with the number of the message, or of a send that forwarded it, in order of seq.
        effects: events that a delivery caused directly, or that the message was given up, at most :data:`LIMIT`.
    """

    origin: Event
    events: tuple[Event, ...]
    effects: tuple[Event, ...]

    def count(self, event: str) -> int:
        """Number of copies with this ``event``; a row that concerns several agents counts once for each."""
        chosen = [item for item in self.events if item.event == event]
        return sum(int(item.value or 0) if item.node == "everyone" else 1 for item in chosen)

    @property
    def copies(self) -> int:
        """Number of copies put on links, over all hops, without retransmissions."""
        return sum(int(item.value or 0) for item in self.events if item.event == "send")

    @property
    def hops(self) -> int:
        """Largest number of links that a copy has passed; 0 if messages go directly to their receivers."""
        return max(item.hop for item in self.events)

    @property
    def first(self) -> float | None:
        """Simulated time from the send to the first delivery."""
        return min(self._delays(), default=None)

    @property
    def last(self) -> float | None:
        """Simulated time from the send to the last delivery."""
        return max(self._delays(), default=None)

    def _delays(self) -> Iterator[float]:
        return (item.time - self.origin.time for item in self.events if item.event == "deliver")


def follow(reader: TraceReader, message: int) -> MessageHistory:
    """The history of a message.

    Args:
        message: number of the message, or of a send that forwarded it.

    Raises:
        StoreError: no message has this number.
    """
    origin = _first_send(reader, message)
    kept, effects = _collect(reader, origin)
    return MessageHistory(origin, tuple(map(reader.at, kept)), tuple(map(reader.at, effects)))


def _first_send(reader: TraceReader, message: int) -> Event:
    """The first send of a message; sends from the second hop on forward it."""
    found = next(reader.raw("AND message = ? AND event = ?", (message, tr.SEND)), None)
    if found is None:
        query = "SELECT max(message) FROM events WHERE job = ?"
        last = reader.job.part.execute(query, (reader.job.id,)).fetchone()[0]
        have = "nothing was sent" if last in (None, tr.NONE) else f"they go from 0 to {last}"
        raise StoreError(f"{reader.job.label}, replication {reader.job.replication}, has no message {message}; {have}.")
    send = reader.decode(found)
    while send.hop > 1 and send.cause is not None:
        send = cause_of(reader, send)
    return send


def _collect(reader: TraceReader, origin: Event) -> tuple[list[int], list[int]]:
    """Numbers of the events of a message, and of the events that it caused."""
    causes, messages = {origin.seq}, {origin.message}
    kept: list[int] = []
    effects: list[int] = []
    query = "SELECT seq, event, message, cause, hop FROM events WHERE job = ? AND seq >= ? ORDER BY seq"
    for seq, event, message, cause, hop in reader.job.part.execute(query, (reader.job.id, origin.seq)):
        if event == tr.SEND and hop > 1 and cause in causes:
            messages.add(message)
        if message in messages:
            kept.append(seq)
            if event in (tr.SEND, tr.DELIVER, tr.EXPIRE):
                causes.add(seq)
        elif cause in causes and len(effects) < LIMIT:
            effects.append(seq)
    return kept, effects
