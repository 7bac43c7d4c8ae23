"""Printing events, a line for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Event, StoredRun

LAYOUT = "{:>8}  {:>12}  {:<10}  {:<{width}}  {:<{width}}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}"
HEADER = ("seq", "time", "event", "node", "peer", "kind", "message", "cause", "scalars", "round", "version")
MEANING = "  {}"
NODE = 10


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
    algorithms = run.labels
    for event in events:
        if as_json:
            print_json(event._asdict())
            continue
        event, job = run.named(event), (event.label, event.replication)
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            print(header(width))
        print(row(event, algorithms, width))
        if extra := content(event):
            print(f"          {extra}")


def print_pair(
    names: tuple[str, str], events: tuple[Event | None, Event | None], algorithms: Mapping[str, str]
) -> None:
    """Print the two events at which traces part, under the names of the traces."""
    width = max(map(len, names))
    print(f"{'':{width}}  {header()}")
    for name, event in zip(names, events, strict=True):
        text = "       -  nothing in its place"
        if event is not None:
            text = row(event, algorithms)
        print(f"{name:{width}}  {text}")


def header(width: int = NODE) -> str:
    """The titles of columns; nodes take so many characters."""
    return (LAYOUT + MEANING).format(*HEADER, "meaning", width=width)


def row(event: Event, algorithms: Mapping[str, str], width: int = NODE) -> str:
    """An event as one line."""
    cells = (cell(getattr(event, name)) for name in HEADER)
    return (LAYOUT + MEANING).format(*cells, _meaning(event, algorithms), width=width).rstrip()


def _meaning(event: Event, algorithms: Mapping[str, str]) -> str:
    from coband.simulator.analysis.traces.causes import meaning

    return meaning(event, algorithms.get(event.label, ""))
