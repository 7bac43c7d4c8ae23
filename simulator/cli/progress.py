"""Progress of a run on standard error: a bar on a terminal, otherwise nothing but what went wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from rich.progress import Progress

    from coband.simulator.experiments.runs.results import Failure
    from coband.simulator.experiments.runs.runner import Report

ESTIMATE_SECONDS = 600.0  # of progress that the time left is estimated from: jobs may take minutes each


class Bar:
    """Follows a run; silent when standard error is no terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._progress: Progress | None = None
        self._shown: set[str] = set()

    def begin(self, jobs: int) -> None:
        """Show the bar."""
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, speed_estimate_period=ESTIMATE_SECONDS)
        self._progress.add_task(self._title, total=jobs)
        self._progress.start()

    def progressed(self, jobs: float) -> None:
        """So many jobs are done."""
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=jobs)

    def failed(self, failure: Failure) -> None:
        """Say what went wrong and how to see it again; an error that came before is named, not shown, once more."""
        happened = "broke an invariant" if failure.kind == "violated" else "failed"
        error = failure.error.rstrip()
        gist = error.splitlines()[-1] if failure.kind == "failed" else error
        self._print(f"{failure.label}, replication {failure.replication}, {happened}: {gist}")
        if error != gist and gist not in self._shown:
            self._print(error)
        self._shown.add(gist)
        self._print(f"  to see it again: {failure.replay}")

    def _print(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()


CONDITIONS = {"theorem_1_holds": "Theorem 1 of paper 003", "theorem_2_holds": "Theorem 2 of paper 003"}
"""Numbers of a result that are 0 where a guarantee does not apply."""


def warn(report: Report) -> None:
    """Say on standard error what the table does not show."""
    for label, replication, turns in report.stalled:
        click.echo(
            f"warning: {label}, replication {replication}: {turns} turns were never taken, because agents waited for "
            "messages that did not come",
            err=True,
        )
    for entry in report.object["results"]:
        for key, name in CONDITIONS.items():
            broken = sum(record.get(key) == 0 for record in entry["replications"])
            if broken:
                click.echo(
                    f"warning: {entry['label']}: the conditions of {name} do not hold in {broken} of "
                    f"{len(entry['replications'])} replications, so it promises nothing there "
                    f"(coband describe {entry['algorithm']})",
                    err=True,
                )
    if report.interrupted:
        kept = sum(len(entry["replications"]) for entry in report.object["results"])
        click.echo(
            f"interrupted: {kept} finished jobs are kept in {report.directory}, {report.missing} are missing", err=True
        )


def exit_code(report: Report) -> int:
    """130 after Ctrl-C, 1 when a job broke off, 0 otherwise."""
    if report.interrupted:
        return 130
    return 1 if report.failures else 0
