"""Tables: columns of numpy arrays, with doors to pandas, Polars and Arrow, and in need of none of them."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from coband.simulator.api.errors import not_installed

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Value = int | float | bool | str | None
SHOWN_TEXT, SHOWN_HTML = 10, 20
"""Rows that a terminal and a notebook show."""
WIDTH = 150
"""Characters of a line on a terminal; columns beyond are left out."""
LONGEST = 60
"""Characters of a text that are shown."""
_LARGEST = 2**63


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Attributes:
        values: shape (rows,), of dtype int64, float64 or bool, or object for texts; 0, NaN, False or None where nothing
            is known.
        known: shape (rows,), False where nothing is known; None if everything is.
    """

    values: NDArray[Any]
    known: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, given: Sequence[Any], *, text: bool = False) -> Self:
        """A column of Python values; None is a missing one. Text and numbers together become text."""
        present = [value for value in given if value is not None]
        known = None if len(present) == len(given) else np.array([value is not None for value in given], dtype=np.bool_)
        if text or any(isinstance(value, (str, bytes)) for value in present):
            texts = np.empty(len(given), dtype=object)
            texts[:] = [None if value is None else str(value) for value in given]
            return cls(texts, known)
        dtype, empty = _type(present)
        return cls(np.array([empty if value is None else value for value in given], dtype=dtype), known)

    @property
    def is_text(self) -> bool:
        """Whether it holds texts."""
        return self.values.dtype == object

    def array(self) -> NDArray[Any]:
        """Values as numpy can hold them: whole numbers and booleans with gaps become floats with NaN."""
        if self.known is None or self.is_text or self.values.dtype.kind == "f":
            return self.values
        return np.where(self.known, self.values.astype(np.float64), np.nan)

    def items(self) -> list[Value]:
        """Python values, None where nothing is known."""
        values: list[Value] = self.values.tolist()
        if self.known is None or self.is_text:
            return values
        return [value if known else None for value, known in zip(values, self.known.tolist(), strict=True)]

    def take(self, index: NDArray[Any] | slice) -> Column:
        """The column at some rows."""
        return Column(self.values[index], None if self.known is None else self.known[index])


def _type(present: Sequence[Any]) -> tuple[type, Value]:
    """The dtype of numbers, and what fills gaps."""
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return np.bool_, False
    if present and all(isinstance(value, (int, np.integer)) and abs(int(value)) < _LARGEST for value in present):
        return np.int64, 0
    return np.float64, float("nan")


class Table:
    """A table with named columns.

    ``table["regret"]`` is a column as a numpy array, ``table[0]`` a row, ``table[:5]`` a part; ``len`` counts rows, and
    iteration gives each row as a dict. Missing values are None in rows and texts, and NaN in columns of numbers.

    Args:
        columns: by name, all of one length.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Column]) -> None:
        lengths = {name: len(column.values) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have one length, not {lengths}")
        self._columns = dict(columns)

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Any]], texts: Iterable[str] = ()) -> Self:
        """A table of rows.

        Args:
            names: of the columns.
            rows: values in the order of ``names``; None is a missing one.
            texts: names of columns that hold text, even where all is missing.
        """
        found = list(rows)
        columns = list(zip(*found, strict=True)) if found else [()] * len(names)
        known = set(texts)
        return cls({name: Column.of(values, text=name in known) for name, values in zip(names, columns, strict=True)})

    @classmethod
    def from_dicts(
        cls, rows: Iterable[Mapping[str, Any]], texts: Iterable[str] = (), first: Sequence[str] = ()
    ) -> Self:
        """A table of mappings; what a mapping lacks is missing.

        Args:
            rows: column -> value.
            texts: names of columns that hold text, even where all is missing.
            first: columns that are there in any case, before those that rows bring.
        """
        found = list(rows)
        names = list(dict.fromkeys([*first, *(name for row in found for name in row)]))
        return cls.from_rows(names, ([row.get(name) for name in names] for row in found), texts)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return next((len(column.values) for column in self._columns.values()), 0)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        columns = [column.items() for column in self._columns.values()]
        for row in zip(*columns, strict=True):
            yield dict(zip(self._columns, row, strict=True))

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Value]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: str | int | slice) -> NDArray[Any] | dict[str, Value] | Table:
        if isinstance(key, str):
            return self._column(key).array()
        if isinstance(key, slice):
            return Table({name: column.take(key) for name, column in self._columns.items()})
        if not isinstance(key, int | np.integer):
            raise TypeError(f"{key!r} is no column, row or part: select() chooses columns, and where() rows")
        if not -len(self) <= key < len(self):
            raise IndexError(f"row {key} of a table with {len(self)} rows")
        start = key % len(self)
        return next(iter(self[start : start + 1]))

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            raise KeyError(f"no column {name!r}; there is {', '.join(self._columns)}")
        return self._columns[name]

    def where(self, **values: Value) -> Table:
        """The rows that have these values, such as ``table.where(label="Async", replication=0)``.

        Raises:
            KeyError: there is no such column.
        """
        chosen = np.ones(len(self), dtype=np.bool_)
        for name, value in values.items():
            chosen &= np.array([item == value for item in self._column(name).items()], dtype=np.bool_)
        return Table({name: column.take(chosen) for name, column in self._columns.items()})

    def select(self, *names: str) -> Table:
        """Some columns, in this order.

        Raises:
            KeyError: there is no such column.
        """
        return Table({name: self._column(name) for name in names})

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame; whole numbers with gaps have the type ``Int64``."""
        import pandas

        return pandas.DataFrame({name: _for_pandas(pandas, column) for name, column in self._columns.items()})

    def to_polars(self) -> pl.DataFrame:
        """A Polars data frame.

        Raises:
            ImportError: Polars is not installed.
        """
        polars = _library("polars", "polars", "to_polars")
        types = {"i": polars.Int64, "f": polars.Float64, "b": polars.Boolean, "O": polars.String}
        return polars.DataFrame(
            [
                polars.Series(name, column.items(), dtype=types[column.values.dtype.kind])
                for name, column in self._columns.items()
            ]
        )

    def to_arrow(self) -> pa.Table:
        """An Arrow table.

        Raises:
            ImportError: pyarrow is not installed.
        """
        arrow = _library("pyarrow", "arrow", "to_arrow")
        types = {"i": arrow.int64(), "f": arrow.float64(), "b": arrow.bool_(), "O": arrow.string()}
        return arrow.table(
            {
                name: arrow.array(
                    column.values,
                    type=types[column.values.dtype.kind],
                    mask=None if column.known is None else ~column.known,
                )
                for name, column in self._columns.items()
            }
        )

    @property
    def __arrow_c_stream__(self) -> Callable[..., object]:
        """The Arrow PyCapsule interface, by which other libraries read the table; there if pyarrow is installed."""
        try:
            import_module("pyarrow")
        except ImportError:
            raise AttributeError("the Arrow PyCapsule interface needs pyarrow: pip install 'coband[arrow]'") from None
        return self._arrow_stream

    def _arrow_stream(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        shown = [[cell(value) for value in row.values()] for row in self[:SHOWN_TEXT]]
        rows = [self.columns, *shown]
        widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
        ends = np.cumsum([width + 2 for width in widths])
        fitting = max(1, int(np.searchsorted(ends, WIDTH + 2, side="right")))
        rows, widths = [row[:fitting] for row in rows], widths[:fitting]
        left = [column.is_text for column in self._columns.values()]
        lines = [
            "  ".join(
                text.ljust(width) if first else text.rjust(width)
                for text, width, first in zip(row, widths, left, strict=False)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, self._size(SHOWN_TEXT, fitting)])

    def _repr_html_(self) -> str:
        titles = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell(value))}</td>' for value in row.values())}</tr>"
            for row in self[:SHOWN_HTML]
        )
        size = html.escape(self._size(SHOWN_HTML, len(self._columns)))
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table><p>{size}</p>"

    def _size(self, rows: int, columns: int) -> str:
        """How large the table is, after dots if so many rows and columns are not all."""
        size = f"{len(self):,} rows, {len(self._columns)} columns"
        return f"... {size}" if len(self) > rows or len(self._columns) > columns else size


def cell(value: Value) -> str:
    """A value as tables show it."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _for_pandas(pandas: Any, column: Column) -> Any:
    if column.known is None or column.values.dtype.kind in "fO":
        return column.values
    kind = pandas.arrays.BooleanArray if column.values.dtype.kind == "b" else pandas.arrays.IntegerArray
    return kind(column.values, ~column.known)


def _library(name: str, extra: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise not_installed(name, extra, purpose) from None
