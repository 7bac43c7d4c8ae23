"""``coband run``: run a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import progress, results, tables
from coband.simulator.cli.options import JSON, SHIPPED, Request, out_directory, shared

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.reporting import Report
    from coband.simulator.experiments.runs.study import Study


@click.command(epilog=SHIPPED)
@shared
@out_directory("Run directory, new or empty; by default runs/<name>-<number>.")
@JSON
@click.pass_context
def run(context: click.Context, /, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the scenario in FILE and store what happens in a run directory.

    Each algorithm runs on each replication; all of them meet the same arms and the same noise. Where the scenario says
    `until:`, replications are added until the mean is known well enough. Ctrl-C keeps what is finished.
    """
    request = Request(**options)
    study = request.study()
    progress.announce(study)
    with progress.Bar(study.name) as bar:
        report = request.execute(study, out, bar)
    progress.warn(report)
    if as_json:
        tables.show_json(report.object)
        click.echo(f"run directory: {report.directory}", err=True)
    else:
        show(report, study)
    context.exit(progress.exit_code(report))


def show(report: Report, study: Study) -> None:
    """Print the results of a study, and where they are."""
    metrics = {name: one for variant in study.variants for name, one in variant.scenario.metrics.items()}
    results.show_run(report.object, metrics, report.directory)
