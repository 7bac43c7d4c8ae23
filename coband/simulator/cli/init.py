"""``coband init``: write a project that runs at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from coband.simulator.cli.options import FOLDER, BadInput

TEMPLATES = Path(__file__).parents[1] / "templates"
ABOUT = {
    "comparison": "three algorithms on a synthetic problem",
    "own-algorithm": "an algorithm of your own: a plugin with its test",
    "own-data": "your own table of arms and rewards",
    "paper-study": "many replications, and claims as expectations",
    "sweep": "a grid of parameters and networks",
}


@click.command()
@click.argument("directory", metavar="[DIR]", type=FOLDER, default=Path("."))
@click.option(
    "--template",
    type=click.Choice(list(ABOUT)),
    default="comparison",
    help=f"What it is: {'; '.join(f'{name}: {about}' for name, about in ABOUT.items())}.",
)
def init(directory: Path, template: str) -> None:
    """Write a project to DIR: a scenario and what belongs to it.

    DIR is by default the current directory. Files that exist are never replaced.
    """
    from coband.simulator.experiments.store.files import writing_to

    files = {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((TEMPLATES / template).glob("*.*"), key=lambda file: (file.name == "README.md", file))
    }
    there = [file for file in files if (directory / file).exists()]
    if there:
        raise BadInput(
            f"{directory / there[0]} exists; name another directory, or move the file away. Nothing was written."
        )
    for file, text in files.items():
        with writing_to(directory / file, "Name another directory."):
            directory.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text, encoding="utf-8")
    click.echo(f"{directory}: {', '.join(files)}")
    click.echo("next:")
    if directory != Path("."):
        click.echo(f"    cd {shlex.quote(str(directory))}")
    click.echo(files["README.md"].split("\n\n")[1].rstrip("\n"))
