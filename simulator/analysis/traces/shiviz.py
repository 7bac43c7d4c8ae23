"""Export to a log with vector clocks, for ShiViz (https://bestchai.bitbucket.io/shiviz).

The first line is the regular expression that parses the log. The second line is empty, which means that the log has
one execution. Then each event has two lines: its description, and its host with the vector clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.experiments.store.store import Event, StoredJob

EXPRESSION = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
Clock = dict[str, int]


def write(job: StoredJob, out: Callable[[str], object]) -> None:
    """Write the trace of one job."""
    out(f"{EXPRESSION}\n\n")
    reader = TraceReader(job)
    for event, clock in clocks(map(reader.decode, reader.raw())):
        out(f"{_sentence(event)}\n{host(event)} {json.dumps(clock)}\n")


def clocks(events: Iterator[Event]) -> Iterator[tuple[Event, Clock]]:
    """Yield each event with its vector clock.

    The clock gives for every host the number of its events that precede this one causally, including this one. A
    delivery merges the clock of its send. Sends are stored until all their copies have arrived.
    """
    hosts: dict[str, Clock] = {}
    sends: dict[int, tuple[Clock, int]] = {}
    for event in events:
        name = host(event)
        clock = hosts.setdefault(name, {})
        if event.cause in sends and event.event in ("deliver", "send"):
            for other, count in sends[event.cause][0].items():
                clock[other] = max(count, clock.get(other, 0))
        if event.event == "deliver" and event.cause in sends:
            _receive(sends, event)
        clock[name] = clock.get(name, 0) + 1
        if event.event == "send" and event.value:
            sends[event.seq] = dict(clock), int(event.value)
        yield event, clock


def _receive(sends: dict[int, tuple[Clock, int]], event: Event) -> None:
    assert event.cause is not None
    clock, pending = sends[event.cause]
    pending -= int(event.value or 0) if event.node == "everyone" else 1
    if pending > 0 or event.hop:  # a receiver may forward the message, which needs the clock again
        sends[event.cause] = clock, pending
    else:
        del sends[event.cause]


def host(event: Event) -> str:
    """The name of the node without blanks."""
    return (event.node or "nobody").replace(" ", "_")


def _sentence(event: Event) -> str:
    words = [f"{event.time:g}", event.event]
    if event.kind is not None:
        words.append(event.kind)
    if event.peer is not None:
        words.append(f"{'from' if event.event == 'deliver' else 'to'} {event.peer}")
    if event.scalars:
        words.append(f"({event.scalars} scalars)")
    if event.reason is not None:
        words.append(f"[{event.reason}]")
    return " ".join([*words, f"#{event.seq}"])
