"""``coband describe``: the full description of an algorithm, a scenario key, a dataset or whatever else has a name."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.cli.options import JSON
from coband.simulator.experiments.registry.remembered import remembered
from coband.simulator.terminal import tables
from coband.simulator.terminal.output import warn_of_plugins

Item = dict[str, Any]

if TYPE_CHECKING:
    from coband.simulator.reference.sheets import Section, Sheet


@click.command()
@click.argument("name", metavar="NAME")
@JSON
def describe(name: str, as_json: bool) -> None:
    """Print all that is known of NAME: an algorithm, a key of scenario files, a kind, dataset, metric or scenario.

    Keys are given with those above them (network.topology) or alone (topology), kinds by their name (pareto). Where a
    word names several things, they are listed with the names to ask for.
    """
    from coband.simulator.reference.sheets import PLACE, sheet

    found: list[Item] = remembered(f"describe {name}", lambda: _look_up(name))
    if as_json:
        click.echo(json.dumps(found if len(found) > 1 else found[0], indent=2, ensure_ascii=False))
        return
    places = [item for item in found if item["kind"].endswith(PLACE)]
    texts = ["\n".join(_lines(sheet(item))) for item in found if item not in places]
    if places:
        texts.append("\n".join(_listed(name, places, bool(texts))))
    click.echo("\n\n".join(texts))


def _look_up(name: str) -> list[Item]:
    from coband.simulator.experiments.registry.registry import Registry
    from coband.simulator.reference.items import look_up

    warn_of_plugins()
    return look_up(name, Registry.installed())


def _listed(name: str, places: list[dict[str, Any]], more: bool) -> Iterator[str]:
    """The things that a word names, each by the name to ask for."""
    yield f"{name} {'also ' if more else ''}names, and `coband describe` explains:"
    rows = [[place["name"], place["kind"].split()[0], place["summary"]] for place in places]
    yield from _indented(tables.plain(["name", "", ""], rows, left=3).splitlines()[1:])


def _lines(sheet: Sheet) -> Iterator[str]:
    yield f"{sheet.name} ({sheet.kind})"
    yield from _indented(sheet.head)
    for section in sheet.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    from coband.simulator.reference import sheets

    lines: list[str] = []
    for block in section.blocks:
        match block:
            case sheets.Text(found):
                lines += found
            case sheets.Facts(pairs):
                lines += [f"{name}: {value}" for name, value in pairs]
            case sheets.Parameters(items):
                lines += sheets.parameter_lines(items)
            case sheets.Rows(header, rows):
                lines += tables.plain(header, rows, left=len(header)).splitlines()
            case sheets.Names(names):
                lines += textwrap.wrap(", ".join(names), 100, initial_indent="  ", subsequent_indent="  ")
            case sheets.Code(text):
                lines += text.splitlines()
    if section.title == "Needs":
        yield from ("", f"Needs: {lines[0]}")
        return
    if section.title:
        yield from ("", "where" if section.title == "where" else f"{section.title}:")
    yield from _indented(lines)


def _indented(lines: list[str] | tuple[str, ...]) -> Iterator[str]:
    yield from (f"  {line}".rstrip() for line in lines)
