"""``coband run``: run a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli import progress, tables
from coband.simulator.cli.options import SHIPPED, Request, shared

if TYPE_CHECKING:
    from coband.simulator.experiments.runs.driver import Report
    from coband.simulator.experiments.runs.study import Study
    from coband.simulator.experiments.runs.timeline import Snapshot

WITH_SERVER = {
    "regret": "regret",
    "uplink_scalars": "uplink",
    "downlink_scalars": "downlink",
    "scalars": "scalars",
    "rounds": "rounds",
    "simulated_time": "simulated time",
}
ON_A_GRAPH = {
    "regret": "group regret",
    "deliveries": "deliveries",
    "transmissions": "transmissions",
    "scalars": "scalars",
    "simulated_time": "simulated time",
}


@click.command(epilog=SHIPPED)
@shared
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Run directory, new or empty; by default runs/<name>-<number>.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
@click.pass_context
def run(context: click.Context, /, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the scenario in FILE and store what happens in a run directory.

    Each algorithm runs on each replication; all of them meet the same arms and the same noise. Where the scenario says
    `until:`, replications are added until the mean is known well enough. Ctrl-C keeps what is finished.
    """
    request = Request(**options)
    study = request.study()
    with progress.Bar(study.name) as bar:
        report = request.execute(study, out, bar)
    progress.warn(report)
    if as_json:
        click.echo(_json(report), nl=False)
        click.echo(f"run directory: {report.directory}", err=True)
    else:
        show(report, study)
    context.exit(progress.exit_code(report))


def _json(report: Report) -> str:
    from coband.simulator.experiments.runs.results import dump

    return dump(report.object)


def _declared(study: Study) -> dict[str, str]:
    """Key -> title of the numbers that problem and algorithms declare to be better low or high."""
    return {
        name: metric.heading
        for variant in study.variants
        for name, metric in variant.scenario.metrics.items()
        if metric.better and name not in (*WITH_SERVER, *ON_A_GRAPH, "messages")
    }


def show(report: Report, study: Study) -> None:
    """The table of results, and where they are."""
    declared = _declared(study)
    entries = [entry for entry in report.object["results"] if entry["replications"]]
    if entries:
        columns = WITH_SERVER if entries[0]["mean"].get("deliveries") is None else ON_A_GRAPH
        columns = columns | {
            key: title for key, title in declared.items() if any(key in entry["mean"] for entry in entries)
        }
        rows = [[entry["label"], *_cells(entry, columns)] for entry in entries]
        tables.show(["label", "n", *columns.values(), "wall seconds"], rows)
    if any(len(entry["replications"]) > 1 for entry in entries):
        click.echo("mean ± half the width of the 95 % confidence interval (Student t over n replications)")
    if len({entry["mean"]["simulated_time"] for entry in entries}) > 1:
        _show_timeline(report, [entry["label"] for entry in entries])
    for entry in entries:
        _show_closest(entry)
    click.echo(f"run directory: {report.directory}")


def _show_closest(entry: dict[str, Any]) -> None:
    """Say so where rounding may have decided which arm was pulled."""
    from coband.simulator.experiments.runs.expectations import ROUNDING, in_words
    from coband.simulator.experiments.runs.results import numbers

    gaps = numbers("closest_decision", entry["replications"])
    if close := [gap for gap in gaps if gap < ROUNDING]:
        others = f" in {len(close)} of {len(gaps)} replications" if len(gaps) > 1 else ""
        click.echo(f"{entry['label']}: {in_words(min(close))}{others}; other processors may give other results")


def _show_timeline(report: Report, labels: list[str]) -> None:
    """What each algorithm has reached at the same simulated times."""
    from coband.simulator.experiments.runs.timeline import timeline
    from coband.simulator.experiments.store.store import open_run

    with open_run(report.directory) as stored:
        rows = [
            [tables.number(round(at.time, 2)), at.label, *map(tables.number, _reached(at))]
            for at in timeline(stored, labels)
        ]
    click.echo("at the same simulated time (means over replications):")
    tables.show(["time", "label", "turns", "regret", "regret/turn", "scalars"], rows, left=2)


def _reached(at: Snapshot) -> tuple[float | None, ...]:
    return round(at.turns), round(at.regret, 1), at.regret_per_turn, round(at.scalars)


def _cells(entry: dict[str, Any], columns: Iterable[str]) -> list[str]:
    mean, bounds = entry["mean"], entry["ci95"]
    cells = [_cell(key, mean.get(key), bounds.get(key)) for key in columns]
    return [str(len(entry["replications"])), *cells, f"{mean['wall_seconds']:.2f}"]


def _cell(key: str, mean: float | None, bounds: list[float] | None) -> str:
    """A mean and its interval; Wilson's is not symmetric, so both ends are shown."""
    if key == "error" and mean is not None and bounds is not None:
        return f"{mean:.3g} [{bounds[0]:.2g}, {bounds[1]:.2g}]"
    return tables.between(mean, bounds)
