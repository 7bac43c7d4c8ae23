"""Reading tables of devices: CSV, Parquet and JSON, column by column, with bad rows by number."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import existing
from coband.simulator.core.reading import DataError, numbers_of, places_of, read_table, text_of

SHOWN = 5
"""Bad rows that a message names."""
Cells = Any
"""A list or an array of cells."""
Columns = dict[str, Cells]
"""Columns by name."""


class BadRows:
    """Rows that no device can be made of, with the first reason of each; rows are counted from 1."""

    def __init__(self, file: str, rows: int = 0) -> None:
        self.file, self.rows = file, rows
        self.reasons: dict[int, str] = {}

    def add(self, row: int, reason: str) -> None:
        """Note that a row, given by its index from 0, is bad."""
        self.reasons.setdefault(row + 1, reason)

    def __str__(self) -> str:
        shown = [f"row {row}: {reason}" for row, reason in islice(sorted(self.reasons.items()), SHOWN)]
        more = len(self.reasons) - len(shown)
        shown += [f"and {more:,} more"] if more > 0 else []
        verb = "is" if len(self.reasons) == 1 else "are"
        return f"file {self.file!r}: {len(self.reasons):,} of {self.rows:,} rows {verb} bad: {'; '.join(shown)}"

    def settle(self, on_bad_row: str) -> None:
        """Refuse bad rows, unless they may be dropped.

        Raises:
            ValueError: there is no row, one is bad and may not be dropped, or no good one is left.
        """
        if not self.rows:
            raise ValueError(f"file {self.file!r} has no rows")
        if self.reasons and on_bad_row == "refuse":
            raise ValueError(f"{self}; correct them, or give on_bad_row: drop")
        if len(self.reasons) == self.rows:
            raise ValueError(f"{self}; no row is left")

    @property
    def dropped(self) -> str:
        """Which rows are left out, in a sentence; empty if none is."""
        return f"dropped: {self}" if self.reasons else ""

    @property
    def kept(self) -> Any:
        """Indices of the good rows, from 0."""
        good = np.ones(self.rows, dtype=bool)
        good[np.fromiter(self.reasons, dtype=np.intp, count=len(self.reasons)) - 1] = False
        return np.flatnonzero(good)


def columns_of(file: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> tuple[Columns, BadRows]:
    """Columns of a table by name, and rows that are bad as they stand there.

    Args:
        file: .csv, perhaps compressed, .parquet or .json (a list of objects).
        numbers: columns to be read as numbers; an empty cell is nan.
        texts: columns to be left as they stand in the file.

    Raises:
        ValueError: it is missing, cannot be read, or lacks a column.
    """
    path = existing(file, "a table with one row per device, as .csv, .parquet or .json", key="")
    bad = BadRows(file)
    if path.suffix == ".json":
        cells = _json(path, (*numbers, *texts), bad)
    else:
        table = read_table(path, (*numbers, *texts))
        cells = table.columns
        for row in np.flatnonzero(table.lengths != len(table.names)).tolist():
            bad.add(row, f"has {table.lengths[row]} cells: must have {len(table.names)}")
    bad.rows = len(next(iter(cells.values()), ()))
    if not bad.rows:
        raise ValueError(f"file {file!r} has no rows; give one per device")
    return cells | {name: _as_numbers(cells[name], name, bad) for name in numbers}, bad


def _json(path: Path, names: Sequence[str], bad: BadRows) -> Columns:
    try:
        rows = json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise DataError(f"the file is not JSON ({error.msg})", path, error.lineno) from None
    if not isinstance(rows, list):
        raise DataError("the file must hold a list with one object per device", path)
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            bad.add(place, "is not an object")
            rows[place] = {}
    places_of(path, list(dict.fromkeys(chain(*rows))), names if rows else ())
    return {name: [row.get(name) for row in rows] for name in names}


def _as_numbers(cells: Cells, column: str, bad: BadRows) -> FloatArray:
    """A column as numbers; nan for an empty cell, and for one that is not a number."""
    values = numbers_of(cells)
    for place in np.flatnonzero(np.isinf(values)).tolist():
        bad.add(place, f"{column} is {cells[place]!r}, which is not a number")
        values[place] = math.nan
    return values


def check_range(
    values: FloatArray, given: FloatArray, column: str, limit: float, unit: str, bad: BadRows, zero: bool = False
) -> None:
    """Note values that are 0, negative or absurdly large; nan stands for an empty cell.

    Args:
        values: in the unit of the limit.
        given: as they stand in the file.
        zero: whether 0 is a value like others.
    """
    above = (values >= 0) if zero else (values > 0)
    most = f"{'>=' if zero else '>'} 0 and at most {f'{limit:,.0f} {unit}'.rstrip()}"
    for place in np.flatnonzero(~(np.isnan(values) | (above & (values <= limit)))).tolist():
        bad.add(place, f"{column} is {given[place]:g}: must be {most}")


def windows_by_id(file: str, on_bad_row: str) -> tuple[Mapping[str, list[tuple[float, float]]], str]:
    """Windows (up, down) by the id of their trace, from a table with one row per window; and which rows were dropped.

    Raises:
        ValueError: the table cannot be read, or a row is not a window and may not be dropped; the text names it.
    """
    found, bad = columns_of(file, ("up", "down"), ("id",))
    up, down = found["up"], found["down"]
    for place in np.flatnonzero(~(up >= 0) | ~(down >= up)).tolist():
        bad.add(place, f"from {up[place]:g} to {down[place]:g} is not a window: must have 0 <= up <= down")
    bad.settle(on_bad_row)
    windows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ids, begins, ends = found["id"], up.tolist(), down.tolist()
    for row in bad.kept.tolist():
        windows[str(ids[row])].append((begins[row], ends[row]))
    return windows, bad.dropped


def pairs_in(value: object) -> Iterator[tuple[float, float]]:
    """Windows in JSON: a list of [up, down].

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list of windows [up, down]")
    for pair in value:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(time) in (int, float) for time in pair)):
            raise ValueError(f"{pair!r} is not a window [up, down]")
        yield float(pair[0]), float(pair[1])
