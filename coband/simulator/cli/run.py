"""``coband run``: run a scenario, or a stored run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import JSON, SHIPPED, Request, out_directory, shared
from coband.simulator.terminal import progress, results, tables

if TYPE_CHECKING:
    from coband.simulator.analysis.comparison.data import RunComparison
    from coband.simulator.analysis.comparison.repetition import Change
    from coband.simulator.experiments.runs.reporting import Report
    from coband.simulator.experiments.runs.study import Study

MOST_NAMED = 5


@click.command(epilog=SHIPPED)
@shared
@out_directory("Run directory, new or empty; by default runs/<name>-<number>.")
@JSON
@click.pass_context
def run(context: click.Context, /, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the scenario in FILE and store what happens in a run directory.

    Each algorithm runs on each replication; all of them meet the same arms and the same noise. Where the scenario says
    `until:`, replications are added until the mean is known well enough. Ctrl-C keeps what is finished.

    Instead of a FILE, give the directory of a stored run, or `latest`, to run it again: with --set on the same arms and
    noise and with the same n-th draw of each link, to see what the change makes of it; without changes, to see whether
    fingerprints are equal.
    """
    from coband.simulator.experiments.runs.repeating import repeated

    request, before = Request(**options), repeated(options["file"])
    if before is not None:
        numbers = () if request.replications else before.replications
        only, numbers = request.only or before.labels, request.numbers or numbers
        request = replace(request, file=before.file, only=only, numbers=numbers)
    study = request.study()
    progress.announce(study)
    with progress.Bar(study.name) as bar:
        report = request.execute(study, out, bar)
    progress.warn(report)
    status = progress.exit_code(report)
    if not as_json:
        show_results(report, study)
    against: dict[str, object] = {}
    if before is not None and report.status.done:
        unchanged = not request.settings and request.seed is None
        against = _against(before.path, report, quietly=as_json, unchanged=unchanged)
        if unchanged and against["other_fingerprints"]:
            status = status or 1
    if as_json:
        tables.show_json({**report.object, **against})
        click.echo(f"run directory: {report.directory}", err=True)
    context.exit(status)


def show_results(report: Report, study: Study) -> None:
    """Print the results of a study, and where they are."""
    metrics = {name: one for variant in study.variants for name, one in variant.scenario.metrics.items()}
    results.show(results.of_run(report.object, metrics, report.directory))


def _against(before: Path, report: Report, *, quietly: bool, unchanged: bool) -> dict[str, object]:
    """Compare a run with the one that it repeats, and print what is different.

    Args:
        quietly: print nothing.
        unchanged: fingerprints should be the same.

    Returns:
        The same for JSON.
    """
    from coband.simulator.analysis.comparison import data, listing, repetition
    from coband.simulator.experiments.store.store import open_run

    with open_run(before) as first, open_run(report.directory) as second:
        count, others, new = repetition.other_fingerprints(first, second)
        comparison = data.load([first, second])
        found = list(repetition.changes(comparison))
        if not quietly and (unchanged or not others):
            _show_fingerprints(comparison, before, count, others)
        if new and not quietly:
            click.echo(
                f"{len(new)} jobs that {before} does not have, or has not finished, were not compared: {_named(new)}"
            )
        if not quietly and others:
            _show_changes(comparison, before, found)
        differences = [{"label": one.now.own, **listing.difference(each)} for one in found for each in one.differences]
        return {"against": str(before), "other_fingerprints": others, "differences": differences}


def _show_fingerprints(comparison: RunComparison, before: Path, count: int, others: list[str]) -> None:
    from coband.simulator.experiments.runs.code_version import explained

    if not others:
        if count:
            click.echo(f"all {count} fingerprints are those of {before}")
        return
    click.echo(f"{len(others)} of {count} fingerprints are not those of {before}: {_named(others)}")
    one, other = (run.manifest.get("hardware") for run in comparison.runs)
    if sentence := explained(one, other, (str(before), "this run")):
        click.echo(sentence)


def _named(jobs: list[str]) -> str:
    more = f" and {len(jobs) - MOST_NAMED} more" if len(jobs) > MOST_NAMED else ""
    return "; ".join(jobs[:MOST_NAMED]) + more


def _show_changes(comparison: RunComparison, before: Path, found: list[Change]) -> None:
    """A row for each label and measure that is no longer what it was."""
    for remark in comparison.remarks():
        click.echo(remark)
    rows = [
        [
            change.now.own,
            f"{one.measure.heading}{one.footing.where}",
            *map(tables.number, change.means(one)),
            "+" * (one.mean > 0) + tables.between(one.mean, one.student),
            f"{one.count} pair{'s' * (one.count != 1)}" if one.paired else f"{one.count}, unpaired",
        ]
        for change in found
        for one in change.differences
    ]
    tables.show(["label", "measure", "before", "now", "difference", "n"], rows, left=2)
    click.echo(f"before: {before}; difference: now − before ± half the width of its 95 % interval (Student t)")
