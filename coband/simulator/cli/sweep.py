"""``coband sweep``: run a scenario at every point of its grid."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import options
from coband.simulator.cli.options import BadInput, Request, RunPath
from coband.simulator.terminal import progress, results, tables
from coband.simulator.terminal.output import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.executor import JobExecutor
    from coband.simulator.experiments.runs.job import Level
    from coband.simulator.experiments.runs.reporting import Report
    from coband.simulator.experiments.runs.study import Study


@click.command(epilog=options.SHIPPED)
@click.argument("file", metavar="[FILE]", type=options.Place(path_type=Path), required=False)
@options.settings("Change a value of the scenario, or fix a key of its grid; repeatable.")
@options.REPLICATIONS
@options.SEED
@options.ONLY
@options.trace(default="off")
@options.placed
@click.option("--status", type=RunPath(), metavar="DIR", help="Say how far the sweep in DIR is, and do nothing else.")
@options.RESUME
@click.option("--again", is_flag=True, help="Go on in a directory, and run its finished jobs again.")
@options.out_directory("Sweep directory; by default runs/<name>-<number>.")
@options.JSON
@click.pass_context
def sweep(
    context: click.Context,
    /,
    file: Path | None,
    trace: Level,
    status: Path | None,
    resume: bool,
    again: bool,
    out: Path | None,
    as_json: bool,
    workers: int | None,
    cluster: str | None,
    cluster_options: tuple[str, ...],
    **selected: Any,
) -> None:
    """Run the scenario in FILE at every point of its `grid:` and `zip:`.

    A job is an algorithm with its parameters on a replication. What is finished stays finished: after Ctrl-C, a crash
    or a full disk --resume runs the rest, and points that are added to a grid run alone.
    """
    if status is not None:
        from coband.simulator.experiments.runs.status import read

        state = read(status)
        if as_json:
            tables.show_json({**asdict(state), "rate": state.rate, "seconds_left": state.seconds_left})
        else:
            progress.show_status(state)
        return
    if file is None:
        raise BadInput("give a scenario FILE, or --status DIR.")
    from coband.simulator.experiments.sweep.study import load_study

    warn_of_plugins()
    request = Request(file, **selected)
    study = load_study(file, request.overrides(), trace=trace).selected(request.only)
    if not study.gridded and cluster is None and not (resume or again):
        raise BadInput(f"{file} has neither grid: nor zip:, so there is one point: `coband run {file}` runs it.")
    with options.pool(workers, cluster, cluster_options) as found:
        progress.announce(study)
        report = driven(request, study, found, resume, out, again=again)
    if as_json:
        tables.show_json(report.object)
        click.echo(f"sweep directory: {report.directory}", err=True)
    else:
        sizes = {variant.scenario.agents.count for variant in study.variants}
        results.show(results.of_sweep(report.object, report.directory, several_sizes=len(sizes) > 1))
    progress.warn(report)
    if report.status.state == "failed":
        failed, total = report.status.failed, report.status.total
        click.echo(f"{failed:,} of {total:,} jobs broke off; --resume tries them again", err=True)
    context.exit(progress.exit_code(report))


def driven(
    request: Request, study: Study, pool: JobExecutor, resume: bool, out: Path | None, *, again: bool = False
) -> Report:
    """Run a study in a directory of a sweep, a new one or the one to go on with, and show how far it is."""
    from coband.simulator.experiments.runs.driver import drive
    from coband.simulator.experiments.runs.reporting import Commands
    from coband.simulator.experiments.store import directory

    place = directory.create(study.name, out, swept=True, resume=resume, again=again)
    if (other := place.other_hardware()) is not None:
        click.echo(f"warning: {other}", err=True)
    commands = Commands(request.replay(), sys.argv, _resume(place.path))
    with progress.Bar(study.name) as view:
        return drive(study, place, workers=pool, commands=commands, listener=view)


def _resume(where: Path) -> str:
    """The command line that goes on with this sweep, whatever this one was."""
    given, words = sys.argv[1:], ["coband"]
    for before, word in zip(["", *given], given, strict=False):
        if before != "--out" and word not in ("--resume", "--again", "--out") and not word.startswith("--out="):
            words.append(word)
    return shlex.join([*words, "--resume", "--out", str(where)])
