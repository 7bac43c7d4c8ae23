"""Printing events, a line for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Event

LAYOUT = "{:>8}  {:>12}  {:<10}  {:<10}  {:<10}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}"
HEADER = ("seq", "time", "event", "node", "peer", "kind", "message", "cause", "scalars", "round", "version")
MEANING = "  {}"


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
    for event in events:
        if as_json:
            print_json(event._asdict())
            continue
        job = event.label, event.replication
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            print(header())
        print(row(event, algorithms))
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


def header() -> str:
    """The titles of columns."""
    return (LAYOUT + MEANING).format(*HEADER, "meaning")


def row(event: Event, algorithms: Mapping[str, str]) -> str:
    """An event as one line."""
    cells = (cell(getattr(event, name)) for name in HEADER)
    return (LAYOUT + MEANING).format(*cells, _meaning(event, algorithms)).rstrip()


def _meaning(event: Event, algorithms: Mapping[str, str]) -> str:
    from coband.simulator.analysis.traces.causes import meaning

    return meaning(event, algorithms.get(event.label, ""))
