"""Reading tables of numbers with named columns: CSV, also compressed by gzip, and Parquet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray
from coband.simulator.core import reading
from coband.simulator.problems.datasets import DataError, file_version
from coband.simulator.problems.world import read_only

DROP = "With problem.missing: drop such rows are left out"
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
        agent: the column with the numbers of agents.
    """

    missing: Missing = "refuse"
    filled: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    decimal: Literal["point", "comma"] = "point"
    agent: str | None = None


def read_table(
    path: Path, columns: Sequence[str], label: str | None = None, form: Form | None = None
) -> tuple[FloatArray, IndexArray]:
    """Columns of a table, (rows, columns), and the labels of its rows as numbers, (rows,); cached until it changes.

    Args:
        path: a CSV file whose first line has the names of the columns (UTF-8, separated by commas, semicolons or
            tabs), perhaps compressed, or a Parquet file.
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
    table = reading.read_table(path, [*columns, *([] if label is None else [label])])
    table.check_lengths()
    if not len(table.columns[columns[0]]):
        raise DataError("the table has no rows.", path)
    values = np.hstack([_numbers(table, name, form) for name in columns])
    whole = ~np.isnan(values).any(axis=1)
    labels = [] if label is None else _texts(table.columns[label])
    if label is not None:
        there = np.array([text != "" for text in labels])
        if form.missing == "refuse" and not there.all():
            raise _wrong(table, label, int(np.argmin(there)), f"is missing. {DROP}.")
        whole &= there
    if not whole.any():
        raise DataError("every row lacks a value.", path)
    known: dict[str, int] = {}
    numbers = [known.setdefault(labels[row], len(known)) for row in np.flatnonzero(whole).tolist() if labels]
    return read_only(values[whole]), np.array(numbers or [0] * int(whole.sum()), dtype=np.intp)


def _wrong(table: reading.Table, name: str, row: int, text: str) -> DataError:
    return table.wrong(row, f"column {name!r}: {table.columns[name][row]!r} {text}")


def _numbers(table: reading.Table, name: str, form: Form) -> FloatArray:
    """A column as numbers, (rows, 1), or (rows, values) where it is one-hot; NaN in rows that are to be left out."""
    cells, one_hot, filled = table.columns[name], name in form.one_hot, name in form.filled
    values = _zeros_and_ones(cells) if one_hot else reading.numbers_of(cells, form.decimal)[:, None]
    for row in np.flatnonzero(np.isinf(values[:, 0]))[:1].tolist():
        raise _wrong(table, name, row, f"is not a finite number.{_advice(name, cells[row], form)}")
    absent = np.isnan(values[:, 0])
    if absent.any() and (form.missing == "refuse" or (form.missing == "mean" and not filled)):
        fill = ", and mean fills in the mean of the column" if filled else ""
        raise _wrong(table, name, int(np.argmax(absent)), f"is not a finite number. {DROP}{fill}.")
    if form.missing == "mean" and not absent.all():
        values[absent] = values[~absent].mean(axis=0)
    return values


def _texts(cells: Sequence[Any]) -> list[str]:
    """Cells as texts, "" where they are missing; every word is a value, such as NA for Namibia."""
    return ["" if cell is None or cell != cell else str(cell).strip() for cell in cells]


def _zeros_and_ones(cells: Sequence[Any]) -> FloatArray:
    texts = _texts(cells)
    known = {text: place for place, text in enumerate(sorted({*texts} - {""}))}
    values = np.zeros((len(texts), max(1, len(known))))
    for row, text in enumerate(texts):
        values[row, known.get(text, slice(None))] = 1.0 if text else np.nan
    return values


def _advice(name: str, value: Any, form: Form) -> str:
    """What to do about a value that is not a number."""
    text = str(value).strip()
    if form.decimal == "point" and _COMMA.fullmatch(text):
        return " Decimal commas are read with problem.decimal: comma."
    if form.decimal == "comma" and "." in text:
        return " With problem.decimal: comma numbers have no points."
    if name in form.filled and text[:1].isalpha() and text.lower().lstrip("+-") not in ("inf", "infinity"):
        return f" Texts become columns of 0 and 1 with problem.one_hot: [{name}]."
    if name == form.agent:
        return (
            f" Agents are numbers from 0; make them of names: frame[{name!r}] = pandas.factorize(frame[{name!r}])[0]."
        )
    return ""
