"""Groups of commands that are imported only when they are called, so that ``--help`` is fast."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ReaderGoneError(Exception):
    """The reader of the output has closed the pipe; not an `OSError`, which click would turn into exit status 1."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    Args:
        package: where each command has a module of its name.
        helps: name of each command -> its help in one line.
        groups: title -> its commands, in the list of all; by default one list.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        helps: Mapping[str, str],
        groups: Mapping[str, Sequence[str]] | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*args, **keywords)
        self._package, self._helps, self._groups = package, helps, groups

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._helps:
            return None
        name = cmd_name.replace("-", "_")
        module = vars(importlib.import_module(f"{self._package}.{name}"))
        command: click.Command = module.get(name) or module[f"{name}_"]  # where the name is one of Python's own
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; unlike the inherited method, without importing commands."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, text in self._helps.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the most similar name."""
        name = args[0]
        if name not in self._helps and not name.startswith("-"):
            from coband.simulator.experiments.scenario.gone import command  # only a mistake needs it

            _, _, above = ctx.command_path.partition(" ")
            if (gone := command(f"{above} {name}".strip())) is not None:
                ctx.fail(gone)
            near = difflib.get_close_matches(name, list(self._helps), n=1)
            advice = f"did you mean {near[0]}?" if near else f"commands: {', '.join(self._helps)}"
            ctx.fail(f"there is no command {name!r}; {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of commands; unlike the inherited method, without importing them."""
        width = max(map(len, self._helps))
        for title, names in (self._groups or {"Commands": list(self._helps)}).items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self._helps[name]) for name in names])
