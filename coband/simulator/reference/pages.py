"""All pages of the reference: commands, keys, kinds and algorithms, and the lists that lead to them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import relpath

import click

from coband.simulator.experiments.registry.bibliography import library
from coband.simulator.experiments.registry.catalogue import describe
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import Entry, index
from coband.simulator.reference.items import Items
from coband.simulator.reference.markdown import code, named, page, prose, table
from coband.simulator.reference.sheets import Code, Rows, Section, Sheet, Text, sheet

Commands = dict[str, tuple[click.Context, click.Command]]

COMMANDS, KEYS, KINDS, ALGORITHMS = "commands", "keys", "kinds", "algorithms"
TITLES = {COMMANDS: "Commands", KEYS: "Scenario keys", KINDS: "Kinds", ALGORITHMS: "Algorithms"}
INTRODUCTIONS = {
    COMMANDS: "One page for each command, from the program itself; `coband COMMAND --help` prints the same.",
    KEYS: "One page for each key of scenario files; `coband describe KEY` prints the same. Keys of a kind, such as the "
    "`minimum` of `pareto`, are named after the kind where it can stand in several places.",
    KINDS: "The values of `kind:`, each with its parameters; `coband describe KIND` prints the same.",
    ALGORITHMS: "Parameters, messages and closed forms of each algorithm; `coband describe NAME` prints the same.",
}


def commands(program: click.Group) -> Commands:
    """Every command by its full name, such as ``coband trace why``, with those that it has below it."""
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


def command_sheet(context: click.Context, command: click.Command) -> Sheet:
    """Usage, arguments, options and commands below a command."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    sections = [Section("Usage", (Code(usage, "console"),)), *_parameters(context, command)]
    if isinstance(command, click.Group):
        rows = tuple((path, inner.get_short_help_str(200)) for path, (_, inner) in _below(command, context))
        sections.append(Section("Commands", (Rows(("name", "meaning"), rows, tuple(path for path, _ in rows)),)))
    if command.epilog:
        sections.append(Section("", (Text(tuple(_paragraphs(command.epilog))),)))
    return Sheet(context.command_path, "command", tuple(_paragraphs(command.help or "")), tuple(sections))


def _parameters(context: click.Context, command: click.Command) -> Iterator[Section]:
    options = [found for found in command.get_params(context) if isinstance(found, click.Option)]
    records = [record for found in options if (record := found.get_help_record(context))]
    if records:
        yield Section("Options", (Rows(("option", "meaning"), tuple(records)),))


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text, each on one line; marks of click for the terminal are left out."""
    for paragraph in inspect.cleandoc(text).replace("\b\n", "").split("\n\n"):
        yield " ".join(paragraph.split())


class Pages:
    """Makes the pages."""

    def __init__(self, program: click.Group, registry: Registry) -> None:
        self._registry, self._commands, self._index = registry, commands(program), index(registry)
        self._items = Items(self._index, registry)
        self._addresses = {path: f"{COMMANDS}/{path.replace(' ', '_')}" for path in self._commands}
        self._addresses |= {name: f"{ALGORITHMS}/{name}" for name in registry.algorithms}
        for entry in self._index.entries.values():
            self._addresses[entry.name] = f"{KINDS if entry.is_kind else KEYS}/{entry.name}"

    def all(self) -> Mapping[str, str]:
        """The text of every page by its name, a path without its ending."""
        found = {self._addresses[sheet.name]: self._page(sheet) for sheet in self._sheets()}
        return {**found, **{f"{folder}/index": "\n".join(self._list(folder)) + "\n" for folder in TITLES}}

    def _sheets(self) -> Iterator[Sheet]:
        for context, command in self._commands.values():
            yield command_sheet(context, command)
        for entry in self._index.entries.values():
            yield sheet(self._items.item(entry))
        for name in self._registry.algorithms:
            yield self._algorithm(name)

    def _algorithm(self, name: str) -> Sheet:
        """The sheet of an algorithm with the BibTeX of its paper."""
        found = sheet(next(item for item in describe(name, self._registry) if item["kind"] == "algorithm"))
        cites = self._registry.algorithms[name].cites
        entries = [cite if cite.lstrip().startswith("@") else library().get(cite, "") for cite in cites]
        paper = (
            [Section("Paper", tuple(Code(text.strip(), "bibtex") for text in entries if text))] if any(entries) else []
        )
        return Sheet(found.name, found.kind, found.head, (*found.sections, *paper))

    def _page(self, sheet: Sheet) -> str:
        here = self._addresses[sheet.name]
        folder = here.partition("/")[0]
        above = f"[Reference](../../reference.md) / [{TITLES[folder]}](index.md)"
        return page(sheet, lambda name: self._link(name, here), above)

    def _link(self, name: str, here: str) -> str | None:
        address = self._addresses.get(name)
        return None if address is None else f"{relpath(address, here.rpartition('/')[0])}.md"

    def _list(self, folder: str) -> Iterator[str]:
        yield from (f"# {TITLES[folder]}", "", INTRODUCTIONS[folder], "")
        for title, rows in self._groups(folder):
            if title:
                yield from (f"## {code(title)}", "")
            cells = [
                (named(name, name, lambda name: self._link(name, f"{folder}/index")), prose(text))
                for name, text in rows
            ]
            yield from (*table(("name", "meaning"), cells), "")

    def _groups(self, folder: str) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
        """The rows of a list, by section of a scenario file where they are keys or kinds."""
        if folder == COMMANDS:
            yield "", [(path, command.get_short_help_str(200)) for path, (_, command) in self._commands.items()]
        elif folder == ALGORITHMS:
            yield "", [(name, found.summary) for name, found in self._registry.algorithms.items()]
        else:
            yield from self._entries(folder == KINDS)

    def _entries(self, kinds: bool) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        groups: dict[str, list[Entry]] = {}
        for entry in self._index.entries.values():
            if entry.is_kind == kinds:
                groups.setdefault(entry.paths[0][0], []).append(entry)
        for title in sorted(groups, key=list(self._index.models.keys("")).index):
            yield title, [(entry.name, self._items.line(entry)["summary"]) for entry in groups[title]]


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
