"""Reading tables of numbers with named columns: CSV and Parquet."""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.problems.datasets import DataError, file_version
from coband.simulator.problems.world import read_only

PARQUET = (".parquet", ".pq")


def read_table(path: Path, columns: Sequence[str], label: str | None = None) -> tuple[FloatArray, IndexArray]:
    """Columns of a table, (rows, columns), and the labels of its rows as numbers, (rows,); cached until it changes.

    Args:
        path: a CSV file whose first line has the names of the columns (UTF-8, separated by commas, semicolons or
            tabs), or a Parquet file.
        columns: the wanted names, in order; they hold numbers.
        label: a column of any values, which are numbered from 0 in the order in which they first appear; None for none.

    Returns:
        Both are read-only; the labels are all 0 where there is no such column.

    Raises:
        DataError: the file is missing, a column is missing, or a value is not a finite number; with the line.
    """
    try:
        version = file_version(path)
    except OSError as error:
        raise DataError(f"the table cannot be read: {error.strerror}.", path) from None
    return _read(version, tuple(columns), label)


@lru_cache(maxsize=4)
def _read(version: tuple[Path, int, int], columns: tuple[str, ...], label: str | None) -> tuple[FloatArray, IndexArray]:
    path = version[0]
    read = _from_parquet if path.suffix.lower() in PARQUET else _from_csv
    values, labels = read(path, columns, label)
    if not len(values):
        raise DataError("the table has no rows.", path)
    known: dict[Any, int] = {}
    numbers = [known.setdefault(value, len(known)) for value in labels]
    return read_only(values), np.array(numbers or [0] * len(values), dtype=np.intp)


def _from_csv(path: Path, columns: tuple[str, ...], label: str | None) -> tuple[FloatArray, list[Any]]:
    values: list[list[float]] = []
    labels: list[Any] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            separator = max(",;\t", key=first.count)
            lines = csv.reader(stream, delimiter=separator)
            header = next(lines, [])
            places = _places(path, header, columns)
            mark = None if label is None else _places(path, header, (label,))[label]
            for row in lines:
                if row:
                    values.append(list(_numbers(path, lines.line_num, row, places)))
                if row and mark is not None:
                    labels.append(_text(path, lines.line_num, row, str(label), mark).strip())
    except UnicodeDecodeError:
        raise DataError("the table is not UTF-8; save it as UTF-8.", path) from None
    except (OSError, csv.Error) as error:
        raise DataError(f"the table cannot be read: {error}.", path) from None
    return np.array(values, dtype=np.float64).reshape(len(values), len(columns)), labels


def _places(path: Path, header: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Where the wanted columns stand."""
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) != 1:
            near = difflib.get_close_matches(column, names, n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]}?" if near else "."
            found = "two columns are called" if column in names else "there is no column"
            raise DataError(f"{found} {column!r}{meant} The columns are {', '.join(names) or 'none'}.", path, 1)
    return {column: names.index(column) for column in columns}


def _numbers(path: Path, line: int, row: Sequence[str], places: dict[str, int]) -> Iterator[float]:
    for column, place in places.items():
        text = _text(path, line, row, column, place)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"column {column!r}: {text!r} is not a finite number.", path, line)
        yield value


def _text(path: Path, line: int, row: Sequence[str], column: str, place: int) -> str:
    if place >= len(row):
        raise DataError(f"the row has {len(row)} values, so column {column!r} is missing.", path, line)
    return row[place]


def _from_parquet(path: Path, columns: tuple[str, ...], label: str | None) -> tuple[FloatArray, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow; or give a CSV file.", path) from None
    try:
        wanted = [*columns, *([] if label is None else [label])]
        _places(path, parquet.read_schema(path).names, wanted)
        table = parquet.read_table(path, columns=wanted)
        values = [table.column(column).cast("float64").to_numpy(zero_copy_only=False) for column in columns]
    except (OSError, ArrowException) as error:
        raise DataError(f"the table cannot be read: {str(error).splitlines()[0]}.", path) from None
    found = np.column_stack(values).astype(np.float64)
    rows, places = np.nonzero(~np.isfinite(found))
    if len(rows):
        raise DataError(f"column {columns[places[0]]!r}, row {rows[0] + 1}: no finite number.", path)
    return found, [] if label is None else table.column(label).to_pylist()
