"""Reading files from elsewhere: what is known of encodings, byte order marks, compression, comments and separators.

Tables go through pandas and graphs through networkx, which are imported when the first such file is read.
"""

from __future__ import annotations

import importlib
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from coband.simulator.arrays import FloatArray, IndexArray

if TYPE_CHECKING:
    import networkx as nx

PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bz2"}
"""What compressed files begin with, and the modules that read them."""
PARQUET = (".parquet", ".pq")
MISSING = ("", "na", "n/a", "nan", "null")
"""What stands for a missing number, in small or capital letters."""
COMMENT = re.compile(r"^[ \t]*[#%].*$", re.MULTILINE)
PREFACE = re.compile(r"\A([ \t]*([#%].*)?\n)+")
"""Comments and empty lines above the header of a table; further down a text may begin like a comment."""
HEADERS = {("from", "to"), ("source", "target"), ("src", "dst")}
"""What stands above a column of links, in small or capital letters."""


class DataError(ValueError):
    """A dataset is unknown, missing or malformed; the text starts with the file and the line if they are known."""

    def __init__(self, message: str, path: Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, which may be compressed by gzip or bzip2.

    Raises:
        DataError: while it is read: it is missing or damaged.
    """
    try:
        with path.open("rb") as raw:
            packed = PACKED.get(raw.read(2), "io")
        with importlib.import_module(packed).open(path, "rb") as content:
            yield content
    except (OSError, EOFError, zlib.error) as error:
        said = (isinstance(error, OSError) and error.strerror) or error
        raise DataError(f"the file cannot be read: {said}.", path) from None


def text_of(path: Path, most: int | None = None) -> str:
    """The text of a file or of its first lines, with ends of lines as in Unix and without a byte order mark.

    Raises:
        DataError: it cannot be read, or is not UTF-8.
    """
    with opened(path) as stream:
        content = stream.read() if most is None else b"".join(islice(stream, most))
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        text = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8."
        raise DataError(text, path, content.count(b"\n", 0, error.start) + 1) from None


def numbers_in(path: Path) -> list[tuple[int, list[float]]]:
    """(line, its numbers) of each line that has any; blanks, commas or semicolons separate them.

    Raises:
        DataError: it cannot be read, or something in it is not a finite number; with its line.
    """
    rows = list[tuple[int, list[float]]]()
    for line, text in enumerate(COMMENT.sub("", text_of(path)).split("\n"), start=1):
        words = re.sub("[,;]", " ", text).split()
        values = [number(word) for word in words]
        for word, value in zip(words, values, strict=True):
            if not math.isfinite(value):
                raise DataError(f"{word!r} is not a finite number; the file must hold numbers", path, line)
        if words:
            rows.append((line, values))
    return rows


def number(cell: Any, decimal: str = "point") -> float:
    """A cell as a number; NaN where it is missing, infinite where it is not one."""
    if is_missing(cell):
        return math.nan
    with suppress(TypeError, ValueError):
        if not isinstance(cell, str):
            return float(cell)
        if "_" not in cell:  # Python alone reads 1_0 as 10
            return float(cell.replace(".", "?").replace(",", ".") if decimal == "comma" else cell)
    return math.inf


def numbers_of(cells: Sequence[Any], decimal: str = "point") -> FloatArray:
    """Cells as numbers; NaN where they are missing, infinite where they are not finite numbers."""
    if decimal == "point":
        with suppress(TypeError, ValueError):  # all at once, if there is nothing to say
            values = np.asarray(cells)
            if values.dtype.kind in "biuf" or not any(isinstance(cell, str) and "_" in cell for cell in cells):
                return values.astype(np.float64)
    return np.array([number(cell, decimal) for cell in cells], dtype=np.float64)


def is_missing(cell: Any) -> bool:
    """Whether a cell has no number."""
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip().lower() in MISSING)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name.

    Attributes:
        names: all names of the header.
        columns: the cells of the wanted columns; texts where it is a CSV file, "" beyond the end of a row.
        lengths: the cells of each row, without empty ones after the last name.
        lines: where each row ends; None where the file has no lines.
    """

    path: Path
    names: Sequence[str]
    columns: dict[str, Sequence[Any]]
    lengths: IndexArray
    lines: IndexArray | None = None

    def place(self, row: int) -> str:
        """Where a row is, counted from 0."""
        return f"{self.path}: row {row + 1}" if self.lines is None else f"{self.path}:{self.lines[row]}"

    def wrong(self, row: int, text: str) -> DataError:
        """The error for a row, counted from 0."""
        if self.lines is None:
            return DataError(f"row {row + 1}: {text}", self.path)
        return DataError(text, self.path, int(self.lines[row]))

    def check_lengths(self) -> None:
        """Refuse rows of another length than the header.

        Raises:
            DataError: there is one; with its line.
        """
        for row in np.flatnonzero(self.lengths != len(self.names))[:1].tolist():
            many = "; quote decimal commas, or separate by semicolons" if self.lengths[row] > len(self.names) else ""
            there = f"the header names {len(self.names)} columns, but the row has"
            raise self.wrong(row, f"{there} {self.lengths[row]}{many}.")


def read_table(path: Path, wanted: Sequence[str] | None = None) -> Table:
    """A table from a CSV file (commas, semicolons or tabs, UTF-8, perhaps compressed) or a Parquet file.

    Args:
        wanted: the columns; None for all.

    Raises:
        DataError: the file cannot be read, or a column is missing or there twice.
    """
    return (_parquet if path.suffix.lower() in PARQUET else _csv)(path, wanted)


def _csv(path: Path, wanted: Sequence[str] | None) -> Table:
    import pandas as pd

    text = text_of(path)
    preface = found[0] if (found := PREFACE.match(text)) else ""
    text = "\n" * preface.count("\n") + text[len(preface) :]
    header = re.sub(r'"[^"]*"', "", text.lstrip("\n").partition("\n")[0])
    separator = max(",;\t", key=header.count)
    if not header and not text.strip():
        text = ","  # pandas reads no empty file
    lines = text.removesuffix("\n").split("\n")
    try:
        cells = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            names=range(max(line.count(separator) for line in lines) + 1),
            index_col=False,
            dtype=object,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
            engine="python",  # which tells an empty cell from one beyond the end of the row
        )
    except (pd.errors.ParserError, ValueError) as error:
        raise DataError(f"the table cannot be read: {error}.", path) from None
    there = cells.notna().to_numpy()
    texts = cells.where(there, "").to_numpy()
    breaks = np.array([sum(cell.count("\n") for cell in row) for row in texts]) if len(lines) > len(cells) else 0
    ends = np.cumsum(np.ones(len(cells), dtype=np.intp) + breaks)
    full = np.char.strip(texts[:, :1].astype(str))[:, 0] != ""
    full |= there[:, 1:].any(axis=1)
    ends, texts, there = ends[full], texts[full], there[full]
    names = [name.strip() for name, known in zip(texts[0], there[0], strict=True) if known] if len(texts) else []
    while names and not names[-1]:
        names.pop()
    filled = texts[1:] != ""
    filled[:, : len(names)] = there[1:, : len(names)]
    lengths = texts.shape[1] - np.argmax(filled[:, ::-1], axis=1)
    line = 1 if not len(ends) else int(ends[0])
    marked = [name.strip() for name in re.split("[,;\t]", preface.rstrip("\n").rpartition("\n")[2].lstrip(" \t#%"))]
    if wanted and not set(wanted) & set(names) and set(wanted) <= set(marked):
        raise DataError("the header is a comment; take the mark before it away.", path, line - 1)
    places = places_of(path, names, wanted, line)
    columns = {name: texts[1:, place] for name, place in places.items()}
    return Table(path, names, columns, lengths, ends[1:])


def places_of(
    path: Path, names: Sequence[str], wanted: Sequence[str] | None, line: int | None = None
) -> dict[str, int]:
    """Where the wanted columns stand."""
    import difflib

    wanted = names if wanted is None else wanted
    for column in wanted:
        if names.count(column) > 1:
            raise DataError(f"two columns are called {column!r}; rename one of them.", path, line)
        if column not in names:
            near = difflib.get_close_matches(column, names, n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]}?" if near else "."
            there = ", ".join(names) or "none"
            raise DataError(f"there is no column {column!r}{meant} The columns are {there}.", path, line)
    return {column: names.index(column) for column in wanted}


def _parquet(path: Path, wanted: Sequence[str] | None) -> Table:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow; or give a CSV file.", path) from None
    try:
        names = parquet.read_schema(path).names
        places = places_of(path, names, wanted)
        table = parquet.read_table(path, columns=[*places])
    except (OSError, ArrowException) as error:
        raise DataError(f"the table cannot be read: {str(error).splitlines()[0]}.", path) from None
    lengths = np.full(table.num_rows, len(names))
    return Table(path, names, {name: table.column(name).to_pylist() for name in places}, lengths)


def read_graph(path: Path, most: int | None = None) -> nx.Graph[str]:
    """An undirected graph from a file of links, a matrix, GraphML (.graphml) or Matrix Market (.mtx); or compressed.

    Loops are dropped, and repeated links count once. A line of a file of links has two names apart by blanks, tabs, a
    comma or a semicolon; what follows them is ignored, and so are empty lines, comments (# or %) and a header of words.
    A matrix is as many lines of as many numbers, at least three; where one is not 0 there is a link. Nodes stand in
    ascending order of their numbers where all are numbers.

    Args:
        most: only so many lines of a file of links; None for all.

    Raises:
        DataError: a line is not a link, or there is none; the text starts with file and line.
    """
    import networkx as nx

    kind = path.with_suffix("").suffix if path.suffix in (".gz", ".bz2") else path.suffix
    if kind in (".graphml", ".mtx"):
        names, links = _published(path, kind)
    else:
        names, links = _links(path, most)
    graph: nx.Graph[str] = nx.Graph()
    ordered = sorted(set(names))
    if all(name.isdecimal() for name in ordered):
        ordered.sort(key=int)
    graph.add_nodes_from(ordered)
    graph.add_edges_from((one, other) for one, other in links if one != other)
    if not links:
        raise DataError("the file has no links", path)
    return graph


def _published(path: Path, kind: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes and links of a file of GraphML or Matrix Market."""
    import networkx as nx
    import scipy.io

    with opened(path) as stream:
        content = io.BytesIO(stream.read())
    try:
        if kind == ".graphml":
            graph = nx.read_graphml(content)
            return list(map(str, graph)), [(str(one), str(other)) for one, other in graph.edges()]
        matrix = scipy.io.mmread(content, spmatrix=False)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a graph needs as many rows as columns, not {matrix.shape[0]} and {matrix.shape[1]}")
        if abs(matrix - matrix.T).max():
            raise ValueError("links have no direction, but the matrix is not symmetric; make it so, or write links")
        ends = ((place + 1).astype(str).tolist() for place in matrix.nonzero())
        return [str(node + 1) for node in range(matrix.shape[0])], list(zip(*ends, strict=True))
    except Exception as error:  # the parsers of XML and of matrices have errors of their own
        raise DataError(f"the file is not a graph in {kind}: {error}", path) from None


def _links(path: Path, most: int | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes and links of a file of links or of a matrix."""
    import pandas as pd

    lines = [line.strip() for line in COMMENT.sub("", text_of(path, most)).rstrip().split("\n")]
    first = next(filter(None, lines), "")
    if not first:
        return [], []
    if most is None and (matrix := _matrix(path, lines)) is not None:
        links = [(str(one), str(other)) for one, other in np.argwhere(matrix).tolist()]
        return [str(node) for node in range(len(matrix))], links
    try:
        cells = pd.read_csv(
            io.StringIO("\n".join(lines)),
            sep=next((mark for mark in ",;" if mark in first), r"\s+"),
            header=None,
            names=range(2),
            usecols=[0, 1],
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        )
        if len(cells) != len(lines):
            raise ValueError("a quotation mark is not closed on its line")
    except ValueError as error:
        raise DataError(f"the links cannot be read: {error}", path) from None
    one, other = cells[0].str.strip(), cells[1].str.strip()
    there = (one != "") | (other != "")
    for place in np.flatnonzero(there & ((one == "") | (other == "")))[:1].tolist():
        raise DataError(f"{lines[place]!r} is not a link; two nodes are expected", path, place + 1)
    pairs = list(zip(one[there], other[there], strict=True))
    words = len(pairs) > 1 and not "".join(pairs[0]).isdecimal() and "".join(pairs[1]).isdecimal()
    if words or (pairs[0][0].lower(), pairs[0][1].lower()) in HEADERS:
        pairs = pairs[1:]
    return [name for pair in pairs for name in pair], pairs


def _matrix(path: Path, lines: Sequence[str]) -> FloatArray | None:
    """The lines as an adjacency matrix; None where they are links.

    Raises:
        DataError: it is one, and not symmetric.
    """
    full = {number: line for number, line in enumerate(lines, start=1) if line}
    count = len(full)
    if not 3 <= count <= max(map(len, full.values())):
        return None
    rows = [re.sub("[,;]", " ", line).split() for line in full.values()]
    if any(len(row) != count for row in rows):
        return None
    matrix = numbers_of([cell for row in rows for cell in row]).reshape(count, count)
    if not np.isfinite(matrix).all():
        return None
    unequal = np.argwhere(matrix != matrix.T).tolist()
    if not unequal:
        return matrix
    if count == 3 and not np.isin(matrix, (0.0, 1.0)).all():
        return None  # three links with a weight each
    row, column = unequal[0]
    text = (
        f"the file is an adjacency matrix that is not symmetric: {matrix[row, column]:g} from node {row} to {column} "
        f"and {matrix[column, row]:g} back; links have no direction: make both the same, or write two nodes a line"
    )
    raise DataError(text, path, list(full)[row])
