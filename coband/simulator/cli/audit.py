"""``coband audit``: attack the privacy that a scenario promises."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import FILE, JSON, ONLY, SHIPPED, AtLeast, Finite, Request, settings

if TYPE_CHECKING:
    from coband.simulator.analysis.audit import Verdict


TRIALS = 1000


@click.command(epilog=SHIPPED)
@FILE
@settings()
@click.option("--replications", type=AtLeast(100, 1_000_000), help="Number of trials of each world; 1000 by default.")
@ONLY
@click.option(
    "--confidence",
    type=Finite(0.5, 1, min_open=True, max_open=True),
    default=0.99,
    metavar="SHARE",
    help="With which the bound holds.",
)
@JSON
@click.pass_context
def audit(
    context: click.Context,
    /,
    file: Path,
    settings: tuple[str, ...],
    replications: int | None,
    only: tuple[str, ...],
    confidence: float,
    as_json: bool,
) -> None:
    """Attack the privacy of the scenario in FILE, and bound its epsilon from below.

    The messages of one run are sent many times with fresh noise, with one pull more and without it, and an attack
    learns to tell which; without a section messages.privacy, those of algorithms that put noise on what they send by
    themselves. Ends with status 1 when what it proves is more than what the accountant promises. Messages
    are those of one run: that their times or numbers change with a pull is no part of it (`coband describe ALGORITHM`
    says what is not private).
    """
    from coband.simulator.analysis.audit import audited
    from coband.simulator.experiments.runs.study import study_of

    scenario = Request(file=file, settings=settings).load()
    labels = [variant.label for variant in study_of(scenario, only).variants]
    entries = [entry for entry in scenario.algorithms if entry.label in labels]
    found = []
    for entry in entries:
        verdict = audited(scenario, entry, replications or TRIALS, confidence)
        found.append(verdict)
        if not as_json:
            click.echo("\n".join(_lines(verdict)))
    if as_json:
        click.echo(json.dumps([asdict(one) | {"refuted": one.refuted} for one in found], indent=2))
    context.exit(int(any(one.refuted for one in found)))


def _lines(verdict: Verdict) -> list[str]:
    true, false = verdict.true_positives / verdict.trials, verdict.false_positives / verdict.trials
    seen = "the noised pull" if verdict.messages == 1 else f"{verdict.messages} messages"
    lines = [
        f"{verdict.label}: accounted epsilon {verdict.accounted:.4g}",
        f"  an attack that saw {seen} says yes in {true:.1%} of {verdict.trials} trials with the pull, and in "
        f"{false:.1%} without",
        f"  so epsilon is at least {verdict.least:.3g}, whatever the mechanism ({verdict.confidence:.0%} confidence)",
    ]
    if verdict.least_gaussian is not None:
        lines.append(f"  and at least {verdict.least_gaussian:.3g} of Gaussian noise")
    lines.append("  MORE THAN ACCOUNTED: there is less noise than promised" if verdict.refuted else "  as accounted")
    return lines
