"""Tables on standard output, with frames on a terminal, as plain aligned text in a pipe; and JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

import click

from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.statistics.numerals import between as between
from coband.simulator.experiments.statistics.numerals import number as number
from coband.simulator.terminal import output

SAMPLE = 200
"""Number of rows that determine the column widths of a streamed table."""

LOPSIDED = 1e-6
"""Share of the width of an interval that its middle is from the mean where rounding does not explain it."""


def estimate(mean: float | None, bounds: Sequence[float] | None) -> str:
    """A mean and its interval; both ends where it is not symmetric, as Wilson's of proportions."""
    if mean is None or bounds is None or abs(bounds[0] + bounds[1] - 2 * mean) <= LOPSIDED * (bounds[1] - bounds[0]):
        return between(mean, bounds)
    return f"{mean:.3g} [{bounds[0]:.2g}, {bounds[1]:.2g}]"


def show(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; on a terminal with a frame, if it has the room for it.

    Args:
        header: titles of the columns.
        rows: the cells.
        left: number of leading columns that are left-aligned; the others contain numbers.
    """
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console, table = Console(file=output.raw(sys.stdout), color_system=output.colours()), Table()
        for column, title in enumerate(header):
            table.add_column(Text(visible(title)), justify="left" if column < left else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        if console.measure(table, options=console.options.update_width(10 * console.width)).maximum <= console.width:
            console.print(table)
            return
    click.echo(plain(header, rows, left))


def show_json(value: Any) -> None:
    """Print strict JSON."""
    from coband.simulator.experiments.runs.results import dump

    click.echo(dump(value), nl=False)


def stream(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of any length as aligned text; the first rows determine the column widths."""
    rest = iter(rows)
    first = list(islice(rest, SAMPLE))
    widths = [max(len(line[index]) for line in (header, *first)) for index in range(len(header))]
    for line in chain([header], first, rest):
        print(_line(line, widths, len(header)))


def plain(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """The table as aligned text, with two blanks between columns."""
    lines = [header, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    return "\n".join(_line(line, widths, left) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    aligned = [
        cell.ljust(width) if index < left else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(aligned).rstrip()
