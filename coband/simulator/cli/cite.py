"""``coband cite``: BibTeX for the algorithms, problem and data of a run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from coband.simulator.cli.options import JSON
from coband.simulator.cli.runs import RUN, RUNS_HELP
from coband.simulator.cli.trace.common import opened
from coband.simulator.terminal.output import warn_of_plugins


@click.command(epilog=RUNS_HELP)
@RUN
@JSON
def cite(path: Path, as_json: bool) -> None:
    """Print BibTeX entries for the algorithms, the problem and the data of a run."""
    from coband.simulator.experiments.registry import bibliography
    from coband.simulator.experiments.registry.registry import Registry

    warn_of_plugins()
    with opened(path) as run:
        used = bibliography.uses(run, Registry.installed())
    found = bibliography.citations(used)
    for use in used:
        if not use.known:
            click.echo(f"warning: {use.what} is not known here, so its reference is missing", err=True)
        elif not use.cites:
            click.echo(f"note: {use.what} names no reference", err=True)
    if as_json:
        click.echo(json.dumps([asdict(citation) for citation in found], indent=2, ensure_ascii=False))
        return
    click.echo("\n\n".join(f"% {'; '.join(citation.uses)}\n{citation.text}" for citation in found))
