"""``coband validate``: look for mistakes in scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import SHIPPED
from coband.simulator.cli.plugins import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.experiments.sweep.study import Sweep


@click.command(epilog=SHIPPED)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value; repeatable.")
@click.pass_context
def validate(ctx: click.Context, files: tuple[Path, ...], settings: tuple[str, ...]) -> None:
    """Read scenario FILEs and print everything that is wrong with them.

    Draws the world of the first replication and makes an agent and the server of each algorithm, which finds what `run`
    would refuse; of data files over 20 MB it reads the beginning.

    Ends with status 2 when a file has a mistake.
    """
    from coband.simulator.experiments.runs.preflight import preflight
    from coband.simulator.experiments.scenario.scenario import ScenarioError
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
            wrong = wrong or bool(found.problems)
            if not found.problems:
                click.echo(f"{file}: ok ({'; '.join([_size(study), *found.left_out])})")
    ctx.exit(2 if wrong else 0)


def _size(study: Sweep) -> str:
    """How much there is to run; a grid has fewer variants than algorithms x points where an axis is of some alone."""
    sizes = [_count(len(study.entries), "algorithm"), _count(study.replications, "replication")]
    if study.points > 1:
        sizes[0] = f"{_count(study.points, 'point')}, {_count(len(study.variants), 'variant')} of {sizes[0]}"
    if study.tuning is not None:
        sizes[1] = f"{_count(study.tuning.replications, 'replication')} for tuning, then the best x {sizes[1]}"
    if study.until is not None:
        sizes[1] += f" to {study.until.max_replications}"
    return " x ".join(sizes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
