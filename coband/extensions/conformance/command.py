"""``coband hunt``: look for faults that the algorithms of a scenario do not stand."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.extending import options

if TYPE_CHECKING:
    from coband.extensions.conformance.hunt import FailingRun, Schedule


@click.command(epilog=options.SHIPPED)
@options.FILE
@options.settings()
@options.ONLY
@click.option("--seeds", default="0:10", metavar="A:B", help="Seeds of the faults.")
@options.out_directory("Directory of the scenarios that reproduce failures; by default they are printed.")
@click.pass_context
def hunt(
    context: click.Context,
    /,
    file: Path,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    seeds: str,
    out: Path | None,
) -> None:
    """Run the algorithms of the scenario in FILE under faults drawn at random, with all checks.

    Then the network heals, and every run must end with all turns taken. A failure is shrunk to the faults that it
    takes, and given as a scenario that reproduces it. Ends with status 1 when there is one. An algorithm that cannot
    run on the network that the faults make, such as one that needs every message where datagrams are lost, is refused.
    """
    from coband.extending import study_of
    from coband.extensions.conformance.hunt import Hunt

    first, last = _range(seeds)
    scenario = options.Request(file=file, settings=settings).load()
    labels = [variant.label for variant in study_of(scenario, only).variants]
    found = runs = refused = 0
    for schedule in Hunt(scenario, labels).seeds(range(first, last)):
        click.echo(_line(schedule))
        for label, reason in schedule.refused.items():
            click.echo(f"  {label}: refused: {reason}")
        for catch in schedule.failures:
            _show(catch, scenario.name, out)
        found, runs, refused = found + len(schedule.failures), runs + schedule.runs, refused + len(schedule.refused)
    more = f", {refused} refused" if refused else ""
    click.echo(f"{found} {'failure' if found == 1 else 'failures'} in {runs} runs{more}")
    context.exit(int(found > 0))


def _line(schedule: Schedule) -> str:
    """What a schedule did, and the kinds of its faults."""
    failed = f"{len(schedule.failures)} failed" if schedule.failures else "fine" if schedule.runs else "refused"
    return f"seed {schedule.seed}: {failed} ({', '.join(sorted({fault.key for fault in schedule.faults}))})"


def _range(seeds: str) -> tuple[int, int]:
    first, colon, last = seeds.partition(":")
    if colon and first.isdecimal() and last.isdecimal() and int(first) < int(last):
        return int(first), int(last)
    raise options.BadInput(f"--seeds {seeds}: must be A:B with whole numbers 0 <= A < B, such as 0:10")


def _show(catch: FailingRun, name: str, out: Path | None) -> None:
    """What happened, and the scenario: printed, or in a file that is new or has it already."""
    click.echo(f"{catch.label}, seed {catch.seed}: {catch.error.rstrip()}")
    for fault in catch.faults:
        click.echo(f"  with {fault}")
    if out is None:
        click.echo(catch.scenario)
        return
    out.mkdir(parents=True, exist_ok=True)
    label = "".join(letter if letter.isalnum() else "_" for letter in catch.label)
    names = chain([""], (f"-{number}" for number in count(2)))
    files = (out / f"{name}-{label}-{catch.seed}{more}.yaml" for more in names)
    file = next(one for one in files if not one.exists() or one.read_text() == catch.scenario)
    file.write_text(catch.scenario)
    click.echo(f"  to see it again: coband run {file} --trace full")
