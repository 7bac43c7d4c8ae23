"""``coband validate``: look for mistakes in scenario files."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.plugins import warn_of_plugins


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value; repeatable.")
@click.pass_context
def validate(ctx: click.Context, files: tuple[Path, ...], settings: tuple[str, ...]) -> None:
    """Read scenario FILEs and print everything that is wrong with them.

    Ends with status 2 when a file has a mistake.
    """
    from simulator.experiments.scenario import ScenarioError, load

    warn_of_plugins()
    wrong = False
    for file in files:
        try:
            scenario = load(file, settings)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            wrong = True
        else:
            sizes = [_count(len(scenario.algorithms), "algorithm"), _count(scenario.replications, "replication")]
            click.echo(f"{file}: ok ({' x '.join(sizes)})")
    ctx.exit(2 if wrong else 0)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
