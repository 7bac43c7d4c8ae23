"""Reading tables of numbers with named columns: CSV, also compressed by gzip, and Parquet."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import math
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coband.simulator.arrays import BoolArray, FloatArray, IndexArray
from coband.simulator.problems.datasets import DataError, file_version
from coband.simulator.problems.world import read_only

PARQUET = (".parquet", ".pq")
GZIP = b"\x1f\x8b"
"""What files that are compressed by gzip begin with."""
MISSING = ("", "na", "n/a", "nan", "null")
"""What stands for a missing value, in small or capital letters."""
_COMMA = re.compile(r"[+-]?\d*,\d+")

Missing = Literal["refuse", "drop", "mean"]


@dataclass(frozen=True)
class Form:
    """How the values of a table are read.

    Attributes:
        missing: what becomes of missing values; ``mean`` refuses those in columns that are not ``filled``.
        filled: columns that may be filled with their mean.
        one_hot: columns of any values, which become columns of 0 and 1, one for each value, in alphabetical order.
        decimal: what stands before the decimals.
    """

    missing: Missing = "refuse"
    filled: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    decimal: Literal["point", "comma"] = "point"


@dataclass(frozen=True)
class _Column:
    """A column as it is read: texts, or anything of a Parquet file, with the lines of a CSV file where they are."""

    path: Path
    name: str
    values: Sequence[Any]
    lines: Sequence[int] | None

    def wrong(self, row: int, text: str) -> DataError:
        place = f"column {self.name!r}"
        if self.lines is None:
            return DataError(f"{place}, row {row + 1}: {self.values[row]!r} {text}", self.path)
        return DataError(f"{place}: {self.values[row]!r} {text}", self.path, self.lines[row])


def read_table(
    path: Path, columns: Sequence[str], label: str | None = None, form: Form | None = None
) -> tuple[FloatArray, IndexArray]:
    """Columns of a table, (rows, columns), and the labels of its rows as numbers, (rows,); cached until it changes.

    Args:
        path: a CSV file whose first line has the names of the columns (UTF-8, separated by commas, semicolons or
            tabs), perhaps compressed by gzip, or a Parquet file.
        columns: the wanted names, in order; they hold numbers, but for those of ``form.one_hot``.
        label: a column of any values, which are numbered from 0 in the order in which they first appear; None for none.
        form: how values are read.

    Returns:
        Both are read-only; the labels are all 0 where there is no such column.

    Raises:
        DataError: the file is missing, a column is missing, or a value is not a finite number; with the line.
    """
    try:
        version = file_version(path)
    except OSError as error:
        raise DataError(f"the table cannot be read: {error.strerror}.", path) from None
    return _read(version, tuple(columns), label, form or Form())


@lru_cache(maxsize=4)
def _read(
    version: tuple[Path, int, int], columns: tuple[str, ...], label: str | None, form: Form
) -> tuple[FloatArray, IndexArray]:
    path = version[0]
    read = _from_parquet if path.suffix.lower() in PARQUET else _from_csv
    found = read(path, [*columns, *([] if label is None else [label])], form)
    if not len(found[columns[0]].values):
        raise DataError("the table has no rows.", path)
    values = np.hstack([_numbers(found[name], form) for name in columns])
    whole = ~np.isnan(values).any(axis=1)
    if label is not None:
        whole &= _labelled(found[label], form)
    if not whole.any():
        raise DataError("every row lacks a value.", path)
    labels = [] if label is None else [found[label].values[row] for row in np.flatnonzero(whole).tolist()]
    known: dict[Any, int] = {}
    numbers = [known.setdefault(one.strip() if isinstance(one, str) else one, len(known)) for one in labels]
    return read_only(values[whole]), np.array(numbers or [0] * int(whole.sum()), dtype=np.intp)


def _labelled(column: _Column, form: Form) -> BoolArray:
    """Which rows have a label, (rows,)."""
    there = np.array([not _absent(value) for value in column.values])
    if form.missing == "refuse" and not there.all():
        text = "is missing. With problem.missing: drop such rows are left out."
        raise column.wrong(int(np.argmin(there)), text)
    return there


def _numbers(column: _Column, form: Form) -> FloatArray:
    """A column as numbers, (rows, 1), or (rows, values) where it is one-hot; NaN in rows that are to be left out."""
    one_hot, filled = column.name in form.one_hot, column.name in form.filled
    found = _zeros_and_ones(column.values) if one_hot else _floats(column, form)
    absent = np.isnan(found[:, 0])
    if absent.any() and (form.missing == "refuse" or (form.missing == "mean" and not filled)):
        fill = ", and mean fills in the mean of the column" if filled else ""
        text = f"is not a finite number. With problem.missing: drop such rows are left out{fill}."
        raise column.wrong(int(np.argmax(absent)), text)
    if form.missing == "mean" and not absent.all():
        found[absent] = found[~absent].mean(axis=0)
    return found


def _zeros_and_ones(values: Sequence[Any]) -> FloatArray:
    texts = ["" if _absent(value) else str(value).strip() for value in values]
    known = {text: place for place, text in enumerate(sorted({*texts} - {""}))}
    found = np.zeros((len(texts), max(1, len(known))))
    for row, text in enumerate(texts):
        found[row, known.get(text, slice(None))] = 1.0 if text else np.nan
    return found


def _floats(column: _Column, form: Form) -> FloatArray:
    if form.decimal == "point":
        with suppress(TypeError, ValueError):  # all at once, if there is nothing to say
            found = np.array(column.values).astype(np.float64)[:, None]
            if np.isfinite(found).all():
                return found
    found = np.array([[_float(value, form.decimal)] for value in column.values])
    for row in np.flatnonzero(np.isinf(found))[:1]:
        value = column.values[row]
        raise column.wrong(int(row), f"is not a finite number.{_advice(column, value, form)}")
    return found


def _float(value: Any, decimal: str) -> float:
    """A number; NaN where it is missing, infinite where it is none."""
    if _absent(value):
        return math.nan
    try:
        return float(
            value.replace(".", "?").replace(",", ".") if decimal == "comma" and isinstance(value, str) else value
        )
    except (TypeError, ValueError):
        return math.inf


def _absent(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def _advice(column: _Column, value: Any, form: Form) -> str:
    """What to do about a value that is no number."""
    text = str(value).strip()
    if form.decimal == "point" and _COMMA.fullmatch(text):
        return " Decimal commas are read with problem.decimal: comma."
    if form.decimal == "comma" and "." in text:
        return " With problem.decimal: comma numbers have no points."
    if column.name in form.filled and text[:1].isalpha() and text.lower().lstrip("+-") not in ("inf", "infinity"):
        return f" Texts become columns of 0 and 1 with problem.one_hot: [{column.name}]."
    return ""


def _from_csv(path: Path, wanted: Sequence[str], form: Form) -> dict[str, _Column]:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
        with (gzip.open if packed else open)(path, "rb") as content:
            stream = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            first = stream.readline()
            stream.seek(0)
            lines = csv.reader(stream, delimiter=max(",;\t", key=first.count))
            places = _places(path, next(lines, []), wanted)
            cells: dict[str, list[str]] = {name: [] for name in places}
            numbers: list[int] = []
            for row in filter(None, lines):
                numbers.append(lines.line_num)
                for name, place in places.items():
                    if place >= len(row):
                        text = f"the row has {len(row)} values, so column {name!r} is missing."
                        raise DataError(text, path, lines.line_num)
                    cells[name].append(row[place])
    except UnicodeDecodeError:
        raise DataError("the table is not UTF-8; save it as UTF-8.", path) from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise DataError(f"the table cannot be read: {error}.", path) from None
    return {name: _Column(path, name, values, numbers) for name, values in cells.items()}


def _places(path: Path, header: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Where the wanted columns stand."""
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) > 1:
            raise DataError(f"two columns are called {column!r}; rename one of them.", path, 1)
        if column not in names:
            near = difflib.get_close_matches(column, names, n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]}?" if near else "."
            there = ", ".join(names) or "none"
            raise DataError(f"there is no column {column!r}{meant} The columns are {there}.", path, 1)
    return {column: names.index(column) for column in columns}


def _from_parquet(path: Path, wanted: Sequence[str], form: Form) -> dict[str, _Column]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow; or give a CSV file.", path) from None
    try:
        _places(path, parquet.read_schema(path).names, wanted)
        table = parquet.read_table(path, columns=list(wanted))
    except (OSError, ArrowException) as error:
        raise DataError(f"the table cannot be read: {str(error).splitlines()[0]}.", path) from None
    return {name: _Column(path, name, table.column(name).to_pylist(), None) for name in wanted}
