"""Groups of commands that are imported only when they are called, so that ``--help`` is fast."""

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


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    Args:
        places: name of each command -> (``module:attribute``, its help in one line).
    """

    def __init__(self, *args: Any, places: Mapping[str, tuple[str, str]], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._places = places

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._places:
            return None
        module, _, attribute = self._places[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        if ctx.resilient_parsing:  # a shell completes
            from coband.simulator.cli.completion import complete_parameters

            complete_parameters(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; unlike the inherited method, without importing commands."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, (_, text) in self._places.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the most similar name."""
        name = args[0]
        if name not in self._places and not name.startswith("-"):
            near = difflib.get_close_matches(name, list(self._places), n=1)
            advice = f"did you mean {near[0]}?" if near else f"commands: {', '.join(self._places)}"
            ctx.fail(f"there is no command {name!r}; {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; unlike the inherited method, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._places.items()])
