"""``coband sweep``: run a scenario at every point of its grid."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import progress, sweep_view, tables
from coband.simulator.cli.options import SHIPPED, BadInput, Request
from coband.simulator.cli.workers import placed, pool

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.driver import Report
    from coband.simulator.experiments.runs.job import Level
    from coband.simulator.experiments.runs.study import Study
    from coband.simulator.experiments.runs.workers import WorkerPool
    from coband.simulator.experiments.sweep.study import Sweep

MOST_ROWS = 60
COLUMNS = {"regret": "regret", "scalars": "scalars", "rounds": "rounds", "simulated_time": "simulated time"}
PER_AGENT = {"regret_per_agent": "regret per agent"}
"""Beside these where numbers of agents are compared."""


@click.command(epilog=SHIPPED)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the scenario, or fix a key of its grid; repeatable.",
)
@click.option("--replications", type=click.IntRange(min=1), help="Number of replications.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the scenario.")
@placed
@click.option(
    "--trace",
    type=click.Choice(["off", "protocol", "full"]),
    default="off",
    show_default=True,
    help="How much of the trace of each job is kept.",
)
@click.option("--resume", is_flag=True, help="Go on with an earlier sweep: what is finished does not run again.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Where it is kept; by default runs/<name>-<number>."
)
@click.option(
    "--status",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Say how far the sweep in DIR is, and do nothing else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    file: Path | None,
    settings: tuple[str, ...],
    replications: int | None,
    seed: int | None,
    workers: int | None,
    cluster: str | None,
    cluster_options: tuple[str, ...],
    trace: Level,
    resume: bool,
    out: Path | None,
    status: Path | None,
    as_json: bool,
) -> None:
    """Run the scenario in FILE at every point of its `grid:` and `zip:`.

    A job is an algorithm with its parameters on a replication. What is finished stays finished: after Ctrl-C, a crash
    or a full disk --resume runs the rest, and points that are added to a grid run alone.
    """
    if status is not None:
        _show_status(status, as_json)
        return
    if file is None:
        raise BadInput("give a scenario FILE, or --status DIR.")
    request = Request(file, settings, replications, seed=seed)
    study = _load(request, trace)
    with pool(workers, cluster, cluster_options) as workers_found:
        report = driven(request, study, workers_found, resume, out)
    if as_json:
        from coband.simulator.experiments.runs.results import dump

        click.echo(dump(report.object), nl=False)
        click.echo(f"sweep directory: {report.directory}", err=True)
    else:
        _show(report, study)
    progress.warn_of_end(report)
    if report.status.state == "failed":
        failed, total = report.status.failed, report.status.total
        click.echo(f"{failed:,} of {total:,} jobs broke off; --resume tries them again", err=True)
    context.exit(progress.exit_code(report))


def _load(request: Request, trace: Level) -> Sweep:
    from coband.simulator.cli.plugins import warn_of_plugins
    from coband.simulator.experiments.sweep.study import load_study

    warn_of_plugins()
    return load_study(request.file, request.overrides(), trace=trace)


def driven(request: Request, study: Study, pool: WorkerPool, resume: bool, out: Path | None) -> Report:
    """Run a study in a directory of a sweep, a new one or the one to go on with, and show how far it is."""
    from coband.simulator.experiments.runs import memory
    from coband.simulator.experiments.runs.driver import Commands, drive
    from coband.simulator.experiments.sweep import directory

    for sentence in memory.before(study, pool.size()) if pool.children or pool.in_process else ():
        click.echo(f"warning: {sentence}", err=True)
    place = (directory.earlier if resume else directory.new)(study.name, out)
    if (other := place.other_hardware()) is not None:
        click.echo(f"warning: {other}", err=True)
    commands = Commands(request.replay(), sys.argv, _resume(place.path))
    with sweep_view.View(study.name) as view:
        return drive(study, place, workers=pool, commands=commands, listener=view)


def _resume(where: Path) -> str:
    """The command line that goes on with this sweep, whatever this one was."""
    given, words = sys.argv[1:], ["coband"]
    skip = False
    for word in given:
        if not skip and word not in ("--resume", "--out") and not word.startswith("--out="):
            words.append(word)
        skip = word == "--out"
    return shlex.join([*words, "--resume", "--out", str(where)])


def _show_status(path: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from coband.simulator.experiments.runs.results import dump
    from coband.simulator.experiments.store.directory import OutputError
    from coband.simulator.experiments.sweep import status

    try:
        found = status.read(path)
    except OutputError as error:
        raise BadInput(str(error)) from error
    if as_json:
        click.echo(dump({**asdict(found), "rate": found.rate, "seconds_left": found.seconds_left}), nl=False)
    else:
        sweep_view.show_status(found)


def _show(report: Report, study: Sweep) -> None:
    """Best parameters where they were looked for, otherwise a line for each variant."""
    if "best" in report.object:
        _show_best(report.object["best"])
    else:
        sizes = {variant.scenario.agents.count for variant in study.variants}
        _show_variants(report.object["results"], COLUMNS | (PER_AGENT if len(sizes) > 1 else {}))
    click.echo(f"sweep directory: {report.directory}")


def _show_best(lines: Sequence[dict[str, Any]]) -> None:
    contexts = list(dict.fromkeys(name for line in lines for name in line["context"]))
    rows = []
    for line in lines:
        context = [line["context"].get(name, "-") for name in contexts]
        chosen = "-" if line["chosen"] is None else ", ".join(f"{name}={text}" for name, text in line["chosen"].items())
        rows.append(
            [
                line["entry"],
                *context,
                chosen or "(the only one)",
                str(line["candidates"]),
                _estimate(line["tuning"]),
                _estimate(line["fresh"]),
            ]
        )
    if not rows:
        return
    key = lines[0]["on"]
    header = ["algorithm", *contexts, "best parameters", "of", f"{key} when tuned", f"{key} on fresh seeds"]
    tables.show(header, rows, left=len(contexts) + 2)
    click.echo("mean ± half the width of the 95 % confidence interval (number of replications)")
    click.echo("the best of many looks better on the seeds that chose it than it is; compare fresh seeds")


def _estimate(found: dict[str, Any] | None) -> str:
    return "-" if found is None else f"{tables.between(found['mean'], found['ci95'])} ({found['n']})"


def _show_variants(entries: Sequence[dict[str, Any]], columns: Mapping[str, str]) -> None:
    names = list(dict.fromkeys(name for entry in entries for name in entry["parameters"]))
    rows = []
    for entry in entries:
        cells = [entry["parameters"].get(name, "-") for name in names]
        numbers = [tables.between(entry["mean"].get(key), entry["ci95"].get(key)) for key in columns]
        rows.append([entry["entry"], *cells, str(len(entry["replications"])), *numbers])
    shown = rows[:MOST_ROWS]
    if shown:
        tables.show(["algorithm", *names, "n", *columns.values()], shown, left=1)
        click.echo("mean ± half the width of the 95 % confidence interval (Student t over n replications)")
    if len(rows) > len(shown):
        click.echo(f"... and {len(rows) - len(shown)} more variants; results.json and run.sqlite have them all")
