"""``coband counts``: communication counts of scenarios in a lock file, to detect changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import FILE_PATH, SHIPPED, BadInput, Decorator, files, options, settings, workers
from coband.simulator.terminal import progress, tables
from coband.simulator.terminal.output import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.analysis.counts.counting import Change, Counts, LockFile


@click.group()
def counts() -> None:
    """Keep the communication counts of scenarios in a file, and compare them with new runs.

    The file has the counts of the first replication by label: turns, rounds, messages and scalars. Keep it under
    version control and run `coband counts check` in your CI.
    """


def _options(several: bool) -> Decorator:
    return options(
        files("scenarios", required=not several),
        settings("Change a value of every scenario, such as the path of its data; repeatable."),
        workers("Processes.", default=1),
        click.option("--file", "lock", type=FILE_PATH, default="counts.lock.json", help="The lock file."),
    )


@counts.command(epilog=SHIPPED, short_help="Run scenarios and add their counts to the lock file.")
@_options(several=False)
def lock(scenarios: tuple[Path, ...], lock: Path, settings: tuple[str, ...], workers: int) -> None:
    """Run scenarios and add their counts to the lock file."""
    file = _file(lock)
    names = list(dict.fromkeys(map(file.name, scenarios)))
    known = [name for name in names if name in file.counts]
    if known:
        raise BadInput(f"{lock} has counts of {known[0]} already; `coband counts update` replaces them on purpose.")
    for name in names:
        file.put(name, _count(file.scenario(name), settings, workers))
        file.write()
        click.echo(f"{name}: {sum(map(len, file.counts[name].values()))} counts")


@counts.command(epilog=SHIPPED, short_help="Run scenarios and compare their counts with the lock file.")
@_options(several=True)
@click.pass_context
def check(
    context: click.Context, /, scenarios: tuple[Path, ...], lock: Path, settings: tuple[str, ...], workers: int
) -> None:
    """Run scenarios (by default all of the lock file) and compare their counts; exit status 1 if a count differs."""
    file, differ = _file(lock), []
    names = file.locked(scenarios)
    for name in names:
        if _compare(name, file, _count(file.scenario(name), settings, workers)):
            differ.append(file.scenario(name))
    if differ:
        again = file.update(differ, settings)
        click.echo(f"{len(differ)} of {len(names)} scenarios differ. If that is meant: {again}", err=True)
    context.exit(1 if differ else 0)


@counts.command(epilog=SHIPPED, short_help="Run scenarios and rewrite their counts in the lock file.")
@_options(several=True)
def update(scenarios: tuple[Path, ...], lock: Path, settings: tuple[str, ...], workers: int) -> None:
    """Run scenarios (by default all of the lock file), show the changes, and rewrite their counts."""
    file = _file(lock)
    for name in file.locked(scenarios):
        found = _count(file.scenario(name), settings, workers)
        _compare(name, file, found)
        file.put(name, found)
        file.write()


def _file(path: Path) -> LockFile:
    from coband.simulator.analysis.counts import counting

    warn_of_plugins()
    return counting.LockFile(path)


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
