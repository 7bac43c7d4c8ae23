"""``coband trace hash``: fingerprints."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import JSON_LINES
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened, print_json


@click.command("hash", epilog=RUNS_HELP)
@RUN
@choice
@JSON_LINES
def hash_(path: Path, label: str | None, replication: int | None, as_json: bool) -> None:
    """Print label, replication and fingerprint of each job, tab-separated."""
    with opened(path) as run:
        for job in run.select(label, replication):
            found = None if job.record is None else job.record["fingerprint"]
            if as_json:
                print_json(
                    {"label": job.label, "replication": job.replication, "status": job.status, "fingerprint": found}
                )
            else:
                click.echo(f"{job.label}\t{job.replication}\t{found or job.status}")
