"""Printing events: a line for each on a wide terminal or in a pipe, a few short lines for each on a narrow terminal."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Event

LAYOUT = "{:>8}  {:>12}  {:<10}  {:<10}  {:<10}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}"
HEADER = ("seq", "time", "event", "node", "peer", "kind", "message", "cause", "scalars", "round", "version")
MEANING = "  {}"
WIDE = 160
"""Terminals with so many columns have room for a line for each event."""
INDENT = 22


def print_json(item: Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(item, allow_nan=False))


def cell(value: Any) -> str:
    """A value in a table; "." for None."""
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_events(events: Iterable[Event], algorithms: Mapping[str, str], as_json: bool) -> None:
    """Print events as JSON lines, or with a title for each job.

    Args:
        events: in order of jobs.
        algorithms: name of the algorithm of each label.
        as_json: whether they are printed as JSON.
    """
    from coband.simulator.analysis.traces.causes import content

    current = None
    narrow = is_narrow()
    for event in events:
        if as_json:
            print_json(event._asdict())
            continue
        job = event.label, event.replication
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            if not narrow:
                print(header())
        print("\n".join(block(event, algorithms) if narrow else [row(event, algorithms)]))
        if extra := content(event):
            print(f"          {extra}")


def print_pair(
    names: tuple[str, str], events: tuple[Event | None, Event | None], algorithms: Mapping[str, str]
) -> None:
    """Print the two events at which traces part, under the names of the traces."""
    width, narrow = max(map(len, names)), is_narrow()
    if not narrow:
        print(f"{'':{width}}  {header()}")
    for name, event in zip(names, events, strict=True):
        text = "       -  nothing in its place"
        if event is not None:
            text = "\n   ".join(block(event, algorithms)) if narrow else row(event, algorithms)
        print(f"{name:{width}}  {text}")


def is_narrow() -> bool:
    """Whether standard output is a terminal without room for lines of events."""
    return sys.stdout.isatty() and shutil.get_terminal_size().columns < WIDE


def header() -> str:
    """The titles of columns."""
    return (LAYOUT + MEANING).format(*HEADER, "meaning")


def row(event: Event, algorithms: Mapping[str, str]) -> str:
    """An event as one line."""
    cells = (cell(getattr(event, name)) for name in HEADER)
    return (LAYOUT + MEANING).format(*cells, _meaning(event, algorithms)).rstrip()


def block(event: Event, algorithms: Mapping[str, str]) -> list[str]:
    """An event as lines for a narrow terminal, everything with its name."""
    width = shutil.get_terminal_size().columns
    text = "; ".join(_parts(event, algorithms))
    start = f"{event.seq:>8}  {cell(event.time):>{INDENT - 12}}  "
    return textwrap.wrap(
        text,
        max(width, 2 * INDENT),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _parts(event: Event, algorithms: Mapping[str, str]) -> Iterator[str]:
    yield f"{event.event} at {event.node}" + (f", peer {event.peer}" if event.peer else "")
    if event.message is not None:
        yield f"message {event.message}, {event.kind}, {event.scalars} scalar{'' if event.scalars == 1 else 's'}"
    elif event.kind:
        yield event.kind
    if found := _meaning(event, algorithms):
        yield found
    numbers = {"round": event.round, "version": event.version}
    if known := [f"{name} {value}" for name, value in numbers.items() if value is not None]:
        yield ", ".join(known)
    if event.cause is not None:
        yield f"cause {event.cause}"


def _meaning(event: Event, algorithms: Mapping[str, str]) -> str:
    from coband.simulator.analysis.traces.causes import meaning

    return meaning(event, algorithms.get(event.label, ""))
