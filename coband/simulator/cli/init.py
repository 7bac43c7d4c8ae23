"""``coband init``: write a project that runs at once."""

from __future__ import annotations

import importlib.util
import keyword
import re
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
    """Write a project to DIR, with the name of DIR where that can be one: a scenario and what belongs to it.

    DIR is by default the current directory. Files that exist are never replaced.
    """
    from coband.simulator.experiments.store.files import writing_to

    files = {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((TEMPLATES / template).glob("*.*"), key=lambda file: (file.name == "README.md", file))
    }
    name = re.sub(r"\W+", "_", directory.resolve().name, flags=re.ASCII)
    if name.isidentifier() and not (template == "own-algorithm" and _is_taken(name)):
        files = _named(files, name)
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


def _is_taken(name: str) -> bool:
    """Whether no plugin can have this name."""
    from coband.simulator.experiments.registry.registry import ALGORITHMS

    return keyword.iskeyword(name) or name in ALGORITHMS or importlib.util.find_spec(name) is not None


def _named(files: dict[str, str], name: str) -> dict[str, str]:
    """The files with another name in the place of the template's, in names of files too."""
    old = files["scenario.yaml"].split("\nname: ", 1)[1].split("\n", 1)[0]
    if f"{old}.py" not in files:
        files["scenario.yaml"] = files["scenario.yaml"].replace(f"\nname: {old}\n", f"\nname: '{name}'\n", 1)
        files["README.md"] = files["README.md"].replace(f"/{old}", f"/{name}")
        return files
    for one, other in ((old, name), *((each(old), each(name)) for each in (_class, _dashed))):
        files = {file.replace(one, other): text.replace(one, other) for file, text in files.items()}
    return files


def _class(name: str) -> str:
    return name.title().replace("_", "")


def _dashed(name: str) -> str:
    return name.replace("_", "-")
