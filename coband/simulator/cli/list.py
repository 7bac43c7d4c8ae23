"""``coband list``: what there is."""

from __future__ import annotations

import json
from typing import Any

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


@click.command("list")
@click.argument("kind", metavar="[KIND]", type=click.Choice(KINDS), required=False)
@JSON
def list_(kind: str | None, as_json: bool) -> None:
    """List algorithms, problems, all kinds that scenarios can name, datasets, metrics and shipped scenarios.

    KIND is one of: algorithms, problems, kernels, rewards, noises, topologies, distributions, latencies, losses,
    bandwidths, schedules, availabilities, stragglers, partitions, outages, encodings, adversaries, defences,
    mechanisms, populations, recharges, drifts, datasets, metrics, scenarios. By default all are listed of which
    there are any.

    Every command that takes a scenario FILE takes the name of a shipped scenario too.
    """
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.reference.items import catalogue

    warn_of_plugins()
    everything = catalogue(Registry.installed())
    chosen = everything if kind is None else {kind: everything[kind]}
    if as_json:
        click.echo(json.dumps(chosen, indent=2, ensure_ascii=False))
    else:
        shown = [(title, items) for title, items in chosen.items() if items or kind is not None]
        for number, (title, items) in enumerate(shown):
            _show(title, items, blank=number > 0)


def _show(title: str, items: list[dict[str, Any]], blank: bool) -> None:
    if blank:
        click.echo()
    header, rows = [title, ""], [[item["name"], item["summary"]] for item in items]
    if title == "scenarios":
        header, rows = [title, "data", ""], [[item["name"], item["data"] or "-", item["summary"]] for item in items]
    tables.show(header, rows, left=3, keys=1)
