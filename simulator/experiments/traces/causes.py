"""Why an event happened: from one cause to the next, back to the turn that set it off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from coband.simulator.experiments.store.store import Event
from coband.simulator.experiments.traces.reading import TraceReader


@dataclass(frozen=True)
class Chain:
    """An event and what led to it.

    Attributes:
        events: nearest first; each is caused by the next one.
    """

    events: tuple[Event, ...]

    @property
    def origin(self) -> Event:
        """Where the chain ends: a turn, or an event that nothing in the run led to."""
        return self.events[-1]

    @property
    def messages(self) -> int:
        """Deliveries on the way, the event itself included."""
        return sum(event.event == "deliver" for event in self.events)

    @property
    def delay(self) -> float:
        """Simulated time from the origin to the event."""
        return self.events[0].time - self.origin.time


def why(reader: TraceReader, seq: int, *, whole: bool = False) -> Chain:
    """The causal chain of an event.

    Args:
        whole: do not stop at the turn that set it off, but go on to what let the agent take that turn, as far back as
            there are causes.

    Raises:
        StoreError: there is no such event.
    """
    return Chain(tuple(_walk(reader, seq, whole)))


def _walk(reader: TraceReader, seq: int, whole: bool) -> Iterator[Event]:
    event = reader.at(seq)
    yield event
    while event.cause is not None and (whole or event.event != "turn"):
        event = reader.at(event.cause)
        yield event


def waits(chain: Chain) -> list[float]:
    """Simulated time between each event of the chain and its cause, nearest first."""
    return [later.time - earlier.time for later, earlier in pairwise(chain.events)]
