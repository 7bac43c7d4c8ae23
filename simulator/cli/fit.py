"""``coband fit``: estimate the distributions of a scenario from a run, or measure a generator of devices."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli import tables
from coband.simulator.cli.options import JSON, BadInput
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened


@click.command(epilog=RUNS_HELP)
@RUN
@click.option(
    "--population",
    is_flag=True,
    help="RUN is a scenario: compare devices of a generator fitted to its population with rows that were held out.",
)
@choice
@JSON
def fit(path: Path, population: bool, label: str | None, replication: int | None, as_json: bool) -> None:
    """Estimate compute times, latency, bandwidth and loss from the trace of RUN, and print lines for a scenario.

    RUN is a live or a simulated run. For each delay the family with the smallest
    criterion of Akaike is chosen among those that a scenario offers; its parameters have intervals.
    """
    if population:
        if label is not None or replication is not None:
            raise BadInput("--label and --replication are about a run; --population is given a scenario.")
        _population(path, as_json)
        return
    from coband.simulator.analysis.fit.estimation import estimates, lines
    from coband.simulator.analysis.fit.samples import samples
    from coband.simulator.analysis.traces.reading import TraceReader, one_job

    with opened(path) as stored:
        found = estimates(samples(TraceReader(one_job(stored, label, replication))))
    if as_json:
        tables.show_json(found.listed())
        return
    text = list(lines(found))
    if not text:
        raise BadInput(f"{path}: the trace has too few turns and messages to estimate anything from; run longer")
    for line in text:
        click.echo(line)


def _population(path: Path, as_json: bool) -> None:
    """Print the acceptance list of a generator."""
    from coband.simulator.analysis.fit.population import LIMIT, acceptance, as_json_rows
    from coband.simulator.experiments.scenario.loading import load

    scenario = load(path)
    if scenario.agents.population is None:
        raise BadInput(f"{path}: agents.population is missing; give the table that a generator is to be fitted to")
    try:
        found = acceptance(scenario.agents.population)
    except ValueError as error:
        raise BadInput(f"{path}: agents.population: {error}") from None
    if as_json:
        tables.show_json(as_json_rows(found))
        return
    header = ("of", "what", "held out", "generator", "difference", "by chance", f"within {LIMIT}")
    rows = []
    for one in found:
        numbers = (f"{one.held_out:.4g}", f"{one.drawn:.4g}", f"{one.difference:+.3f}", f"{one.chance:.3f}")
        rows.append((one.of, one.what, *numbers, one.verdict))
    tables.show(header, rows, left=2)
    if (dropped := scenario.agents.population.dropped) != "":
        click.echo(dropped)
