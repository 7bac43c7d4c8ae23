"""``coband trace why``: the causes of an event."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import JSON_LINES, AtLeast
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened
from coband.simulator.cli.trace.events import print_events


@click.command(epilog=RUNS_HELP)
@RUN
@click.argument("seq", metavar="SEQ", type=AtLeast(0))
@choice
@click.option("--all", "whole", is_flag=True, help="Continue beyond that turn, to its own causes.")
@JSON_LINES
def why(path: Path, seq: int, label: str | None, replication: int | None, whole: bool, as_json: bool) -> None:
    """Print event number SEQ, its cause, the cause of that, and so on, back to the turn that started the chain."""
    with opened(path) as run:
        from coband.simulator.analysis.traces.causes import why as chain_of
        from coband.simulator.analysis.traces.reading import TraceReader, one_job

        chain = chain_of(TraceReader(one_job(run, label, replication)), seq, whole=whole)
    print_events(chain.events, run.labels, as_json)
    if not as_json:
        print(chain.sentence + chain.further("--all"))
