"""``coband trace``: look at the events of a stored run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli import tables
from simulator.cli.options import BadInput

if TYPE_CHECKING:
    from simulator.experiments.store import Event, StoredRun
    from simulator.experiments.verification import Verdict

RUN = click.argument("path", metavar="RUN", type=click.Path(path_type=Path))
LAYOUT = "{:>8}  {:>12}  {:<10}  {:<10}  {:<10}  {:<16}  {:>8}  {:>8}  {:>8}  {:>6}  {:>7}  {:>12}  {}"
HEADER = ("seq", "time", "event", "node", "peer", "kind", "message", "cause", "scalars", "round", "version", "value",
          "reason")  # fmt: skip


def choice(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that choose jobs."""
    command = click.option("--replication", type=click.IntRange(min=0), help="Only this replication.")(command)
    return click.option("--label", help="Only this label.")(command)


@contextmanager
def opened(path: Path) -> Iterator[StoredRun]:
    """A run for reading; what is wrong with it ends the command."""
    from simulator.experiments import store

    try:
        with store.open_run(path) as run:
            yield run
    except store.StoreError as error:
        raise BadInput(str(error)) from error


@click.group()
def trace() -> None:
    """Look at the events of a run; RUN is a run directory or its run.sqlite."""


@trace.command()
@RUN
@choice
@click.option("--event", help="Only this event, such as send.")
@click.option("--node", help='Only events at this node: "server", "agent 3" or 3.')
@click.option("--kind", help="Only messages of this kind.")
@click.option("--time", "interval", metavar="A..B", help="Only from time A to time B; either may be left out.")
@click.option("--limit", type=click.IntRange(min=0), help="Stop after so many events.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def show(path: Path, label: str | None, replication: int | None, event: str | None, node: str | None, kind: str | None,
         interval: str | None, limit: int | None, as_json: bool) -> None:  # fmt: skip
    """Print events, in order."""
    start, end = parse_interval(interval)
    with opened(path) as run:
        from simulator.experiments.store import Filter

        events = run.events(label, replication, Filter(event, spell_node(node), kind, start, end))
        chosen = islice(events, limit)
        if as_json:
            for item in chosen:
                print(json.dumps(item._asdict(), allow_nan=False))
        else:
            _print(chosen)


def _print(events: Iterator[Event]) -> None:
    current = None
    for event in events:
        job = event.label, event.replication
        if job != current:
            current = job
            print(f"{event.label}, replication {event.replication}")
            print(LAYOUT.format(*HEADER).rstrip())
        print(LAYOUT.format(*(_cell(event, name) for name in HEADER)).rstrip())
        if event.detail:
            print(f"          {event.detail}")


def _cell(event: Event, column: str) -> str:
    value = getattr(event, column)
    if value is None:
        return "."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def spell_node(text: str | None) -> str | None:
    """A node as the store spells it."""
    if text is None or text == "server":
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


@trace.command()
@RUN
@choice
@click.option("--by", type=click.Choice(["event", "kind", "node", "round"]), default="event", help="What to group by.")
def stats(path: Path, label: str | None, replication: int | None, by: str) -> None:
    """Count events, messages and scalars."""
    with opened(path) as run:
        from simulator.experiments import tallies

        rows = [
            [tally.label, "-" if tally.group is None else str(tally.group), *(f"{count:,}" for count in tally[2:])]
            for tally in tallies.tally(run.select(label, replication), by)
        ]
        tables.show(["label", by, "events", "sends", "messages", "scalars", "deliveries"], rows, left=2)


@trace.command()
@RUN
@choice
@click.pass_context
def verify(context: click.Context, /, path: Path, label: str | None, replication: int | None) -> None:
    """Check that a trace is whole and agrees with fingerprint and ledger; status 1 when it does not."""
    good = True
    with opened(path) as run:
        from simulator.experiments import verification

        for verdict in verification.verify(run, run.select(label, replication)):
            good = good and not verdict.differences
            click.echo(_sentence(verdict))
    context.exit(0 if good else 1)


def _sentence(verdict: Verdict) -> str:
    job = verdict.job
    head = f"{job.label}, replication {job.replication}: "
    if verdict.differences:
        return "\n".join(f"{head}{difference}" for difference in verdict.differences)
    if not verdict.events:
        return head + (verdict.remark or "no events")
    finding = f"consistent as far as it goes; {verdict.remark}" if verdict.remark else "ok"
    return f"{head}{verdict.events:,} events, {finding}"


@trace.command("hash")
@RUN
@choice
def hash_(path: Path, label: str | None, replication: int | None) -> None:
    """Print label, replication and fingerprint of each job, apart by tabs."""
    with opened(path) as run:
        for job in run.select(label, replication):
            fingerprint = job.status if job.record is None else job.record["fingerprint"]
            click.echo(f"{job.label}\t{job.replication}\t{fingerprint}")
