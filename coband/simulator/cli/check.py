"""``coband check``: run a scenario and compare its counts with what it says to expect, or with a lock file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import SHIPPED, BadInput, Request, out_directory, shared
from coband.simulator.terminal import progress, tables

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.expectations import Comparison


@click.command(epilog=SHIPPED)
@shared
@out_directory("Run directory, new or empty; by default nothing is kept.")
@click.pass_context
def check(context: click.Context, /, out: Path | None, **options: Any) -> None:
    """Run the scenario in FILE and compare its counts with its `expect:` section.

    FILE may be a lock file of `coband counts`, such as counts.lock.json, too: all its scenarios run again, and their
    counts are compared. Ends with status 1 when a count differs, or replications are too few to tell.
    """
    if options["file"].suffix == ".json":
        context.exit(int(_differ_from_lock(out, **options)))
    from coband.simulator.experiments.runs import expectations
    from coband.simulator.experiments.store.store import open_run

    request = Request(**options)
    study = request.study()
    scenario = study.variants[0].scenario
    try:
        expectations.require(scenario, request.only, study.possible_replications)
        with tempfile.TemporaryDirectory(prefix="coband-check-") as scratch, progress.Bar(study.name) as bar:
            report = request.execute(study, out or Path(scratch) / "run", bar)
            progress.warn(report)
            with open_run(report.directory) as run:
                early = study.until is not None
                comparisons = expectations.compare(scenario, report.object, early, run.series)
    except expectations.ExpectationError as error:
        raise BadInput(f"{request.file}: {error}") from error
    _show(comparisons, len(report.failures))
    for sentence in expectations.close_calls(comparisons, report.object):
        click.echo(sentence, err=True)
    differ = any(not comparison.holds for comparison in comparisons)
    context.exit(progress.exit_code(report) or int(differ))


def _differ_from_lock(
    out: Path | None, file: Path, settings: tuple[str, ...], workers: int | None, **others: Any
) -> bool:
    """Whether counts differ from those of a lock file; other options are not for that."""
    from coband.simulator.cli import counts

    if out is not None or any(value not in (None, ()) for value in others.values()):
        raise BadInput(f"{file} is a lock file of counts: with it go --set and --workers only.")
    return counts.differ(counts.opened(file), settings, workers or 1)


def _show(comparisons: list[Comparison], broken: int = 0) -> None:
    from coband.simulator.experiments.statistics import numerals

    rows = [
        [
            item.label,
            item.count,
            "all" if item.replication is None else str(item.replication),
            item.expected,
            tables.between(item.got, item.interval),
            numerals.evidence(item.e_value),
            item.word,
        ]
        for item in comparisons
    ]
    header = ["label", "count", "replication", "expected", "got", "e", ""]
    if all(item.e_value is None for item in comparisons):
        header, rows = [*header[:5], ""], [[*row[:5], row[6]] for row in rows]
    tables.show(header, rows, left=2)
    undecided = sum(item.open and not item.holds for item in comparisons)
    left = f"; {undecided} undecided, which more --replications would tell" if undecided else ""
    if broken:
        left += f"; jobs that broke off, of which nothing is compared: {broken}"
    click.echo(f"{sum(item.holds for item in comparisons)} of {len(rows)} counts are as expected{left}")
