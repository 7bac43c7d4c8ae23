"""The causal chain of an event: from each event to its cause, back to the turn that started the chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.experiments.store.store import Event, StoreError


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
        return f"event {event.seq} goes back to {began}: {messages} and {self.delay:.6g} time units before."

    def further(self, how: str) -> str:
        """A sentence on the causes of the turn at the end of the chain, if it has any.

        Args:
            how: what continues the chain, such as ``--all``.
        """
        cause = self.origin.cause
        return "" if cause is None else f" That turn could begin because of event {cause}; {how} continues."


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
