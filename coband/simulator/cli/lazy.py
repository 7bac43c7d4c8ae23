"""Groups of commands: names that are nearly right, or gone, are answered; commands of the program are imported only
when they are called, so that ``--help`` is fast.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

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
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            from coband.simulator.experiments.scenario.gone import command  # only a mistake needs it

            _, _, above = ctx.command_path.partition(" ")
            if (gone := command(f"{above} {name}".strip())) is not None:
                ctx.fail(gone)
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"commands: {', '.join(known)}"
            ctx.fail(f"there is no command {name!r}; {advice}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group whose commands are modules beside this one, imported when they are called.

    Args:
        lists: title -> name of each command -> its help in one line.
    """

    def __init__(self, *args: Any, lists: Mapping[str, Mapping[str, str]], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._lists = lists
        self._helps = {name: text for commands in lists.values() for name, text in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._helps:
            return None
        module = vars(importlib.import_module(f"{__package__}.{cmd_name}"))
        command: click.Command = module.get(cmd_name) or module[f"{cmd_name}_"]  # where the name is one of Python's own
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; unlike the inherited method, without importing commands."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, text in self._helps.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of commands; unlike the inherited method, without importing them."""
        width = max(map(len, self._helps))
        for title, commands in self._lists.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])
