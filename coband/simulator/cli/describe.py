"""``coband describe``: the full description of an algorithm, a scenario key, a dataset or whatever else has a name."""

from __future__ import annotations

import json

import click

from coband.simulator.cli.options import JSON
from coband.simulator.terminal import tables
from coband.simulator.terminal.output import warn_of_plugins


@click.command()
@click.argument("name", metavar="NAME")
@JSON
def describe(name: str, as_json: bool) -> None:
    """Print all that is known of NAME: an algorithm, a key of scenario files, a kind, dataset, metric or scenario.

    Keys are given with those above them (network.topology) or alone (topology), kinds by their name (pareto). Where a
    word names several things, they are listed with the names to ask for.
    """
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.reference.items import IN_BRIEF, look_up
    from coband.simulator.reference.text import lines

    warn_of_plugins()
    found = look_up(name, Registry.installed())
    if as_json:
        click.echo(json.dumps(found if len(found) > 1 else found[0], indent=2, ensure_ascii=False))
        return
    places = [item for item in found if item.keys() == IN_BRIEF]
    texts = ["\n".join(lines(item)) for item in found if item not in places]
    if places:
        rows = [["", item["name"], item["kind"], item["summary"]] for item in places]
        title = f"{name} {'also ' if texts else ''}names, and `coband describe` explains:"
        texts.append("\n".join([title, *tables.plain([""] * 4, rows, left=4).splitlines()[1:]]))
    click.echo("\n\n".join(texts))
