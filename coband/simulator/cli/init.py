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
    "own-linear": "a linear algorithm of your own, which fits most scenarios of the suite",
    "own-data": "your own table of arms and rewards",
    "paper-study": "many replications, and claims as expectations",
    "sweep": "a grid of parameters and networks",
}
PLUGINS = ("own-algorithm", "own-linear")
LOCK = "counts.lock.json"
WORKFLOW = """name: coband
on: [push, pull_request]
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - run: pip install 'coband @ git+https://github.com/coband/coband' pytest
{steps}"""


@click.command()
@click.argument("directory", metavar="[DIR]", type=FOLDER, default=Path("."))
@click.option(
    "--template",
    type=click.Choice(list(ABOUT)),
    default="comparison",
    help=f"What it is: {'; '.join(f'{name}: {about}' for name, about in ABOUT.items())}.",
)
@click.option("--name", metavar="NAME", help="Name of the scenario, or of the algorithm; by default that of DIR.")
def init(directory: Path, template: str, name: str | None) -> None:
    """Write a project to DIR: a scenario, what belongs to it, its communication counts and a CI workflow.

    DIR is by default the current directory. Files that exist are never replaced.
    """
    from coband.simulator.experiments.store.files import writing_to

    files = _files(template)
    wanted = re.sub(r"\W+", "_", directory.resolve().name, flags=re.ASCII) if name is None else name
    why = "" if re.fullmatch("[A-Za-z][A-Za-z0-9_]*", wanted) else "a name has letters, digits and _, from a letter on"
    why = why or (_taken(wanted, files) if template in PLUGINS else "")
    if why and name is not None:
        raise BadInput(f"--name {name}: {why}; choose another name.")
    files = files if why else _named(files, wanted)
    there = [file for file in (*files, LOCK) if (directory / file).exists()]
    if there:
        raise BadInput(
            f"{directory / there[0]} exists; name another directory, or move the file away. Nothing was written."
        )
    for file, text in files.items():
        with writing_to(directory / file, "Name another directory."):
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text, encoding="utf-8")
    if template not in PLUGINS:
        _lock(directory)
    click.echo(f"{directory}: {', '.join([*files, *([] if template in PLUGINS else [LOCK])])}")
    click.echo("next:")
    commands = files["README.md"].split("\n\n")[1].splitlines()
    for command in (*([] if directory == Path(".") else [f"    cd {shlex.quote(str(directory))}"]), *commands):
        click.echo(command)


def _taken(name: str, files: dict[str, str]) -> str:
    """Why no plugin of these files can have this name; empty if one can."""
    from coband.simulator.experiments.registry.registry import ALGORITHMS

    if keyword.iskeyword(name):
        return "that is a word of Python itself"
    if name in ALGORITHMS:
        return "an algorithm of that name is installed"
    if importlib.util.find_spec(name):
        return "a module of that name is installed"
    words = {word for file, text in files.items() if file.endswith(".py") for word in re.findall(r"\w+", text)}
    return f"its class would be {_class(name)}, which the plugin imports" if _class(name) in words else ""


def _class(name: str) -> str:
    """The class of a plugin of that name."""
    return name.title().replace("_", "")


def _named(files: dict[str, str], name: str) -> dict[str, str]:
    """The files with another name in the place of the template's, in names of files too."""
    from coband.simulator.experiments.scenario.overrides import to_yaml

    scenario = files["scenario.yaml"]
    old = scenario.split("\nname: ", 1)[1].split("\n", 1)[0]
    if name == old:
        return files
    if f"{old}.py" in files:
        spellings = ((one, _class(one), one.replace("_", "-")) for one in (old, name))
        pairs = list(zip(*spellings, strict=True))
        return {_replaced(file, pairs): _replaced(text, pairs) for file, text in files.items()}
    changed = {"scenario.yaml": scenario.replace(f"\nname: {old}\n", f"\n{to_yaml({'name': name})}", 1)}
    return {**files, **changed, "README.md": files["README.md"].replace(f"/{old}", f"/{name}")}


def _files(template: str) -> dict[str, str]:
    """The files of a template by name, with what all templates have."""
    place = TEMPLATES / template
    found = {
        file.relative_to(place).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(place.rglob("*"), key=lambda file: (file.name == "README.md", file))
        if file.is_file() and file.suffix != ".pyc"
    }
    first = ["pip install -e . pytest", "python -m pytest"] if template in PLUGINS else []
    steps = [
        f"      - run: {one}\n" for one in (*first, "coband validate scenario.yaml", "coband check counts.lock.json")
    ]
    workflow = {".github/workflows/coband.yml": WORKFLOW.format(steps="".join(steps))}
    return {**found, ".gitignore": "runs/\nsweeps/\n__pycache__/\n", **workflow}


def _replaced(text: str, pairs: list[tuple[str, str]]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _lock(directory: Path) -> None:
    """Run the scenario once and keep what it sends."""
    from coband.simulator.analysis.counts.counting import LockFile, count

    file = LockFile(directory / LOCK)
    scenario = directory / "scenario.yaml"
    file.put(file.name(scenario), count(scenario))
    file.write()
