"""``coband whatif``: run a stored run again with one thing changed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import progress, tables
from coband.simulator.cli.options import JSON, BadInput, loud, out_directory, settings, workers
from coband.simulator.cli.plugins import warn_of_plugins
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened

if TYPE_CHECKING:
    from coband.simulator.analysis.traces.difference import TraceComparison
    from coband.simulator.analysis.whatif.answer import Answer, Change
    from coband.simulator.analysis.whatif.split import Split
    from coband.simulator.analysis.whatif.study import WhatIfStudy
    from coband.simulator.experiments.runs.reporting import Report
    from coband.simulator.experiments.store.store import StoredRun


@click.command(epilog=RUNS_HELP)
@RUN
@settings()
@choice
@click.option(
    "--drop", "drops", type=int, multiple=True, metavar="EVENT", help="Lose the message of this event; repeatable."
)
@click.option("--for-good", is_flag=True, help="Give a lost message up instead of sending it again.")
@click.option(
    "--delay",
    "delays",
    type=(int, float),
    multiple=True,
    metavar="EVENT X",
    help="Let the message of this event arrive X simulated units later; repeatable.",
)
@click.option(
    "--agent",
    "agents",
    type=(int, str),
    multiple=True,
    metavar="AGENT KEY=VALUE",
    help="Change the speed, compute or handling of one agent, such as 13 speed=1; repeatable.",
)
@click.option("--split", is_flag=True, help="Split the regret by cause: losses, delays, slow agents, the threshold.")
@workers("Processes.", 1)
@loud
@out_directory("Run directory, new or empty; by default runs/<name>-what-if-<number>.")
@JSON
@click.pass_context
def whatif(
    context: click.Context,
    /,
    path: Path,
    split: bool,
    label: str | None,
    replication: int | None,
    out: Path | None,
    workers: int,
    as_json: bool,
    **changes: Any,
) -> None:
    """Run a stored run again with one thing changed, and show what that thing has cost.

    Everything else stays equal: arms, noise, and the random draws of every message. EVENT is the number of a send or
    deliver event, as `coband trace show RUN --event send` prints it. Changes can be repeated and combined.
    """
    warn_of_plugins()
    with opened(path) as run:
        study = _study(run, split, changes, label, replication)
        report = perform(study, out, workers)
        _print(run, report, study, split, as_json)
    context.exit(progress.exit_code(report))


def _study(
    run: StoredRun, split: bool, changes: dict[str, Any], label: str | None, replication: int | None
) -> WhatIfStudy:
    from coband.simulator.analysis.whatif.question import Question
    from coband.simulator.analysis.whatif.split import split_study
    from coband.simulator.analysis.whatif.study import study_of

    if not split:
        return study_of(run, Question(**changes), label, replication)
    if any(changes.values()):
        raise BadInput("--split changes one thing after the other by itself; give it without --drop, --set and others.")
    return split_study(run, label, replication)


def perform(study: WhatIfStudy, out: Path | None, workers: int) -> Report:
    """Run a what-if study."""
    from coband.simulator.analysis.whatif.study import place
    from coband.simulator.experiments.runs.driver import drive
    from coband.simulator.experiments.runs.reporting import Commands

    with progress.Bar(study.name) as bar:
        report = drive(study, place(study, out), workers=workers, commands=Commands((), sys.argv), listener=bar)
    progress.warn(report)
    return report


def _print(run: StoredRun, report: Report, study: WhatIfStudy, split: bool, as_json: bool) -> None:
    from coband.simulator.analysis.whatif.answer import answers
    from coband.simulator.analysis.whatif.split import splits
    from coband.simulator.experiments.store.store import open_run

    with open_run(report.directory) as changed:
        parts = list(splits(run, changed, study)) if split else []
        found = [] if split else [answer for answer in answers(run, changed, study.of) if answer.replications]
        if as_json:
            listed = [part.as_json() for part in parts] or [answer.as_json() for answer in found]
            key = "splits" if split else "answers"
            tables.show_json({**study.about, "directory": str(report.directory), key: listed})
            return
        declared = frozenset(name for name, metric in changed.metrics.items() if metric.better)
        for answer in found:
            _show(answer, declared, changed.labels)
    for part in parts:
        _show_split(part)
    click.echo(f"run directory: {report.directory}")


def _show(answer: Answer, declared: frozenset[str], algorithms: Mapping[str, str]) -> None:
    count = len(answer.replications)
    where = f"replication {answer.replications[0]}" if count == 1 else f"{count} replications"
    click.echo(f"{answer.changed_label} against {answer.label}, {where}")
    rows = [_row(change) for change in answer.shown(declared)]
    tables.show(["", "stored", "what if", "difference"], rows)
    if count > 1:
        click.echo("difference: mean ± half the width of the 95 % interval (Student t, paired by replication)")
    for number, parting in answer.parting.items():
        _show_parting(f"replication {number}: " if count > 1 else "", parting, algorithms if count == 1 else None)


def _row(change: Change) -> list[str]:
    difference = tables.between(change.difference.mean, change.difference.interval)
    sign = "+" if change.difference.mean > 0 else ""
    return [change.name, tables.number(change.stored), tables.number(change.changed), sign + difference]


def _show_parting(where: str, parting: TraceComparison, algorithms: Mapping[str, str] | None) -> None:
    from coband.simulator.cli.trace.diff import in_words, show_events

    click.echo(where + in_words(parting, "the traces are the same", "the traces part"))
    if algorithms is not None and not parting.same:
        show_events(parting, ("stored", "what if"), algorithms)


def _show_split(split: Split) -> None:
    count = len(split.replications)
    click.echo(f"{split.label}, {count} replication{'s' * (count > 1)}: regret by cause, in this order")
    rows = [["all of it", tables.between(split.regret.mean, split.regret.interval), "", ""]]
    for share in split.shares:
        if share.owed is None:
            rows.append([share.cause, "none here", "", tables.number(share.regret)])
        else:
            owed = tables.between(share.owed.mean, share.owed.interval)
            rows.append([share.cause, owed, split.percentage(share.owed.mean), tables.number(share.regret)])
    rest = tables.between(split.rest.mean, split.rest.interval)
    rows.append(["the rest", rest, split.percentage(split.rest.mean), ""])
    tables.show(["cause", "regret", "share", "left without it"], rows)
    if count > 1:
        click.echo("mean ± half the width of the 95 % interval (Student t; differences paired by replication)")
