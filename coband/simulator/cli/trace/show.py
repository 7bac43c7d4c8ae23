"""``coband trace show``: print events, in order."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from coband.simulator.cli.options import JSON_LINES, AtLeast
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened, parse_interval
from coband.simulator.cli.trace.events import print_events


@click.command(epilog=RUNS_HELP)
@RUN
@choice
@click.option("--event", metavar="EVENT", help="Only this event, such as send.")
@click.option("--node", metavar="NODE", help='Only events at this node: "server", "agent 3" or 3.')
@click.option("--kind", metavar="KIND", help="Only messages of this kind.")
@click.option("--message", type=AtLeast(0), help="Only the message with this number.")
@click.option("--time", "interval", metavar="A..B", help="Only events from time A to time B; A or B may be omitted.")
@click.option("--limit", type=AtLeast(0), help="Largest number of events to print.")
@JSON_LINES
def show(
    path: Path,
    label: str | None,
    replication: int | None,
    event: str | None,
    node: str | None,
    kind: str | None,
    message: int | None,
    interval: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print events, in order."""
    start, end = parse_interval(interval)
    with opened(path) as run:
        from coband.simulator.analysis.traces.reading import spelled, traced
        from coband.simulator.experiments.store.store import Filter

        jobs = traced(run.select(label, replication))
        where = Filter(event, spelled(node, jobs), kind, start, end, message)
        print_events(islice(run.events(label, replication, where), limit), run.labels, as_json)
