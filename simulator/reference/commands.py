"""Commands as sheets: what ``--help`` says, from the same objects."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from coband.simulator.reference.sheets import Code, Rows, Section, Sheet, Text

Commands = dict[str, tuple[click.Context, click.Command]]


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
