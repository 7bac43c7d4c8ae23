"""Tables on standard output, with frames on a terminal (as one, as several with fewer columns each, or as blocks of
lines), as plain aligned text in a pipe; and JSON.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from coband.simulator.experiments.safe_text import visible
from coband.simulator.experiments.statistics.numerals import between as between
from coband.simulator.experiments.statistics.numerals import number as number
from coband.simulator.terminal import output

if TYPE_CHECKING:
    from rich.table import Table


Rows = Sequence[Sequence[str]]
FRAME = 3
"""What a column takes beside its text, in columns of the terminal; the table takes one more."""
PROSE = 24
"""Texts beyond the keys that are longer than this may be broken between words into lines of that length."""
MOST_TABLES = 3
"""Rows that need more tables than this are shown as blocks."""


def framed(header: Sequence[str], rows: Rows, left: int, keys: int, width: int) -> Iterator[Table | str]:
    """The tables, or blocks of lines, that show all cells in a terminal of ``width`` columns.

    Args:
        header: titles of the columns.
        rows: the cells.
        left: number of leading columns that are left-aligned.
        keys: number of leading columns that each of several tables has.
        width: columns of the terminal.
    """
    least = [_least(header, rows, column, left, keys) for column in range(len(header))]
    parts = _parts(least, keys, width)
    if parts is None or len(parts) > MOST_TABLES:
        yield from _blocks(header, rows, keys, width)
        return
    for columns in parts:
        yield _table(header, rows, columns, left, keys)


def _length(text: str) -> int:
    """Columns of the terminal that a text takes: those of its longest line."""
    from rich.cells import cell_len

    return max(map(cell_len, text.splitlines()), default=0)


def _least(header: Sequence[str], rows: Rows, column: int, left: int, keys: int) -> int:
    """How narrow a column may be."""
    longest = max(_length(row[column]) for row in (header, *rows))
    if not keys <= column < left or longest <= PROSE:
        return longest
    words = [_length(word) for row in (header, *rows) for word in row[column].split()]
    return max(PROSE, *words)


def _parts(least: Sequence[int], keys: int, width: int) -> list[list[int]] | None:
    """The columns of each table: the keys, and as many others as there is room for; None if there is none for one."""
    room = width - 1 - sum(least[column] + FRAME for column in range(keys))
    others = range(keys, len(least))
    if room < 0 or any(least[column] + FRAME > room for column in others):
        return None
    parts: list[list[int]] = [[]]
    left = room
    for column in others:
        if least[column] + FRAME > left:
            parts.append([])
            left = room
        parts[-1].append(column)
        left -= least[column] + FRAME
    return [[*range(keys), *columns] for columns in parts]


def _table(header: Sequence[str], rows: Rows, columns: Sequence[int], left: int, keys: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        prose = keys <= column < left
        table.add_column(
            Text(header[column]), justify="left" if column < left else "right", no_wrap=not prose, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    return table


def _blocks(header: Sequence[str], rows: Rows, keys: int, width: int) -> Iterator[str]:
    """A block for each row: what it is about, then a line for each other cell."""
    titles = max((_length(title) for title in header[keys:]), default=0)
    for row in rows:
        yield ", ".join(row[:keys])
        for title, cell in zip(header[keys:], row[keys:], strict=True):
            first = f"  {title.ljust(titles)}  "
            lines = textwrap.wrap(cell, max(width - len(first), PROSE), break_long_words=False, break_on_hyphens=False)
            yield "\n".join(
                (first if number == 0 else " " * len(first)) + line for number, line in enumerate(lines or ["-"])
            )


SAMPLE = 200
"""Number of rows that determine the column widths of a streamed table."""

LOPSIDED = 1e-6
"""Share of the width of an interval that its middle is from the mean where rounding does not explain it."""


def estimate(mean: float | None, bounds: Sequence[float] | None) -> str:
    """A mean and its interval; both ends where it is not symmetric, as Wilson's of proportions."""
    if mean is None or bounds is None or abs(bounds[0] + bounds[1] - 2 * mean) <= LOPSIDED * (bounds[1] - bounds[0]):
        return between(mean, bounds)
    return f"{mean:.3g} [{bounds[0]:.2g}, {bounds[1]:.2g}]"


def show(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, keys: int | None = None) -> None:
    """Print a table.

    On a terminal that is too narrow for it, it becomes several tables with fewer columns, or where even these have no
    room a block of lines for each row. Nothing is cut.

    Args:
        header: titles of the columns.
        rows: the cells.
        left: number of leading columns that are left-aligned; the others contain numbers.
        keys: number of leading columns that say what a row is about, which all parts of a table have; by default
            those that are left-aligned.
    """
    if not sys.stdout.isatty():
        click.echo(plain(header, rows, left))
        return
    from rich.console import Console

    console = Console(file=output.raw(sys.stdout), color_system=output.colours())
    shown = [[visible(cell) for cell in row] for row in rows]
    for part in framed(
        [visible(title) for title in header], shown, left, left if keys is None else keys, console.width
    ):
        console.print(part, soft_wrap=isinstance(part, str), markup=False, highlight=False)


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
