"""``coband compare``: rankings and differences of algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli import tables
from coband.simulator.cli.options import JSON
from coband.simulator.cli.runs import RUNS, RUNS_HELP, against, analysed

if TYPE_CHECKING:
    from coband.simulator.experiments.report.analysis import Analysis


@click.command(epilog=RUNS_HELP)
@RUNS
@against
@JSON
def compare(paths: tuple[Path, ...], against: str | None, as_json: bool) -> None:
    """Compare the algorithms of one or several runs: the best on each measure, and differences with intervals.

    Algorithms that had the same arms and noise are compared replication by
    replication.
    """
    with analysed(paths, against) as analysis:
        if as_json:
            from coband.simulator.experiments.report.listing import listed
            from coband.simulator.experiments.runs.results import dump

            click.echo(dump(listed(analysis)), nl=False)
        else:
            _show(analysis)


def _show(analysis: Analysis) -> None:
    for remark in analysis.comparison.remarks():
        click.echo(remark, err=True)
    for one in analysis.within:
        if one.environment:
            click.echo(f"\nin {one.environment}:")
        _show_environment(one)


def _show_environment(analysis: Analysis) -> None:
    from coband.simulator.experiments.report import tables as report_tables
    from coband.simulator.experiments.report import theory_table

    tables.show(
        ["measure", "in words"], [[one.measure.title, one.sentence] for one in analysis.rankings], left=2, keys=1
    )
    for title, table in report_tables.differences(analysis) if len(analysis.labels) > 1 else ():
        click.echo(f"\n{title}: {table.caption}")
        rows = [[*row[:1], row[-1], *row[1:-1]] for row in table.rows]
        tables.show(["difference", "verdict", *table.header[1:-1]], rows, left=2, keys=1)
    if analysis.growths:
        growth = theory_table.growth_table(analysis.growths)
        click.echo(f"\ntheory: {growth.caption}")
        tables.show(growth.header, growth.rows, left=3, keys=1)
        for sentence in theory_table.assumptions(analysis.growths):
            click.echo(sentence)
