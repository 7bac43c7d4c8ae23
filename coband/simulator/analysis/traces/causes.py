"""Questions to a trace: the causal chain of an event, back to the turn that started it; the history of a message, with
its copies, hops and effects; and what the number of an event means, in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.nodes.node import Node
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import Event, StoredRun, StoreError

WITHOUT_NUMBER = {
    "wait": "waits for messages",
    "resume": "goes on",
    "down": "is down, since {} ago",
    "up": "is up again, since {} ago",
    "violation": "an invariant does not hold",
    "expire": "given up after copy {}",
}
NUMBERS = {"turn": "turn {}", "choose": "arm {}", "reward": "reward {}", **WITHOUT_NUMBER}
COPIES = ("deliver", "drop", "duplicate", "retransmit")
NOTES = ("trigger", "apply", "model", "eliminate", "stop")
"""Events that nodes note themselves; their number is in ``detail``."""


def meaning(event: Event, algorithm: str) -> str:
    """What an event's number means; empty if it has none."""
    found = _number(event, algorithm)
    return f"{found}, because: {event.reason}" if event.reason else found


def _number(event: Event, algorithm: str) -> str:
    value = f"{event.value or 0.0:.6g}"
    if event.event in NOTES:
        return _noted(event, algorithm)
    if event.event == "send":
        return f"to {value} receiver{'' if value == '1' else 's'}"
    if event.event in COPIES:
        return f"{value} copies" if event.node == "everyone" else f"copy {value}"
    text = NUMBERS.get(event.event, "").format(value).replace(", since 0 ago", " from now on" * (event.event == "down"))
    pulls = _detail(event).get("pulls")
    return text if pulls is None else f"{text}, {'mean of ' if event.event == 'reward' else ''}{pulls} pulls"


def content(event: Event) -> str:
    """What ``trace: full`` keeps of an event beside its numbers, as JSON; empty if there is nothing."""
    kept = bool(event.detail) and event.event not in NOTES and "pulls" not in _detail(event)
    return f"{'arms' if event.event == 'choose' else 'content'}: {event.detail}" if kept else ""


def _noted(event: Event, algorithm: str) -> str:
    title = meanings(algorithm).get(event.event)
    if title is None:
        return "" if event.detail in (None, "0") else f"noted: {event.detail}"
    return f"{title}: {event.detail}"


def _detail(event: Event) -> dict[str, object]:
    try:
        found = json.loads(event.detail or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@cache
def meanings(algorithm: str) -> Mapping[str, str]:
    """What the nodes of an algorithm note, by event; nothing if it is not installed."""
    found = Registry.installed().algorithms.get(algorithm)
    if found is None:
        return {}
    nodes: list[type] = [found.agent]
    if (server := found.server_class) is not None:
        nodes.append(server)
    bases = [base for node in nodes for base in reversed(node.__mro__) if issubclass(base, Node)]
    return {event: text for base in bases for event, text in vars(base).get("noted", {}).items()}


@dataclass(frozen=True)
class Chain:
    """A causal chain.

    Attributes:
        events: the event, its cause, the cause of that, and so on; each event is caused by the next one.
    """

    events: tuple[Event, ...]

    @property
    def origin(self) -> Event:
        """The last event of the chain: a turn, or an event without a cause."""
        return self.events[-1]

    @property
    def messages(self) -> int:
        """Number of deliveries in the chain, including the event itself."""
        return sum(event.event == "deliver" for event in self.events)

    @property
    def delay(self) -> float:
        """Simulated time from the origin to the event."""
        return self.events[0].time - self.origin.time

    @property
    def sentence(self) -> str:
        """What the event goes back to, in words."""
        event, origin = self.events[0], self.origin
        if origin.event == "turn":
            began = f"turn {origin.value:g} of {origin.node}"
        else:
            began = f"{origin.event} at {origin.node}, which nothing in the run led to"
        messages = f"{self.messages} message{'' if self.messages == 1 else 's'}"
        said = f"event {event.seq} goes back to {began}: {messages} and {self.delay:.6g} time units before"
        steps = [(one.time - cause.time, one) for one, cause in pairwise(self.events)]
        gap, end = max(steps, key=lambda step: step[0], default=(0.0, event))
        if not gap:
            return f"{said}."
        until = f"{gap:.6g} of them until event {end.seq}, {end.event} at {end.node}"
        if end.event == "deliver" and end.node != "everyone" and (end.value or 0) > 1:
            until += f" (its copy {end.value:g}; coband trace show --message {end.message} has those before)"
        return f"{said}; {until}."

    def told(self, run: StoredRun, how: str) -> str:
        """The sentence, with the names of devices, and another if the turn at the end of the chain has causes.

        Args:
            how: what continues the chain, such as ``--all``.
        """
        said, cause = replace(self, events=tuple(map(run.named, self.events))).sentence, self.origin.cause
        return said if cause is None else f"{said} That turn could begin because of event {cause}; {how} continues."


def why(reader: TraceReader, seq: int, *, whole: bool = False) -> Chain:
    """The causal chain of an event.

    Args:
        whole: continue beyond the first turn of the chain, to the causes of that turn, until an event has no cause.

    Raises:
        StoreError: there is no such event.
    """
    return Chain(tuple(_walk(reader, seq, whole)))


def _walk(reader: TraceReader, seq: int, whole: bool) -> Iterator[Event]:
    event = reader.at(seq)
    yield event
    while event.cause is not None and (whole or event.event != "turn"):
        event = cause_of(reader, event)
        yield event


def cause_of(reader: TraceReader, event: Event) -> Event:
    """The cause of an event that has one.

    Raises:
        StoreError: the trace is damaged: a cause is always earlier than what it leads to.
    """
    if event.cause is None or not 0 <= event.cause < event.seq:
        raise StoreError(
            f"event {event.seq} has the cause {event.cause}, which is not earlier: the trace is damaged "
            "(coband trace verify)."
        )
    return reader.at(event.cause)


@dataclass(frozen=True)
class MessageHistory:
    """The history of a message, from its first send to all its deliveries.

    Attributes:
        origin: the first send; on a graph, other sends forward the message.
        events: all events with the number of the message, or of a send that forwarded it, in order of seq.
    """

    origin: Event
    events: tuple[Event, ...]

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
    return MessageHistory(origin, tuple(map(reader.at, _numbers(reader, origin))))


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


def _numbers(reader: TraceReader, origin: Event) -> Iterator[int]:
    """Yield the numbers of the events of a message."""
    causes, messages = {origin.seq}, {origin.message}
    query = "SELECT seq, event, message, cause, hop FROM events WHERE job = ? AND seq >= ? ORDER BY seq"
    for seq, event, message, cause, hop in reader.job.part.execute(query, (reader.job.id, origin.seq)):
        if event == tr.SEND and hop > 1 and cause in causes:
            messages.add(message)
        if message in messages:
            yield seq
            if event in (tr.SEND, tr.DELIVER, tr.EXPIRE):
                causes.add(seq)
