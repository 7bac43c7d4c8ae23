"""Arguments and options that several commands have: one name, one metavar and one kind of value for each meaning.

A command has them in the order of its help: what is read, what is changed or selected in it, how it is computed, the
command's own, and last what comes out: ``--out``, ``--force``, ``--json``. No option but ``-h`` has a second name.

Types of values are here too: numbers that a store has room for, never NaN or infinite, and paths.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.terminal.output import warn_of_plugins
from coband.simulator.terminal.progress import QUIET

if TYPE_CHECKING:
    from coband.simulator.analysis.comparison.analysis import Analysis
    from coband.simulator.experiments.runs.executor import JobExecutor
    from coband.simulator.experiments.runs.reporting import Listener, Report
    from coband.simulator.experiments.runs.study import Study
    from coband.simulator.experiments.store.store import StoredRun


LARGEST = 2**63 - 1
"""The largest whole number in a SQLite database."""
MOST_WORKERS = 10_000
UNITS = {"m": 1 / 60, "h": 1.0, "d": 24.0}
"""Of durations, in hours."""


class AtLeast(click.IntRange):
    """A whole number from a smallest one on; the largest one goes without saying in the help."""

    def __init__(self, least: int, most: int = LARGEST) -> None:
        super().__init__(min=least)
        self._most = most

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """``N``, where an option says nothing else."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number > self._most:
            self.fail(f"{value} is too large: at most {self._most}", param, ctx)
        return number


class Finite(click.FloatRange):
    """A number in a range; comparisons let NaN through, which is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Place(click.Path):
    """A path of a file or of a folder, with the metavar that says which; an empty one is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the path is empty; . is this directory", param, ctx)
        return super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """``FILE`` or ``DIR``."""
        return "FILE" if self.file_okay else "DIR"


FILE_PATH, FOLDER = Place(path_type=Path, dir_okay=False), Place(path_type=Path, file_okay=False)


class Hours(Finite):
    """A duration in hours, or with a unit: 90m, 3h, 2d."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text, unit = str(value), UNITS.get(str(value)[-1:])
        return super().convert(text if unit is None else text[:-1], param, ctx) * (unit or 1.0)


SHIPPED = "A scenario that comes with coband is given by its name; `coband list scenarios` shows them."
"""What the help of commands that take a scenario ends with."""

REPLICATION_HELP = "Only this replication, counted from 0"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def options(*added: Decorator) -> Decorator:
    """Gives a command several arguments and options, in this order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(added), command)


def files(name: str, *, required: bool) -> Decorator:
    """Any number of scenarios."""
    shown = "FILE..." if required else "[FILE]..."
    return click.argument(name, metavar=shown, nargs=-1, required=required, type=Place(path_type=Path))


def settings(text: str = "Change a value of the scenario; repeatable.") -> Decorator:
    """Changes of a scenario."""
    return click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help=text)


def trace(default: str | None = None) -> Decorator:
    """The level of the trace."""
    levels = click.Choice(["off", "protocol", "full"])
    return click.option("--trace", type=levels, default=default, help="How much of the trace of each job is kept.")


def workers(text: str, default: int | None = None) -> Decorator:
    """A number of processes."""
    return click.option("--workers", type=AtLeast(1, MOST_WORKERS), default=default, help=text)


def out_file(text: str) -> Decorator:
    """The file that a command writes."""
    return click.option("--out", type=Place(path_type=Path, dir_okay=False), help=text)


def out_directory(text: str, default: Path | None = None) -> Decorator:
    """The directory that a command writes."""
    return click.option("--out", type=Place(path_type=Path, file_okay=False), default=default, help=text)


PORT_HELP = "Port of this machine; 0 takes any that is free."
PORT = click.option("--port", type=click.IntRange(0, 65535), metavar="N", default=0, help=PORT_HELP)
FILE = click.argument("file", type=Place(path_type=Path), metavar="FILE")
REPLICATIONS = click.option("--replications", type=AtLeast(1), help="Number of replications.")
SEED = click.option("--seed", type=AtLeast(0), help="Seed of the scenario.")
ONLY = click.option("--only", multiple=True, metavar="NAME", help="Only this label or algorithm; repeatable.")
FORCE = click.option("--force", is_flag=True, help="Replace files that are there and differ.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
JSON_LINES = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")


def _remember(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        context.meta[QUIET] = True


loud = click.option(
    "--quiet",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember,
    help="No progress and no notes: only warnings, errors and results.",
)
"""How much is said while jobs run."""


class BadInput(click.ClickException):
    """Something that the user gave cannot be used."""

    exit_code = 2


selection = options(
    FILE,
    settings(),
    REPLICATIONS,
    click.option("--replication", "numbers", type=AtLeast(0), multiple=True, help=f"{REPLICATION_HELP}; repeatable."),
    SEED,
    ONLY,
    trace(),
)
"""The options that select what runs: which runs of a scenario, and what is kept of them."""
shared = options(
    selection,
    click.option(
        "--check",
        type=click.Choice(["cheap", "full"]),
        help="Also compute every node a second time (full); the invariants are always checked.",
    ),
    workers("Processes; by default one per job, at most one per core."),
    loud,
)
"""The options of commands that run a scenario."""


placed = options(
    workers("Processes on this machine; by default one per core."),
    click.option(
        "--cluster",
        metavar="tcp://HOST:PORT|SYSTEM",
        help="Run on the workers of this Dask scheduler instead, or in a queue: slurm, pbs, sge, lsf, htcondor, oar.",
    ),
    click.option(
        "--cluster-option",
        "cluster_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="With a queue: jobs=10, cores=4, memory=8GB, queue=short, walltime=01:00:00, and others; repeatable.",
    ),
    loud,
)
"""Where jobs run: processes of this machine, a Dask scheduler, or the queue of a cluster."""
RESUME = click.option("--resume", is_flag=True, help="Go on in a directory with finished jobs: they do not run again.")


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
        named = {"replications": self.replications, "seed": self.seed, "trace": self.trace, "checks": self.check}
        return (*self.settings, *(f"{key}={value}" for key, value in named.items() if value is not None))

    def replay(self) -> list[str]:
        """Start of the command that repeats one of the jobs."""
        settings = [word for setting in self.settings for word in ("--set", setting)]
        counted = [] if self.replications is None else ["--replications", str(self.replications)]
        checks = [] if self.check is None else ["--check", self.check]
        return ["coband", "run", str(self.file), *settings, *counted, *checks]

    def load(self) -> Any:
        from coband.simulator.experiments.scenario import loading

        warn_of_plugins()
        return loading.load(self.file, self.overrides())

    def study(self) -> Study:
        from coband.simulator.experiments.runs.study import load_run

        warn_of_plugins()
        return load_run(self.file, self.overrides(), self.only, self.numbers)

    def execute(self, study: Study, out: Path | None, listener: Listener) -> Report:
        from coband.simulator.experiments.runs.driver import drive
        from coband.simulator.experiments.runs.executor import check_open_files, cores
        from coband.simulator.experiments.runs.reporting import Commands
        from coband.simulator.experiments.store import directory

        workers = self.workers or max(1, min(study.jobs, cores()))
        if workers > 1:
            check_open_files(workers)  # before there is a directory
        place = directory.create(study.name, out)
        return drive(study, place, workers=workers, commands=Commands(self.replay(), sys.argv), listener=listener)


def pool(workers: int | None, cluster: str | None, cluster_options: Sequence[str] = ()) -> JobExecutor:
    """Who runs jobs: processes, or the workers of the cluster.

    Raises:
        ExecutorError: the options contradict each other, or there is no such cluster.
    """
    from coband.simulator.experiments.runs.executor import Local
    from coband.simulator.experiments.sweep.job_queue import cluster_of

    found = cluster_of(cluster, cluster_options, workers)
    if found is None:
        return Local(workers)
    click.echo(f"{found.describe()}; dashboard: {found.dashboard}", err=True)
    for advice in found.advice():
        click.echo(f"warning: {advice}", err=True)
    return found


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
def analysed(paths: tuple[Path, ...], reference: str | None, measure: str | None = None) -> Iterator[Analysis]:
    """Analyse runs, which stay open for so long."""
    from coband.simulator.analysis.comparison import analysis, data

    with ExitStack() as stack:
        runs = [stack.enter_context(opened(path)) for path in paths]
        yield analysis.Analysis(data.load(runs), reference, measure=measure)
