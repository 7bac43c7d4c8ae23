"""``coband list``: what there is."""

from __future__ import annotations

import json

import click

from coband.simulator.cli.options import JSON
from coband.simulator.terminal import tables
from coband.simulator.terminal.output import warn_of_plugins

KINDS = (
    *("algorithms", "problems", "kernels", "rewards", "noises", "topologies", "distributions", "latencies", "losses"),
    *("bandwidths", "schedules", "availabilities", "stragglers", "partitions", "outages"),
    *("encodings", "adversaries", "defences", "mechanisms", "populations", "recharges", "drifts"),
    *("datasets", "metrics", "scenarios"),
)


HELP = f"""List algorithms, problems, all kinds that scenarios can name, datasets, metrics and shipped scenarios.

KIND is one of: {", ".join(KINDS)}. By default, all kinds that have members are listed.

Every command that takes a scenario FILE takes the name of a shipped scenario too.
"""


@click.command("list", help=HELP)
@click.argument("kind", metavar="[KIND]", type=click.Choice(KINDS), required=False)
@JSON
def list_(kind: str | None, as_json: bool) -> None:
    """Print what there is of a kind, or of all."""
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.reference.items import catalogue

    warn_of_plugins()
    everything = catalogue(Registry.installed())
    chosen = {title: items for title, items in everything.items() if title == kind or kind is None}
    if as_json:
        click.echo(json.dumps(chosen, indent=2, ensure_ascii=False))
        return
    shown = [title for title, items in chosen.items() if items or kind is not None]
    for title in shown:
        click.echo("\n" * (title != shown[0]), nl=False)
        of_scenarios = title == "scenarios"
        data = [[item["data"] or "-"] if of_scenarios else [] for item in chosen[title]]
        rows = [[item["name"], *more, item["summary"]] for item, more in zip(chosen[title], data, strict=True)]
        tables.show([title, *(["data"] if of_scenarios else []), ""], rows, left=3)
