"""``coband trace stats``: totals over a trace."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import JSON_LINES, BadInput
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened, print_json
from coband.simulator.terminal import tables


@click.command(epilog=RUNS_HELP)
@RUN
@choice
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    default="event",
    help="Columns to group by: event, kind, node, round, or several of them.",
)
@JSON_LINES
def stats(path: Path, label: str | None, replication: int | None, by: str, as_json: bool) -> None:
    """Count events, messages and scalars of each label, summed over replications."""
    from coband.simulator.analysis.traces import reading

    columns = [word.strip() for word in by.split(",")]
    for word in columns:
        if word not in reading.GROUPS:
            raise BadInput(f"--by {word!r} is not one of {', '.join(map(repr, reading.GROUPS))}.")
    with opened(path) as run:
        from coband.simulator.analysis.traces.reading import traced

        jobs = traced(run.select(label, replication))
        found = reading.tally(jobs, *columns)
        broken = sum(job.status not in ("finished", "waiting") for job in jobs)
    if broken:
        click.echo(f"note: {broken} of {len(jobs)} jobs did not finish; their events until then count", err=True)
    if as_json:
        for tally in found:
            counts = {name: getattr(tally, name) for name in reading.COUNTS}
            print_json({"label": tally.label, **dict(zip(columns, tally.groups, strict=True)), **counts})
        return
    rows = [
        [
            tally.label,
            *("-" if part is None else str(part) for part in tally.groups),
            *(f"{getattr(tally, name):,}" for name in reading.COUNTS),
        ]
        for tally in found
    ]
    tables.show(["label", *columns, *reading.COUNTS], rows, left=1 + len(columns))
