"""Tables: their own columns and rows, and what other libraries make of them."""

import sys

import numpy as np
import pytest

import coband
from coband.simulator.api.table import Column

ROWS = [("a", 1, 0.5, True, None), ("b", None, None, False, None), ("<c>", 3, 1.5, None, None)]
NAMES = ("text", "whole", "real", "truth", "nothing")


@pytest.fixture
def table() -> coband.Table:
    return coband.Table.from_rows(NAMES, ROWS, texts=["nothing"])


def test_columns_are_numpy_arrays(table: coband.Table) -> None:
    assert table.columns == list(NAMES)
    assert table["text"].tolist() == ["a", "b", "<c>"]
    assert (table["whole"].dtype, table["real"].dtype) == (np.float64, np.float64)
    assert np.array_equal(table["whole"], [1, np.nan, 3], equal_nan=True)
    assert table[:1]["whole"].tolist() == [1.0]
    assert coband.Table.from_rows(["n"], [(1,), (2,)])["n"].dtype == np.int64
    assert coband.Table.from_rows(["n"], [(True,)])["n"].dtype == np.bool_


def test_rows_are_dicts_of_python_values(table: coband.Table) -> None:
    assert len(table) == 3
    assert [tuple(row.values()) for row in table] == ROWS
    assert table[-1] == dict(zip(NAMES, ROWS[2], strict=True))
    assert type(table[0]["whole"]) is int
    with pytest.raises(TypeError, match=r"select\(\) chooses columns, and where\(\) rows"):
        table[["text"]]  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="row 3 of a table with 3 rows"):
        table[3]


def test_whole_numbers_stay_exact() -> None:
    large = 2**53 + 1
    assert coband.Table.from_rows(["n"], [(large,), (None,)])[0] == {"n": large}


def test_rows_and_columns_can_be_chosen(table: coband.Table) -> None:
    assert [row["text"] for row in table.where(whole=3)] == ["<c>"]
    assert [row["text"] for row in table.where(whole=None, text="b")] == ["b"]
    assert table.select("real", "text").columns == ["real", "text"]
    with pytest.raises(KeyError, match="no column 'other'; there is text, whole"):
        table["other"]


def test_columns_have_one_length() -> None:
    with pytest.raises(ValueError, match="must have one length"):
        coband.Table({**_columns([1, 2], "a"), **_columns([1], "b")})


def _columns(values: list[int], name: str) -> dict[str, Column]:
    return {name: Column.of(values)}


def test_an_empty_table() -> None:
    table = coband.Table.from_rows(["a", "b"], [], texts=["a"])
    assert (len(table), list(table), table["a"].tolist()) == (0, [], [])
    assert repr(table) == "a  b\n0 rows, 2 columns"


def test_terminals_and_notebooks_show_the_beginning(table: coband.Table) -> None:
    assert repr(table).splitlines()[0].split() == list(NAMES)
    assert repr(table).endswith("\n3 rows, 5 columns")
    assert "<td>&lt;c&gt;</td>" in table._repr_html_()
    long = coband.Table.from_rows(["n", "t"], [(number, "x" * 500) for number in range(100)])
    assert len(repr(long).splitlines()) == 12
    assert repr(long).endswith("... 100 rows, 2 columns")
    assert max(map(len, repr(long).splitlines())) < 80
    wide = coband.Table.from_rows([f"column {number}" for number in range(50)], [range(50)])
    assert repr(wide).endswith("... 1 rows, 50 columns")
    assert max(map(len, repr(wide).splitlines())) <= 150
    assert wide._repr_html_().count("<th>") == 50


def test_pandas(table: coband.Table) -> None:
    import pandas

    frame = table.to_pandas()
    assert frame.shape == (3, 5)
    assert frame["whole"].dtype == "Int64"
    assert frame["whole"].isna().tolist() == [False, True, False]
    assert frame["truth"].dtype == "boolean"
    assert pandas.isna(frame["real"][1])
    assert frame["nothing"].isna().all()


def test_polars(table: coband.Table) -> None:
    polars = pytest.importorskip("polars", reason="pip install 'coband[polars]'")
    frame = table.to_polars()
    assert frame.rows() == ROWS
    assert frame.dtypes == [polars.String, polars.Int64, polars.Float64, polars.Boolean, polars.String]


def test_arrow(table: coband.Table) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pip install 'coband[arrow]'")
    converted = table.to_arrow()
    assert [tuple(row.values()) for row in converted.to_pylist()] == ROWS
    assert arrow.table(table).equals(converted)


@pytest.mark.parametrize(
    ("module", "extra", "convert"),
    [("polars", "polars", "to_polars"), ("pyarrow", "arrow", "to_arrow")],
)
def test_a_missing_library_is_named(
    table: coband.Table, monkeypatch: pytest.MonkeyPatch, module: str, extra: str, convert: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{convert} needs {module}.*coband\[{extra}\]"):
        getattr(table, convert)()
    assert hasattr(table, "__arrow_c_stream__") == (module != "pyarrow")
    assert table._repr_html_().startswith("<table>")
