"""``coband compare``: rankings and differences of algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import JSON, LATEST_HELP, RUNS, BadInput, Finite, against, analysed
from coband.simulator.terminal import results, tables

if TYPE_CHECKING:
    from coband.simulator.analysis.comparison.analysis import Analysis
    from coband.simulator.analysis.comparison.tables import ReportTable
    from coband.simulator.analysis.traces.measured import Pair


@click.command(epilog=LATEST_HELP)
@RUNS
@against
@click.option("--measure", metavar="NAME", help="Only this measure, such as regret or scalars.")
@click.option(
    "--at", type=Finite(min=0, max=1e18), metavar="TIME", help="What all have reached at this simulated time, instead."
)
@JSON
def compare(paths: tuple[Path, ...], against: str | None, measure: str | None, at: float | None, as_json: bool) -> None:
    """Compare the algorithms of one or several runs: the best on each measure, and differences with intervals.

    Algorithms that had the same arms and noise are compared replication by
    replication. A live run and a simulated one are laid side by side: what was
    measured over what was predicted.
    """
    with analysed(paths, against, measure) as analysis:
        if at is None and (both := _measured(analysis)) is not None:
            _show_measured(both, as_json)
            return
        if as_json:
            from coband.simulator.analysis.comparison.listing import listed, places

            tables.show_json(listed(analysis) if at is None else {"at_times": places(analysis, at)})
        else:
            _show(analysis, at)


def _measured(analysis: Analysis) -> list[Pair] | None:
    """What a live run and a simulated one have in common; None if there are no such two."""
    from coband.simulator.analysis.traces.measured import live_and_simulated, pairs

    found = live_and_simulated(analysis.comparison.runs)
    if found is None:
        return None
    for remark in analysis.comparison.remarks():
        click.echo(remark, err=True)
    common = list(pairs(*found))
    if not common:
        raise BadInput("the live and the simulated run have no label and replication in common; run the same ones")
    return common


def _show_measured(common: list[Pair], as_json: bool) -> None:
    if as_json:
        rows = [
            {"label": pair.label, "replication": pair.replication, **vars(row), "ratio": row.ratio}
            for pair in common
            for row in pair.rows
        ]
        tables.show_json({"measured": rows})
        return
    labels: dict[str, list[Pair]] = {}
    for pair in common:
        labels.setdefault(pair.label, []).append(pair)
    for number, (label, same) in enumerate(labels.items()):
        _show_label(label, same, number)


def _show_label(label: str, same: list[Pair], number: int) -> None:
    """One table for a label, with means over its replications."""
    from coband.simulator.analysis.traces.measured import means

    of = f"replication {same[0].replication}" if len(same) == 1 else f"means over {len(same)} replications"
    click.echo(f"{chr(10) * bool(number)}{label}, {of}: measured over predicted")
    rows = means([pair.rows for pair in same])
    cells = [[row.title, *map(tables.number, (row.predicted, row.measured)), _ratio(row.ratio)] for row in rows]
    tables.show(["quantity", "predicted", "measured", "ratio"], cells)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def _show(analysis: Analysis, at: float | None) -> None:
    for remark in analysis.comparison.remarks():
        click.echo(remark, err=True)
    for one in analysis.within:
        if one.environment:
            click.echo(f"\nin {one.environment}:")
        if at is None:
            _show_environment(one)
        else:
            results.show(results.of_snapshots(one.at(at)))


def _show_differences(title: str, table: ReportTable) -> None:
    """Differences on one measure; of columns after the mean, what all rows have in common is said above them."""
    columns = list(zip(table.header, *table.rows, strict=True))
    alike = [one for one in columns[3:-1] if len(table.rows) > 1 and len(set(one[1:])) == 1]
    shown = [columns[0], columns[-1], *(one for one in columns[1:-1] if one not in alike)]
    click.echo(f"\n{title}: {table.caption}")
    if alike:
        click.echo(f"in all rows: {'; '.join(f'{one[0]}: {one[1]}' for one in alike)}")
    header, *rows = zip(*shown, strict=True)
    tables.show(header, rows, left=2)


def _show_environment(analysis: Analysis) -> None:
    from coband.simulator.analysis.comparison import tables as report_tables

    tables.show(["measure", "in words"], [[one.measure.heading, one.sentence] for one in analysis.rankings], left=2)
    for title, table in report_tables.differences(analysis) if len(analysis.labels) > 1 else ():
        _show_differences(title, table)
    if analysis.at_times:
        click.echo()
        results.show(results.of_snapshots(analysis.at_times))
