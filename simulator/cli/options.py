"""Options that ``run`` and ``check`` share, and what they mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.plugins import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.driver import Listener, Report
    from coband.simulator.experiments.runs.study import Study

SHIPPED = "A scenario that comes with coband is given by its name; `coband list scenarios` shows them."
"""What the help of commands that take a scenario ends with."""

SELECTION = (
    click.argument("file", type=click.Path(path_type=Path)),
    click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the scenario; repeatable."
    ),
    click.option("--replications", type=click.IntRange(min=1), help="Number of replications."),
    click.option(
        "--replication",
        "numbers",
        type=click.IntRange(min=0),
        multiple=True,
        help="Run this replication alone, counted from 0; repeatable.",
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of the scenario."),
    click.option("--only", multiple=True, metavar="NAME", help="Run this label or algorithm alone; repeatable."),
    click.option("--trace", type=click.Choice(["off", "protocol", "full"]), help="How much of the trace is kept."),
)
"""Which runs of a scenario, and what is kept of them."""

OPTIONS = (
    *SELECTION,
    click.option("--check", type=click.Choice(["cheap", "full"]), help="Which invariants are checked during the run."),
    click.option(
        "--workers", type=click.IntRange(min=1), help="Processes; by default one per job, at most one per core."
    ),
)


class BadInput(click.ClickException):
    """Something that the user gave cannot be used."""

    exit_code = 2


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options."""
    return _with(OPTIONS, command)


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that select what runs."""
    return _with(SELECTION, command)


def _with(options: Sequence[Callable[[Any], Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Request:
    """What the shared options ask for."""

    file: Path
    settings: tuple[str, ...] = ()
    replications: int | None = None
    numbers: tuple[int, ...] = ()
    seed: int | None = None
    only: tuple[str, ...] = ()
    trace: str | None = None
    check: str | None = None
    workers: int | None = None

    def overrides(self) -> tuple[str, ...]:
        """Settings in the scenario's own terms."""
        named = {
            "replications": self.replications,
            "seed": self.seed,
            "trace": self.trace,
            "checks": self.check,
        }
        return (*self.settings, *(f"{key}={value}" for key, value in named.items() if value is not None))

    def replay(self) -> list[str]:
        """Start of the command that repeats one of the jobs."""
        settings = [word for setting in self.settings for word in ("--set", setting)]
        checks = [] if self.check is None else ["--check", self.check]
        return ["coband", "run", str(self.file), *settings, *checks]

    def load(self) -> Any:
        """The scenario."""
        from coband.simulator.experiments.scenario import loading

        warn_of_plugins()
        return loading.load(self.file, self.overrides())

    def study(self) -> Study:
        """What there is to run.

        Raises:
            BadInput: nothing to run was selected.
        """
        from coband.simulator.experiments.runs import study

        warn_of_plugins()
        try:
            return study.load_run(self.file, self.overrides(), self.only, self.numbers)
        except study.SelectionError as error:
            raise BadInput(str(error)) from error

    def execute(self, study: Study, out: Path | None, listener: Listener) -> Report:
        """Run what is asked for.

        Raises:
            BadInput: there is no room for the results.
        """
        from coband.simulator.experiments.runs import executors, memory
        from coband.simulator.experiments.runs.driver import Commands, drive
        from coband.simulator.experiments.store import directory

        workers = self.workers or max(1, min(study.jobs, executors.cores()))
        for sentence in memory.before(study, workers):
            click.echo(f"warning: {sentence}", err=True)
        try:
            place = directory.create(study.name, out)
            return drive(study, place, workers=workers, commands=Commands(self.replay(), sys.argv), listener=listener)
        except (directory.OutputError, directory.StorageError) as error:
            raise BadInput(str(error)) from error
