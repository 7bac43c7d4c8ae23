"""``coband trace verify``: is a trace what the run saw?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.trace.common import JSON, RUN, choice, opened, print_json

if TYPE_CHECKING:
    from coband.simulator.experiments.traces.verification import Verdict


@click.command()
@RUN
@choice
@JSON
@click.pass_context
def verify(context: click.Context, /, path: Path, label: str | None, replication: int | None, as_json: bool) -> None:
    """Check that a trace is whole and agrees with fingerprint and ledger; status 1 when it does not."""
    good = True
    with opened(path) as run:
        from coband.simulator.experiments.traces import verification

        for verdict in verification.verify(run, run.select(label, replication)):
            good = good and not verdict.differences
            if as_json:
                print_json(
                    {
                        "label": verdict.job.label,
                        "replication": verdict.job.replication,
                        "events": verdict.events,
                        "remark": verdict.remark or None,
                        "differences": list(verdict.differences),
                    }
                )
            else:
                click.echo(_sentence(verdict))
    context.exit(0 if good else 1)


def _sentence(verdict: Verdict) -> str:
    job = verdict.job
    head = f"{job.label}, replication {job.replication}: "
    if verdict.differences:
        return "\n".join(f"{head}{difference}" for difference in verdict.differences)
    if not verdict.events:
        return head + (verdict.remark or "no events")
    finding = f"consistent as far as it goes; {verdict.remark}" if verdict.remark else "ok"
    return f"{head}{verdict.events:,} events, {finding}"
