"""``coband fit``: estimate the distributions of a scenario from a run."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli import tables
from coband.simulator.cli.options import JSON, BadInput
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened


@click.command(epilog=RUNS_HELP)
@RUN
@choice
@JSON
def fit(path: Path, label: str | None, replication: int | None, as_json: bool) -> None:
    """Estimate compute times, latency, bandwidth and loss from the trace of RUN, and print lines for a scenario.

    RUN is a live or a simulated run. For each delay the family with the smallest
    criterion of Akaike is chosen among those that a scenario offers; its parameters have intervals.
    """
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
