"""``coband counts``: communication counts of scenarios in a lock file, for ``coband check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import FILE_PATH, SHIPPED, BadInput, files, settings, workers
from coband.simulator.terminal import progress, tables
from coband.simulator.terminal.output import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.analysis.counts.counting import Change, Counts, LockFile


@click.command(epilog=SHIPPED)
@files("scenarios", required=False)
@settings("Change a value of every scenario, such as the path of its data; repeatable.")
@workers("Processes.", default=1)
@click.option("--file", "lock", type=FILE_PATH, default="counts.lock.json", help="The lock file.")
@click.option(
    "--update", is_flag=True, help="Show what has changed, and replace it; without FILE: all of the lock file."
)
def counts(scenarios: tuple[Path, ...], settings: tuple[str, ...], workers: int, lock: Path, update: bool) -> None:
    """Run the scenarios in FILE and add their communication counts to a lock file.

    The file has the counts of the first replication by label: turns, rounds, messages and scalars. Keep it under
    version control, and run `coband check counts.lock.json` in your CI.
    """
    from coband.simulator.analysis.counts.counting import LockFile

    warn_of_plugins()
    file = LockFile(lock)
    if update:
        names = file.locked(scenarios)
    elif scenarios:
        names = list(dict.fromkeys(map(file.name, scenarios)))
    else:
        raise BadInput("give the FILE of a scenario, or --update.")
    known = [name for name in names if name in file.counts]
    if known and not update:
        raise BadInput(f"{lock} has counts of {known[0]} already; add --update to replace them on purpose.")
    for name in names:
        found = _count(file.scenario(name), settings, workers)
        if update:
            _compare(name, file, found)
        else:
            click.echo(f"{name}: {sum(map(len, found.values()))} counts")
        file.put(name, found)
        file.write()


def differ(lock: Path, settings: Sequence[str], workers: int) -> bool:
    """Run all scenarios of a lock file again and show what differs, and the command that would accept it."""
    from coband.simulator.analysis.counts.counting import LockFile

    warn_of_plugins()
    file = LockFile(lock)
    names = file.locked(())
    others = [name for name in names if _compare(name, file, _count(file.scenario(name), settings, workers))]
    if others:
        again = file.update(map(file.scenario, others), settings)
        click.echo(f"{len(others)} of {len(names)} scenarios differ. If that is meant: {again}", err=True)
    return bool(others)


def _count(file: Path, settings: Sequence[str], workers: int) -> Counts:
    from coband.simulator.analysis.counts import counting

    with progress.Bar(file.stem) as bar:
        return counting.count(file, settings, workers, bar)


def _compare(name: str, file: LockFile, found: Counts) -> bool:
    """Show the differences, those of the hardware first; True if there are any."""
    from coband.simulator.analysis.counts import counting

    changes = counting.changes(file.counts[name], found)
    click.echo(f"{name}: {'differs' if changes else 'as locked'}")
    if changes:
        if (other := file.other_hardware(name)) is not None:
            click.echo(f"  {other}")
        rows = [[f"  {change.label}", change.count, *_values(change)] for change in changes]
        tables.show(["  label", "count", "locked", "now", ""], rows, left=2)
    return bool(changes)


def _values(change: Change) -> list[str]:
    if not change.count:
        return ["-", "a new label", ""] if change.locked is None else ["a label", "gone", ""]
    relative = f"{(change.found - change.locked) / change.locked:+.2%}" if change.locked and change.found else ""
    return [tables.number(change.locked), tables.number(change.found), relative]
