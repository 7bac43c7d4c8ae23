"""``coband trace verify``: check that a trace is complete and correct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import JSON_LINES
from coband.simulator.cli.trace.common import RUN, RUNS_HELP, choice, opened, print_json

if TYPE_CHECKING:
    from coband.simulator.analysis.traces.verification import TraceVerification


@click.command(epilog=RUNS_HELP)
@RUN
@choice
@JSON_LINES
@click.pass_context
def verify(context: click.Context, /, path: Path, label: str | None, replication: int | None, as_json: bool) -> None:
    """Compute fingerprint, ledger and results of a run again from its events; exit status 1 if any of them differs.

    It also checks that traces are complete, and has SQLite check the whole store.
    """
    good = True
    with opened(path) as run:
        from coband.simulator.analysis.traces import verification

        for result in verification.verify(run, run.select(label, replication)):
            good = good and not result.differences
            if as_json:
                print_json(
                    {
                        "label": result.job.label,
                        "replication": result.job.replication,
                        "events": result.events,
                        "remark": result.remark or None,
                        "differences": list(result.differences),
                    }
                )
            else:
                click.echo(_sentence(result))
        for sentence in verification.of_store(run):
            good = False
            if as_json:
                print_json({"store": str(run.file), "differences": [sentence]})
            else:
                click.echo(sentence)
    context.exit(0 if good else 1)


def _sentence(result: TraceVerification) -> str:
    job = result.job
    head = f"{job.label}, replication {job.replication}: "
    if result.differences:
        return "\n".join(f"{head}{difference}" for difference in result.differences)
    if not result.events:
        return head + (result.remark or "no events")
    finding = f"consistent as far as it goes; {result.remark}" if result.remark else "ok"
    return f"{head}{result.events:,} events, {finding}"
