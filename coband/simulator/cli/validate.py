"""``coband validate``: check scenario files for mistakes."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import SHIPPED, files, settings
from coband.simulator.terminal.output import warn_of_plugins


@click.command(epilog=SHIPPED)
@files("files", required=True)
@settings()
@click.pass_context
def validate(ctx: click.Context, files: tuple[Path, ...], settings: tuple[str, ...]) -> None:
    """Read scenario FILEs and print all their mistakes; exit status 2 if there are any.

    The command also draws the world of the first replication and creates an agent and the server of each algorithm, to
    find errors and warnings that `run` would report. Of data files over 20 MB it reads only the beginning.
    """
    from coband.simulator.experiments.runs.preflight import preflight
    from coband.simulator.experiments.runs.reporting import workload
    from coband.simulator.experiments.scenario.input_problems import ScenarioError
    from coband.simulator.experiments.sweep.study import load_study

    warn_of_plugins()
    wrong = False
    for file in files:
        try:
            study = load_study(file, settings)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            wrong = True
        else:
            found = preflight(file, settings, study)
            for problem in found.problems:
                click.echo(str(problem), err=True)
            for warning in found.warnings:
                click.echo(f"warning: {warning}", err=True)
            wrong = wrong or bool(found.problems)
            if not found.problems:
                click.echo(f"{file}: ok ({'; '.join([workload(study), *found.left_out])})")
    ctx.exit(2 if wrong else 0)
