"""Progress of a run or a sweep: a bar on a terminal or in a notebook, lines in a log, or a table elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import click

from coband.simulator.experiments.safe_text import visible
from coband.simulator.terminal import output, tables

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from coband.simulator.experiments.runs.reporting import EndedJob, Report
    from coband.simulator.experiments.runs.results import Failure
    from coband.simulator.experiments.runs.status import Status
    from coband.simulator.experiments.runs.study import Study
    from coband.simulator.metrics import Metric


EXIT_CODES = {"interrupted": 130, "stopped": 2}
QUIET = "coband.quiet"


LOG_SECONDS = (3.0, 60.0)
"""After how many seconds a log gets a first line; later ones take twice as long, up to the second number."""


class Bar:
    """Follows a run or a sweep: a bar on a terminal and in a notebook, elsewhere a line now and then."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._progress: Progress | None = None
        self._shown: set[str] = set()
        self._failures = 0
        self._pause, self._logged = LOG_SECONDS[0], time.monotonic()

    def changed(self, status: Status) -> None:
        """Show how far it is."""
        if self.visible():
            self._draw(status)
        elif status.state == "running" and not quiet() and time.monotonic() - self._logged >= self._pause:
            self._pause, self._logged = min(2 * self._pause, LOG_SECONDS[1]), time.monotonic()
            click.echo(f"{self._title}: {line(status)}", err=True)

    def _draw(self, status: Status) -> None:
        """Move the bar; the first time, show it."""
        if self._progress is None:
            self._progress = self._started()
            self._progress.add_task(escaped(self._title), note="")
        done = status.ended + status.under_way
        self._progress.update(self._progress.task_ids[0], total=status.total, completed=done, note=time_left(status))

    def ended(self, end: EndedJob) -> str | None:
        """Nothing is said of single jobs."""
        return None

    def visible(self) -> bool:
        """Whether there is anywhere to draw, and anybody wants to see it."""
        return not quiet() and (sys.stderr.isatty() or in_notebook())

    def _console(self) -> Console:
        from rich.console import Console

        return Console() if in_notebook() else Console(file=output.raw(sys.stderr), color_system=output.colours())

    def _started(self) -> Progress:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        title, note = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
        bars = Progress(title, BarColumn(), TaskProgressColumn(), note, console=self._console(), transient=True)
        bars.start()
        return bars

    def failed(self, failure: Failure) -> None:
        """Say what went wrong and how to see it again, until it becomes too much; an error that came before is named,
        not shown, once more."""
        self._failures += 1
        if self._failures > MOST_FAILURES:
            if self._failures == MOST_FAILURES + 1:
                self._print("more jobs break off; results.json shows them")
            return
        happened = "broke an invariant" if failure.kind == "violated" else "failed"
        error = failure.error.rstrip()
        gist = failure.gist if failure.kind == "failed" else error
        self._print(f"{failure.label}, replication {failure.replication}, {happened}: {gist}")
        if error != gist and gist not in self._shown:
            self._print(error)
        self._shown.add(gist)
        self._print(f"  to see it again: {failure.replay}")

    def _print(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def escaped(title: str) -> str:
    """A title as rich shows it."""
    from rich.markup import escape

    return escape(visible(title))


def in_notebook() -> bool:
    """Whether this is a notebook that can show a bar, for which rich needs ipywidgets."""
    if "ipykernel" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


def quiet() -> bool:
    """Whether the command that runs was asked to say little."""
    context = click.get_current_context(silent=True)
    return context is not None and QUIET in context.meta


def announce(study: Study) -> None:
    """Say on standard error what runs, and how much that is."""
    from coband.simulator.experiments.runs.reporting import workload

    if not quiet() and (sentence := workload(study)):
        click.echo(f"{study.name}: {sentence}", err=True)


def time_left(status: Status) -> str:
    """Such as ``about 3 min 10 s left``; empty while nobody knows."""
    if status.state != "running" or status.seconds_left is None:
        return ""
    return f"about {duration(status.seconds_left)} left"


def duration(seconds: float) -> str:
    """Some time, in the two largest units."""
    whole = round(seconds)
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def warn(report: Report) -> None:
    """Say on standard error what the table does not show."""
    for sentence in warnings(report):
        click.echo(f"warning: {sentence}", err=True)
    warn_of_end(report)


def warnings(report: Report) -> Iterator[str]:
    """What the table of results does not show: turns never taken, and what nodes and guarantees warn of."""
    yield from report.remarks
    said: dict[str, list[str]] = {}
    for entry in report.object["results"]:
        noted = (text for record in entry["replications"] for text in record.get("warnings", ()))
        for sentence in dict.fromkeys([*noted, *_guarantees(entry)]):
            said.setdefault(sentence, []).append(entry["label"])
    for sentence, labels in said.items():
        several = len(labels) > 1 and len(labels) == len(report.object["results"])
        more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
        yield sentence if several else f"{', '.join(labels[:MOST_LABELS])}{more}: {sentence}"


MOST_LABELS = 5
"""So many labels are named of those that have a warning in common."""


def _guarantees(entry: Mapping[str, Any]) -> Iterator[str]:
    """The theorems whose conditions do not hold, and other reasons for caution, as metrics say."""
    from coband.simulator.experiments.registry.registry import Registry

    algorithms = Registry.installed().algorithms
    declared = algorithms[entry["algorithm"]].metrics if entry["algorithm"] in algorithms else ()
    for metric in (metric for metric in declared if metric.guarantee or metric.caution):
        if broken := sum(record.get(metric.name) == 0 for record in entry["replications"]):
            yield _broken(metric, broken, entry)


def _broken(metric: Metric, broken: int, entry: Mapping[str, Any]) -> str:
    """What it means that a metric is 0 in so many replications."""
    share = f"{broken} of {len(entry['replications'])} replications"
    where = f"(coband describe {entry['algorithm']})"
    if metric.caution:
        return f"{metric.caution}, in {share} {where}"
    return f"the conditions of {metric.guarantee} do not hold in {share}, so it guarantees nothing there {where}"


def warn_of_end(report: Report) -> None:
    """Say on standard error that it ended early, and why."""
    if (sentence := early_end(report)) is not None:
        click.echo(sentence, err=True)
        if report.status.resume:
            click.echo(f"to go on: {report.status.resume}", err=True)


def early_end(report: Report) -> str | None:
    """Why it ended early, and what is kept; None if it did not."""
    status = report.status
    if status.state not in EXIT_CODES:
        return None
    reason = f" ({status.message})" if status.message else ""
    kept = f"finished jobs are kept in {report.directory}"
    if report.gone:
        kept = f"jobs had finished, but {report.directory} was removed meanwhile, and what was in it is gone"
    return f"{status.state}{reason}: {status.done:,} {kept}, {report.missing:,} are missing"


def exit_code(report: Report) -> int:
    """130 after Ctrl-C, 2 when it had to stop otherwise, 1 when a job broke off, 0 otherwise."""
    if report.status.state in EXIT_CODES:
        return EXIT_CODES[report.status.state]
    return 1 if report.failures else 0


MOST_FAILURES = 10
STATES = {
    "running": "is running",
    "finished": "has finished",
    "failed": "has ended, and some jobs broke off",
    "interrupted": "was interrupted",
    "stopped": "had to stop",
    "killed": "was killed, or had no room to write how it ended",
}


def line(status: Status) -> str:
    """How far it is, in one line."""
    parts = [f"{status.ended:,} of {status.total:,} jobs"]
    if status.rate is not None:
        parts.append(f"{status.rate:.3g}/s")
    if left := time_left(status):
        parts.append(left)
    if status.failed:
        parts.append(f"{status.failed} failed")
    return ", ".join(parts)


def show_status(status: Status) -> None:
    """What ``--status`` prints."""
    from coband.simulator.experiments.runs.results import Failure

    least = "at least " * (status.state == "killed")  # the last ones were not written down here
    click.echo(f"{status.name} {STATES[status.state]}: {least}{line(status)}")
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
    if status.resume and status.state not in ("running", "finished"):
        click.echo(f"to go on: {status.resume}")
