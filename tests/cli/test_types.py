"""Numbers that options take: what is too large, and what is none, is refused in one message."""

from collections.abc import Iterator

import click
import pytest

from coband.simulator.cli.main import cli
from coband.simulator.cli.options import MOST_WORKERS, AtLeast, Finite
from tests.every import every

HUGE = "9" * 30


def parameters_of_commands() -> Iterator[tuple[str, click.Parameter]]:
    """(command, option or argument) of all there are."""
    waiting: list[tuple[str, click.Command]] = [("coband", cli)]
    while waiting:
        path, command = waiting.pop()
        if isinstance(command, click.Group):
            names = command.list_commands(click.Context(command))
            found = [(name, command.get_command(click.Context(command), name)) for name in names]
            waiting += [(f"{path} {name}", one) for name, one in found if one is not None]
        yield from ((path, one) for one in command.params)


NUMBERS = [found for found in parameters_of_commands() if isinstance(found[1].type, (click.IntRange, click.FloatRange))]
PATHS = [found for found in parameters_of_commands() if isinstance(found[1].type, click.Path)]


@every(("command", "parameter"), NUMBERS, ids=[f"{command} {one.name}" for command, one in NUMBERS])
@every("text", [HUGE, "nan", "inf", "-1"])
def test_what_is_no_possible_number_is_refused(command: str, parameter: click.Parameter, text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"not a finite|too large|not in the range|not a valid"):
        parameter.type_cast_value(click.Context(click.Command(command)), [text] if parameter.multiple else text)


def test_the_messages() -> None:
    with pytest.raises(click.BadParameter, match="10001 is too large: at most 10000$"):
        AtLeast(1, MOST_WORKERS).convert("10001", None, None)
    with pytest.raises(click.BadParameter, match="nan is not a finite number$"):
        Finite(min=0).convert("nan", None, None)
    assert (AtLeast(1).convert("7", None, None), Finite(min=0).convert("1e3", None, None)) == (7, 1000.0)


@every(("command", "parameter"), PATHS, ids=[f"{command} {one.name}" for command, one in PATHS])
def test_an_empty_path_is_refused(command: str, parameter: click.Parameter) -> None:
    with pytest.raises(click.BadParameter, match=r"the path is empty; \. is this directory$"):
        parameter.type.convert("", None, None)
