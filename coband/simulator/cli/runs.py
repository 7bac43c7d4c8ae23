"""Shared by the commands that read one or several runs: arguments, and opening runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import BadInput, Place

if TYPE_CHECKING:
    from coband.simulator.analysis.comparison.analysis import Analysis
    from coband.simulator.experiments.store.store import StoredRun

RUNS_HELP = "RUN is a run directory, its run.sqlite, or `latest`, the newest run below runs."
"""What the help of commands that take a run ends with."""
LATEST_HELP = "RUN is a run directory or its run.sqlite; by default it is `latest`, the newest run below runs."
"""The same, where one need not be given."""


class RunPath(Place):
    """A run: its path, or ``latest``."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a file or directory that is called ``latest`` has precedence."""
        from coband.simulator.experiments.store.files import called

        return called(str(super().convert(value, param, ctx)))


def or_latest(context: click.Context, parameter: click.Parameter | None, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """The runs that are given, or the newest one, which is named on standard error."""
    if paths:
        return paths
    newest: Path = RunPath().convert("latest", parameter, context)
    click.echo(f"run: {newest}", err=True)
    return (newest,)


RUN = click.argument("path", metavar="RUN", type=RunPath())
A_RUN = click.argument("path", metavar="[RUN]", type=RunPath(), default="latest")
RUNS = click.argument("paths", metavar="[RUN]...", nargs=-1, type=RunPath(), callback=or_latest)
against = click.option("--against", metavar="LABEL", help="Compare every label with this one only.")
"""Selects the reference of differences."""


def opened(path: Path) -> StoredRun:
    """Open a run for reading."""
    from coband.simulator.experiments.store.store import open_run

    return open_run(path)


@contextmanager
def analysed(paths: tuple[Path, ...], reference: str | None) -> Iterator[Analysis]:
    """Analyse runs, which stay open for so long."""
    from coband.simulator.analysis.comparison import analysis, data

    with ExitStack() as stack:
        runs = [stack.enter_context(opened(path)) for path in paths]
        yield analysis.Analysis(data.load(runs), reference)


@contextmanager
def extra(name: str, *libraries: str) -> Iterator[None]:
    """End the command with a message if a library of an optional extra is not installed.

    Args:
        name: of the extra.
        libraries: the modules that it brings.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in libraries:
            raise
        raise BadInput(
            f"this command needs {error.name}, which is not installed: pip install 'coband[{name}]'."
        ) from error
