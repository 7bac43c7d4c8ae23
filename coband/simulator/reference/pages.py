"""The pages of the reference: one of all commands, and of each section, list of kinds and family of algorithms."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import index
from coband.simulator.reference.items import Items, algorithm_item
from coband.simulator.reference.text import Item, code, markdown

Commands = dict[str, tuple[click.Context, click.Command]]
COMMANDS, KEYS, KINDS, ALGORITHMS = "commands", "keys", "kinds", "algorithms"
FILE = f"{KEYS}/file"
"""The page of the sections that have no keys of their own."""


def commands(program: click.Group) -> Commands:
    """Every command by its full name, such as ``coband trace why``."""
    context = click.Context(program, info_name="coband", **program.context_settings)
    return dict(_below(program, context))


def _below(group: click.Group, context: click.Context) -> Iterator[tuple[str, tuple[click.Context, click.Command]]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield inner.command_path, (inner, command)
        if isinstance(command, click.Group):
            yield from _below(command, inner)


def command_item(context: click.Context, command: click.Command) -> Item:
    """Usage, arguments, options and commands below a command."""
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    below = _below(command, context) if isinstance(command, click.Group) else ()
    text = inspect.cleandoc(command.help or "").replace("\b\n", "").split("\n\n")
    records = [record for one in options if (record := one.get_help_record(context))]
    return {
        "kind": "command",
        "name": context.command_path,
        "text": "\n".join(" ".join(paragraph.split()) for paragraph in text),
        "usage": " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        "options": [{"name": name, "description": meaning} for name, meaning in records],
        "commands": [{"name": path, "summary": inner.get_short_help_str(200)} for path, (_, inner) in below],
        "remarks": command.epilog or "",
    }


def _label(family: str, name: str) -> str:
    """What links name; letters are small in it, and names that differ by these alone have different ones."""
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", f"{family}-{name}".replace(" ", "-"))


def pages(program: click.Group, registry: Registry) -> Mapping[str, str]:
    """The text of every page by its name, a path without its ending."""
    found, items = index(registry), Items(index(registry), registry)
    content: dict[str, list[Item]] = {COMMANDS: [command_item(*one) for one in commands(program).values()]}
    for entry in found.entries.values():
        path = entry.paths[0]
        has_keys = entry.is_kind or len(path) > 1 or found.inside(found.keys("")[path[0]])
        page = f"{KINDS}/{path[0]}" if entry.is_kind else f"{KEYS}/{path[0]}" if has_keys else FILE
        content.setdefault(page, []).append(items.item(entry))
    for algorithm in registry.algorithms.values():
        family = algorithm.agent.__module__.removeprefix("coband.agents.").partition(".")[0]
        content.setdefault(f"{ALGORITHMS}/{family}", []).append(algorithm_item(algorithm))
    labels = {one["name"]: _label(page.partition("/")[0], one["name"]) for page in content for one in content[page]}

    def link(name: str) -> str | None:
        return f"#{labels[name]}" if name in labels else None

    texts = {}
    for page, inside in content.items():
        family, _, title = page.partition("/")
        lines = ["---\norphan: true\n---\n", f"# {family.capitalize()}{f' of {code(title)}' if title else ''}\n"]
        lines += [line for one in inside for line in markdown(one, link, labels[one["name"]])]
        texts[page] = "\n".join(lines)
    return texts


def write(folder: Path, pages: Mapping[str, str]) -> None:
    """Write pages that have changed, and remove those that are no more."""
    wanted = {folder / f"{name}.md": text for name, text in pages.items()}
    for file in folder.rglob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
