"""Types of options: numbers that a store has room for, none of them NaN or infinite, and paths with their metavars."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from coband.simulator.cli.progress import verbosity

LARGEST = 2**63 - 1
"""The largest whole number in a SQLite database."""
MOST_WORKERS = 10_000
UNITS = {"m": 1 / 60, "h": 1.0, "d": 24.0}
"""Of durations, in hours."""


class AtLeast(click.IntRange):
    """A whole number from a smallest one on; the largest one goes without saying in the help."""

    def __init__(self, least: int, most: int = LARGEST) -> None:
        super().__init__(min=least)
        self._most = most

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """``N``, where an option says nothing else."""
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number > self._most:
            self.fail(f"{value} is too large: at most {self._most}", param, ctx)
        return number


class Finite(click.FloatRange):
    """A number in a range; comparisons let NaN through, which is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Place(click.Path):
    """A path of a file or of a folder, with the metavar that says which; an empty one is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the path is empty; . is this directory", param, ctx)
        return super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """``FILE`` or ``DIR``."""
        return "FILE" if self.file_okay else "DIR"


class Out(Place):
    """A place to write to. Directories above it are made where they are not there, which is said: it may be a slip."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Path = super().convert(value, param, ctx)
        own = param is not None and value == param.default
        if not own and not path.parent.exists() and not (ctx and (ctx.resilient_parsing or verbosity() == "quiet")):
            click.echo(f"note: the directory {path.parent} is not there; it is made", err=True)
        return path


FILE_PATH, FOLDER = Place(path_type=Path, dir_okay=False), Place(path_type=Path, file_okay=False)


class Hours(Finite):
    """A duration in hours, or with a unit: 90m, 3h, 2d."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text, unit = str(value), UNITS.get(str(value)[-1:])
        return super().convert(text if unit is None else text[:-1], param, ctx) * (unit or 1.0)
