"""How a sweep looks on a terminal while it runs, in a log, and from another terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from coband.simulator.cli import progress, tables

if TYPE_CHECKING:
    from rich.progress import TaskID

    from coband.simulator.experiments.runs.results import Failure
    from coband.simulator.experiments.runs.status import Status

LOG_SECONDS = 60.0
MOST_FAILURES = 10
STATES = {
    "running": "is running",
    "finished": "has finished",
    "failed": "has ended, and some jobs broke off",
    "interrupted": "was interrupted",
    "stopped": "had to stop",
    "killed": "was killed, or had no room to write how it ended",
}


class View(progress.Bar):
    """Follows a sweep: a bar for each algorithm on a terminal, elsewhere a line a minute."""

    percent = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._bars: dict[str, TaskID] = {}
        self._failures = 0
        self._logged = time.monotonic()

    def changed(self, status: Status) -> None:
        """Show how far it is."""
        if self.visible():
            self._draw(status)
        elif (
            status.state == "running"
            and progress.verbosity() != "quiet"
            and time.monotonic() - self._logged >= LOG_SECONDS
        ):
            self._logged = time.monotonic()
            click.echo(f"{self._title}: {line(status)}", err=True)

    def failed(self, failure: Failure) -> None:
        """Say what went wrong, until it becomes too much."""
        self._failures += 1
        if self._failures <= MOST_FAILURES:
            super().failed(failure)
        elif self._failures == MOST_FAILURES + 1:
            self._print("more jobs break off; `coband sweep --status DIR` and results.json show them")

    def _draw(self, status: Status) -> None:
        """A bar for each algorithm, and one for the whole."""
        if self._progress is None:
            self._progress = self._started()
        for name, entry in status.entries.items():
            ended = entry.done + entry.failed
            failed = f", {entry.failed:,} failed" if entry.failed else ""
            self._bar(name, entry.total, ended, f"{ended:,}/{entry.total:,}{failed}")
        self._bar(self._title, status.total, status.ended + status.under_way, line(status))

    def _bar(self, name: str, total: int, ended: float, note: str) -> None:
        assert self._progress is not None
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(progress.escaped(name), note="")
        self._progress.update(self._bars[name], total=total, completed=ended, note=note)


def line(status: Status) -> str:
    """How far it is, in one line."""
    parts = [f"{status.ended:,} of {status.total:,} jobs"]
    if status.rate is not None:
        parts.append(f"{status.rate:.3g}/s")
    if left := progress.time_left(status):
        parts.append(left)
    if status.failed:
        parts.append(f"{status.failed} failed")
    return ", ".join(parts)


def show_status(status: Status) -> None:
    """What ``--status`` prints."""
    from coband.simulator.experiments.runs.results import Failure

    click.echo(f"{status.name} {STATES[status.state]}: {line(status)}")
    click.echo(f"driver: process {status.process} on {status.host}, since {status.started}; {status.workers}")
    if status.dashboard and status.state == "running":
        click.echo(f"dashboard: {status.dashboard}")
    rows = [
        [name, f"{entry.done:,}", f"{entry.remaining:,}", f"{entry.failed:,}", tables.number(entry.mean_seconds)]
        for name, entry in status.entries.items()
    ]
    tables.show(["algorithm", "done", "to do", "failed", "seconds a job"], rows)
    for failure in (Failure(**one) for one in status.failures[:MOST_FAILURES]):
        click.echo(f"{failure.label}, replication {failure.replication}, {failure.kind}: {failure.gist}")
        click.echo(f"  to see it again: {failure.replay}")
    if status.failed > MOST_FAILURES:
        click.echo(f"... and {status.failed - MOST_FAILURES} more")
    if status.message:
        click.echo(status.message)
    if status.state not in ("running", "finished"):
        click.echo(f"to go on: {status.resume}")
