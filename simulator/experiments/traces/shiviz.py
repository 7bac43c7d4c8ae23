"""A trace as a log with vector clocks, for ShiViz (https://bestchai.bitbucket.io/shiviz).

The first line is the expression that takes the log apart, the second, empty one says that it holds one execution.
Then come two lines an event: what happened, and host and vector clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from coband.simulator.experiments.store.store import Event, StoredJob
from coband.simulator.experiments.traces.reading import TraceReader

EXPRESSION = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
Clock = dict[str, int]


def write(job: StoredJob, out: Callable[[str], object]) -> None:
    """Write the trace of one job."""
    out(f"{EXPRESSION}\n\n")
    reader = TraceReader(job)
    for event, clock in clocks(map(reader.spell, reader.raw())):
        out(f"{_sentence(event)}\n{host(event)} {json.dumps(clock)}\n")


def clocks(events: Iterator[Event]) -> Iterator[tuple[Event, Clock]]:
    """Each event with its vector clock: of every host, how many of its events led to this one, itself included.

    A delivery takes in the clock of its send. Sends are remembered until all their copies have arrived.
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
            _arrive(sends, event)
        clock[name] = clock.get(name, 0) + 1
        if event.event == "send" and event.value:
            sends[event.seq] = dict(clock), int(event.value)
        yield event, clock


def _arrive(sends: dict[int, tuple[Clock, int]], event: Event) -> None:
    assert event.cause is not None
    clock, pending = sends[event.cause]
    pending -= int(event.value or 0) if event.node == "everyone" else 1
    if pending > 0 or event.hop:  # what is passed on may be needed again
        sends[event.cause] = clock, pending
    else:
        del sends[event.cause]


def host(event: Event) -> str:
    """The name of the node, in one word."""
    return (event.node or "nobody").replace(" ", "_")


def _sentence(event: Event) -> str:
    """One line about an event; numbers that say nothing are left out."""
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
