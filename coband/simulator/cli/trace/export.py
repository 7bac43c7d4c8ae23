"""``coband trace export``: write events in formats of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.analysis.traces import FORMATS
from coband.simulator.cli.options import FORCE, out_file
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened


@click.command(epilog=RUNS_HELP)
@RUN
@choice
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Format of the output.")
@out_file("Output file, compressed if it ends with .gz; by default standard output (not for parquet).")
@FORCE
def export(path: Path, label: str | None, replication: int | None, form: str, out: Path | None, force: bool) -> None:
    """Write the events of a run.

    perfetto: open the file (also FILE.json.gz) at https://ui.perfetto.dev.
    jsonl, csv, parquet: one row per event, with the columns of the view `trace` (without ages).
    """
    with opened(path) as run:
        from coband.simulator.analysis.traces.exporting import export as write

        write(run, run.select(label, replication), form, out, replace=force)
    if out is not None:
        click.echo(str(out))
