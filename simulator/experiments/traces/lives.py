"""The life of a message: the send, every copy of it, every hop, and what its deliveries led to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coband.simulator.core.audit import trace as tr
from coband.simulator.experiments.store.store import Event, StoreError
from coband.simulator.experiments.traces.reading import TraceReader

LIMIT = 64
"""Effects of one message that are kept at most."""


@dataclass(frozen=True)
class Life:
    """What became of a message, from the node that said it first to all who heard it.

    Attributes:
        origin: the first send; on a graph other sends pass it on.
        events: everything that carries the message's number, or that of a send that passed it on, in order of seq.
        effects: events that its deliveries led to directly, at most :data:`LIMIT`.
    """

    origin: Event
    events: tuple[Event, ...]
    effects: tuple[Event, ...]

    def count(self, event: str) -> int:
        """Copies that met with ``event``; a row about several agents counts once for each of them."""
        chosen = [item for item in self.events if item.event == event]
        return sum(int(item.value or 0) if item.node == "everyone" else 1 for item in chosen)

    @property
    def copies(self) -> int:
        """First copies that were put on links, over all hops."""
        return sum(int(item.value or 0) for item in self.events if item.event == "send")

    @property
    def hops(self) -> int:
        """Links that it has passed at most; 0 where messages go straight to their receivers."""
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


def follow(reader: TraceReader, message: int) -> Life:
    """The life of the message of that number; any send that passed it on stands for all of it.

    Raises:
        StoreError: no message has that number.
    """
    origin = _first_send(reader, message)
    kept, effects = _collect(reader, origin)
    return Life(origin, tuple(map(reader.at, kept)), tuple(map(reader.at, effects)))


def _first_send(reader: TraceReader, message: int) -> Event:
    """The send at which a message began; from the second hop on, sends pass it on."""
    found = next(reader.raw("AND message = ? AND event = ?", (message, tr.SEND)), None)
    if found is None:
        query = "SELECT max(message) FROM events WHERE job = ?"
        last = reader.job.part.execute(query, (reader.job.id,)).fetchone()[0]
        have = "nothing was sent" if last in (None, tr.NONE) else f"they go from 0 to {last}"
        raise StoreError(f"{reader.job.label}, replication {reader.job.replication}, has no message {message}; {have}.")
    send = reader.spell(found)
    while send.hop > 1 and send.cause is not None:
        send = reader.at(send.cause)
    return send


def _collect(reader: TraceReader, origin: Event) -> tuple[list[int], list[int]]:
    """Numbers of the events of a message, and of those that it led to."""
    heard, messages = {origin.seq}, {origin.message}
    kept: list[int] = []
    effects: list[int] = []
    query = "SELECT seq, event, message, cause, hop FROM events WHERE job = ? AND seq >= ? ORDER BY seq"
    for seq, event, message, cause, hop in reader.job.part.execute(query, (reader.job.id, origin.seq)):
        if event == tr.SEND and hop > 1 and cause in heard:
            messages.add(message)
        if message in messages:
            kept.append(seq)
            if event in (tr.SEND, tr.DELIVER):
                heard.add(seq)
        elif cause in heard and len(effects) < LIMIT:
            effects.append(seq)
    return kept, effects
