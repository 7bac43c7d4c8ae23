"""``coband check``: run a scenario and compare its counts with what it says to expect."""

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

    Ends with status 1 when a count differs, or replications are too few to tell.
    """
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
