"""Printing events: a line for each on a wide terminal or in a pipe, a few short lines for each on a narrow terminal."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Event, StoredRun

LAYOUT = "{:>8}  {:>12}  {:<10}  {:<{width}}  {:<{width}}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}"
HEADER = ("seq", "time", "event", "node", "peer", "kind", "message", "cause", "scalars", "round", "version")
MEANING = "  {}"
WIDE = 160
"""Terminals with so many columns have room for a line for each event."""
NODE, INDENT = 10, 22


def print_json(item: Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(item, allow_nan=False))


def cell(value: Any) -> str:
    """A value in a table; "." for None."""
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_events(events: Iterable[Event], run: StoredRun, as_json: bool) -> None:
    """Print events of a run as JSON lines, or with a title for each job and the names of devices.

    Args:
        events: in order of jobs.
        as_json: whether they are printed as JSON.
    """
    from coband.simulator.analysis.traces.causes import content

    current, width = None, NODE if as_json else max(NODE, *map(len, run.names.values()), 0)
    narrow, algorithms = is_narrow(), run.labels
    for event in events:
        if as_json:
            print_json(event._asdict())
            continue
        event, job = run.named(event), (event.label, event.replication)
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            if not narrow:
                print(header(width))
        print("\n".join(block(event, algorithms) if narrow else [row(event, algorithms, width)]))
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


def header(width: int = NODE) -> str:
    """The titles of columns; nodes take so many characters."""
    return (LAYOUT + MEANING).format(*HEADER, "meaning", width=width)


def row(event: Event, algorithms: Mapping[str, str], width: int = NODE) -> str:
    """An event as one line."""
    cells = (cell(getattr(event, name)) for name in HEADER)
    return (LAYOUT + MEANING).format(*cells, _meaning(event, algorithms), width=width).rstrip()


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
