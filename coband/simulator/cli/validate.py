"""``coband validate``: check scenario files for mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import click

from coband.simulator.cli.options import SHIPPED, BadInput, files, settings
from coband.simulator.terminal.output import warn_of_plugins


@click.command(epilog=SHIPPED)
@files("files", required=False)
@settings()
@click.option("--schema", is_flag=True, help="Print the JSON Schema of scenario files, installed plugins included.")
@click.pass_context
def validate(ctx: click.Context, files: tuple[Path, ...], settings: tuple[str, ...], schema: bool) -> None:
    """Read scenario FILEs and print all their mistakes; exit status 2 if there are any.

    The command also draws the world of the first replication and creates an agent and the server of each algorithm, to
    find errors and warnings that `run` would report. Of data files over 20 MB it reads only the beginning.

    Editors with a YAML language server check and complete scenarios with what --schema prints (draft 2020-12), for
    instance by a first line "# yaml-language-server: $schema=FILE".
    """
    if schema:
        if files or settings:
            raise BadInput("--schema is of all scenarios: it goes without FILE and --set.")
        _print_schema()
        return
    if not files:
        raise BadInput("give a FILE to validate, or --schema.")
    from coband.simulator.experiments.sweep.study import load_study
    from coband.simulator.scenario_errors import ScenarioError

    warn_of_plugins()
    wrong = False
    for file in files:
        try:
            study = load_study(file, settings)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            wrong = True
        else:
            from coband.simulator.experiments.runs.preflight import preflight  # mistakes do without
            from coband.simulator.experiments.runs.reporting import workload

            found = preflight(file, settings, study)
            for said in (*found.problems, *(f"warning: {warning}" for warning in found.warnings)):
                click.echo(str(said), err=True)
            wrong = wrong or bool(found.problems)
            if not found.problems:
                click.echo(f"{file}: ok ({'; '.join([workload(study), *found.left_out])})")
    ctx.exit(2 if wrong else 0)


def _print_schema() -> None:
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.experiments.scenario.document import json_schema

    warn_of_plugins()
    click.echo(json.dumps(json_schema(Registry.installed()), indent=2, ensure_ascii=False))
