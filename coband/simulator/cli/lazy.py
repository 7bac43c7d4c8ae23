"""Groups of commands: names that are nearly right are answered; commands of the program and of extensions are
imported only when they are called, so that ``--help`` is fast.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.plugins import entry_points

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ReaderGoneError(Exception):
    """The reader of the output has closed the pipe; not an `OSError`, which click would turn into exit status 1."""


class Group(click.Group):
    """A group with its commands in the order in which they are defined."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the most similar name."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}; {self._advice(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def _advice(self, name: str, known: list[str]) -> str:
        """What to do about a command that is not there."""
        near = difflib.get_close_matches(name, known, n=1)
        return f"did you mean {near[0]}?" if near else f"commands: {', '.join(known)}"


class LazyGroup(Group):
    """A group whose commands are modules of this package, or of extensions, imported when they are called.

    Args:
        lists: title -> name of each command -> its help in one line.
    """

    def __init__(self, *args: Any, lists: Mapping[str, Mapping[str, str]], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._own = lists

    @cached_property
    def lists(self) -> dict[str, dict[str, str]]:
        """Title of a list -> command -> its help in one line, with the commands of extensions."""
        found = {title: dict(commands) for title, commands in self._own.items()}
        for name, one in sorted(entry_points.commands().items()):
            if not self._is_own(name):
                found.setdefault(one.group, {})[name] = one.help
        return found

    def _is_own(self, name: str) -> bool:
        return any(name in commands for commands in self._own.values())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(chain(*self.lists.values()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command
        if self._is_own(cmd_name):
            module = vars(importlib.import_module(f"{__package__}.{cmd_name}"))
            command = module.get(cmd_name) or module[f"{cmd_name}_"]  # where the name is one of Python's own
            return command
        if cmd_name not in (offered := entry_points.commands()):
            return None
        try:
            return entry_points.imported(offered[cmd_name].where, click.Command)
        except entry_points.PluginError as error:
            raise click.UsageError(f"the command {cmd_name!r} of an extension does not work: {error}.") from error

    def _advice(self, name: str, known: list[str]) -> str:
        if not (absent := entry_points.absent()):
            return super()._advice(name, known)
        near = "".join(f"did you mean {one}? Or " for one in difflib.get_close_matches(name, known, n=1, cutoff=0.62))
        told = ", ".join(f"{one} ({why})" for one, why in absent.items())
        return f"{near}it may be of an extension that cannot be imported: {told}"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; unlike the inherited method, without importing commands."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for part in self.lists.values() for name, text in part.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of commands; unlike the inherited method, without importing them."""
        width = max(map(len, chain(*self.lists.values())))
        for title, commands in self.lists.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])
