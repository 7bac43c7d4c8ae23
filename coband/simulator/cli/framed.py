"""Tables with frames that fit a terminal: as one, as several with fewer columns each, or as blocks of lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
