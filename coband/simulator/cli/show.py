"""``coband show``: the results of a stored run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coband.simulator.cli.options import JSON
from coband.simulator.cli.runs import A_RUN, LATEST_HELP
from coband.simulator.cli.trace.common import opened
from coband.simulator.terminal import results, tables
from coband.simulator.terminal.output import warn_of_plugins

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import StoredRun


@click.command(epilog=LATEST_HELP)
@A_RUN
@click.option("--bibtex", is_flag=True, help="Print what to cite: BibTeX for its algorithms, problem and data.")
@JSON
def show(path: Path, bibtex: bool, as_json: bool) -> None:
    """Print the results of a run again: what `coband run`, `sweep` or `frontier` printed at its end.

    Of a run that goes on, or that was ended, what is finished is shown.
    """
    with opened(path) as run:
        if bibtex:
            _cite(run, as_json)
            return
        from coband.simulator.experiments.store.variants import summary

        found = summary(run)
        if as_json:
            tables.show_json(found)
        elif "frontier" in found:
            from coband.simulator.cli.frontier import show_search

            show_search(found["frontier"], path, {})
        else:
            results.show(results.of_stored(run, path))
        _say_state(run)


def _say_state(run: StoredRun) -> None:
    """Say on standard error what is missing."""
    missing = [job for job in run.jobs if job.record is None]
    if missing:
        broken = sum(job.status in ("violated", "failed") for job in missing)
        status = run.manifest.get("status", "unknown")
        state = "running, or killed" if status == "running" else status
        click.echo(
            f"{state}: {len(run.jobs) - len(missing):,} of {len(run.jobs):,} jobs have finished, {broken:,} broke off",
            err=True,
        )


def _cite(run: StoredRun, as_json: bool) -> None:
    """Print an entry for each reference, with a comment that says what it is of."""
    from coband.simulator.experiments.registry import bibliography
    from coband.simulator.experiments.registry.registry import Registry

    warn_of_plugins()
    used = bibliography.uses(run, Registry.installed())
    found = bibliography.citations(used)
    for use in used:
        if not use.known:
            click.echo(f"warning: {use.what} is not known here, so its reference is missing", err=True)
        elif not use.cites:
            click.echo(f"note: {use.what} names no reference", err=True)
    if as_json:
        tables.show_json([asdict(citation) for citation in found])
    else:
        click.echo("\n\n".join(f"% {'; '.join(citation.uses)}\n{citation.text}" for citation in found))
