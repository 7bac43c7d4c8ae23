"""``coband show``: the results of a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli import results
from coband.simulator.cli.options import JSON
from coband.simulator.cli.runs import RUN, RUNS_HELP
from coband.simulator.cli.trace.common import opened
from coband.simulator.terminal import tables

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import StoredRun


@click.command(epilog=RUNS_HELP)
@RUN
@JSON
def show(path: Path, as_json: bool) -> None:
    """Print the results of a run again: what `coband run`, `sweep` or `frontier` printed at its end.

    Of a run that goes on, or that was ended, what is finished is shown.
    """
    with opened(path) as run:
        from coband.simulator.experiments.store.variants import is_sweep, summary

        found = summary(run)
        if as_json:
            tables.show_json(found)
        elif "frontier" in found:
            from coband.simulator.cli.frontier import show_search

            show_search(found["frontier"], path, {})
        elif is_sweep(run):
            query = "SELECT count(DISTINCT text) FROM parameters WHERE key = 'agents.count'"
            results.show_sweep(found, path, several_sizes=run.connection.execute(query).fetchone()[0] > 1)
        else:
            results.show_run(found, run.metrics, path)
        _say_state(run)


def _say_state(run: StoredRun) -> None:
    """Say on standard error what is missing."""
    missing = [job for job in run.jobs if job.record is None]
    if missing:
        broken = sum(job.status in ("violated", "failed") for job in missing)
        status = run.manifest.get("status", "unknown")
        state = "running, or killed" if status == "running" else status
        click.echo(
            f"{state}: {len(run.jobs) - len(missing):,} of {len(run.jobs):,} jobs have finished, {broken:,} broke off",
            err=True,
        )
