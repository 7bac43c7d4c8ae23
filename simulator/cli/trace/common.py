"""Shared by the subcommands of ``coband trace``: opening a run, selecting jobs, and printing events."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import BadInput

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import Event, StoredRun

Command = Callable[..., Any]

LABEL = click.option("--label", metavar="LABEL", help="Only this label.")
REPLICATION = click.option(
    "--replication", type=click.IntRange(min=0), metavar="N", help="Only this replication, counted from 0."
)
RUN = click.argument("path", metavar="RUN", type=click.Path(path_type=Path))
LAYOUT = "{:>8}  {:>12}  {:<10}  {:<10}  {:<10}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}  {:>12}  {}"
HEADER = (
    "seq",
    "time",
    "event",
    "node",
    "peer",
    "kind",
    "message",
    "cause",
    "scalars",
    "round",
    "version",
    "value",
    "reason",
)


def choice(command: Command) -> Command:
    """Add the options that select jobs."""
    return LABEL(REPLICATION(command))


@contextmanager
def opened(path: Path) -> Iterator[StoredRun]:
    """Open a run for reading; an error in the run or in the request ends the command with a message."""
    from coband.simulator.experiments.store import store

    try:
        with store.open_run(path) as run:
            yield run
    except store.StoreError as error:
        raise BadInput(str(error)) from error


def print_events(events: Iterable[Event], as_json: bool) -> None:
    """Print events as JSON lines, or as a table with a title for each job."""
    current = None
    for event in events:
        if as_json:
            print_json(event._asdict())
            continue
        job = event.label, event.replication
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            print(LAYOUT.format(*HEADER).rstrip())
        print(LAYOUT.format(*(cell(getattr(event, name)) for name in HEADER)).rstrip())
        if event.detail:
            print(f"          {event.detail}")


def print_json(item: Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(item, allow_nan=False))


def cell(value: Any) -> str:
    """A value in a table; "." for None."""
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def spell_node(text: str | None) -> str | None:
    """The store's name of a node that the user names as "server", "agent 3" or "3"."""
    if text is None or text in ("server", "everyone"):
        return text
    match = re.fullmatch(r"(?:agent\s*)?(\d+)", text.strip())
    if match is None:
        raise BadInput(f'--node {text!r} is no node; give "server", "agent 3" or 3.')
    return f"agent {int(match[1])}"


def parse_interval(text: str | None) -> tuple[float | None, float | None]:
    """``A..B``, ``A..`` or ``..B`` as (start, end)."""
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    try:
        if dots and (first.strip() or last.strip()):
            return (float(first) if first.strip() else None), (float(last) if last.strip() else None)
    except ValueError:
        pass
    raise BadInput(f"--time {text!r} is no interval of simulated time; give A..B, A.. or ..B, such as 10..20.")
