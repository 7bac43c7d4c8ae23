"""``coband show``: the results of a stored run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import A_RUN, JSON, LATEST_HELP, BadInput, opened
from coband.simulator.terminal import results, tables

if TYPE_CHECKING:
    from coband.simulator.experiments.store.store import StoredRun

FORMATS = ("latex", "markdown", "csv")
TABLES = "summary, results, details, series, ledger, fields, agents, parameters, failures, compare, words"
"""Those of `analysis.frames`, which is not imported for the help."""


@click.command(epilog=LATEST_HELP)
@A_RUN
@click.option("--bibtex", is_flag=True, help="Print what to cite: BibTeX for its algorithms, problem and data.")
@click.option(
    "--table",
    "name",
    metavar="NAME",
    type=click.Choice(TABLES.split(", ")),
    help=f"Print this table instead: {TABLES}.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Format of the table; Markdown without it.")
@click.option("--columns", metavar="NAME,...", help="Only these columns of the table, in this order.")
@JSON
def show(path: Path, bibtex: bool, name: str | None, form: str | None, columns: str | None, as_json: bool) -> None:
    """Print the results of a run again: what `coband run`, `sweep` or `frontier` printed at its end.

    If a run goes on or was ended, what is finished is shown. --table has numbers in full: of replications
    (results, details), means with intervals (summary), or of messages, agents and turns; --format without it has the
    first table that is printed otherwise.
    """
    if as_json and (name or form or columns):
        raise BadInput("give either --json, or --table, --format and --columns.")
    with opened(path) as run:
        if bibtex:
            _cite(run)
            return
        from coband.simulator.cli.frontier import of_search
        from coband.simulator.experiments.store.variants import summary

        found = summary(run)
        parts = of_search(found["frontier"], path, {}) if "frontier" in found else results.of_stored(run, path)
        if as_json:
            tables.show_json(found)
        elif name or form or columns:
            _write(run, parts, name, form or "markdown", columns)
        else:
            results.show(parts)
        _say_state(run)


def _write(run: StoredRun, parts: Iterable[results.Part], name: str | None, form: str, columns: str | None) -> None:
    """Print a table of the run, or the first one that is shown of it."""
    from pandas import DataFrame

    from coband.simulator.analysis import frames

    if name is not None:
        from coband.simulator.analysis.comparison.listing import TABLES as KNOWN

        click.echo(frames.written(KNOWN[name](run), form, columns=columns), nl=False)
        return
    shown = next((one for one in parts if isinstance(one, results.TextTable)), None)
    if shown is None:
        raise BadInput("no job has finished, so there is no table.")
    found = DataFrame(list(shown.rows), columns=list(shown.header))
    click.echo(frames.written(found, form, shown.left, columns), nl=False)


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


def _cite(run: StoredRun) -> None:
    """Print the BibTeX of what the run used: its algorithms, its problem, its data, and coband."""
    from coband.simulator.experiments.registry.bibliography import SOURCES, bibtex
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.experiments.scenario.yaml_nodes import plain, read

    registry = Registry.installed()
    document: Any = plain(read(run.scenario, "scenario.yaml")[0]) if run.scenario else {}
    problem, topology = document.get("problem") or {}, (document.get("network") or {}).get("topology")
    data, graph = problem.get("data"), topology.get("file") if isinstance(topology, dict) else None
    used: list[Any] = [registry.algorithms.get(name) for name in run.labels.values()]
    used.append(registry.problems.get(str(problem.get("kind"))))
    used.append(SOURCES.get(str(data.get("name"))) if isinstance(data, dict) else None)
    used += [one for one in SOURCES.values() if graph is not None and getattr(one, "file", None) == Path(graph).name]
    cites = [cite for one in used if one is not None for cite in one.cites]
    click.echo(bibtex([*dict.fromkeys(cites), "coband"]))
