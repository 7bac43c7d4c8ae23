"""Files as others write them: what every reader takes, and what it refuses with file and line."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from coband.simulator.core.clock.schedule import Recorded as Turns
from coband.simulator.core.hosts.availability import Recorded as Times
from coband.simulator.core.hosts.stays import MovesAtTimes
from coband.simulator.core.network.bandwidth import Packets
from coband.simulator.core.network.links import Matrix
from coband.simulator.core.populations.populations import Columns, FilePopulation
from coband.simulator.core.randomness.distributions import Empirical
from coband.simulator.core.reading import DataError, read_graph, read_table
from coband.simulator.problems import tables

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "own data": ("x,y\n1,2\n3,4\n", lambda file: tables.read_table(file, ("x", "y"))[0].tolist()),
    "turns": ("agent,time\n0,1\n1,2\n", lambda file: [*Turns(kind="trace", file=str(file)).ticks(2, None)]),  # type: ignore[arg-type]
    "times": ("agent,up,down\n0,1,2\n0,3,4\n", lambda file: Times(kind="trace", file=str(file)).leaves(0)),
    "moves": ("agent,time\n0,1\n1,2\n", lambda file: MovesAtTimes(kind="times", file=str(file)).agents),
    "devices": (
        "a,s\n1,2\n3,4\n",
        lambda file: FilePopulation(kind="file", file=str(file), columns=Columns(speed="s")).table().numbers,
    ),
    "links": ("0,1\n1,2\n", lambda file: [*read_graph(file).edges]),
    "delays": ("1\n2.5\n", lambda file: Empirical(file=str(file)).sample),
    "matrix": ("0,1\n1,0\n", lambda file: Matrix(kind="matrix", file=str(file)).rows),
    "packets": ("1\n3\n", lambda file: Packets(kind="packets", file=str(file)).opportunities[0].tolist()),
}
TABLES = ("own data", "turns", "times", "moves", "devices")
WRITTEN: dict[str, Callable[[str], bytes]] = {
    "byte order mark": lambda text: text.encode("utf-8-sig"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "no end of line": lambda text: text.rstrip().encode(),
    "comments": lambda text: f"# Köln\n%\n\n{text}".encode(),
    "semicolons": lambda text: text.replace(",", ";").encode(),
    "comma at the end": lambda text: text.replace("\n", ",\n").encode(),
    "comma below the header": lambda text: text.replace("\n", ",\n").replace(",\n", "\n", 1).encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "bzip2": lambda text: bz2.compress(text.encode()),
}


def outcome(read: Callable[[Path], object], file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return str(read(file))


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_says_the_same_however_it_is_written(tmp_path: Path, reader: str, how: str) -> None:
    text, read = READERS[reader]
    plain = outcome(read, tmp_path / "plain.csv", text.encode())
    assert outcome(read, tmp_path / "other.csv", WRITTEN[how](text)) == plain


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_text_in_utf8_is_refused_with_its_line(tmp_path: Path, reader: str) -> None:
    text, read = READERS[reader]
    with pytest.raises(ValueError, match=r"table\.csv:3: byte 0xf6 is not UTF-8; save the file as UTF-8"):
        outcome(read, tmp_path / "table.csv", (text.split("\n")[0] + "\n\nKöln").encode("latin-1"))
    with pytest.raises(ValueError, match=r"packed\.csv: the file cannot be read: .*end-of-stream"):
        outcome(read, tmp_path / "packed.csv", gzip.compress(text.encode())[:-12])


@pytest.mark.parametrize("reader", TABLES)
def test_a_row_of_another_length_is_refused_with_its_line(tmp_path: Path, reader: str) -> None:
    text, read = READERS[reader]
    names = text.partition("\n")[0].count(",") + 1
    for cells in (names + 1, names - 1):
        said = f"has {cells} cells: must have {names}" if reader == "devices" else rf":4: .*, but the row has {cells}"
        with pytest.raises(ValueError, match=said):
            outcome(read, tmp_path / "table.csv", f"{text}{','.join('5' * cells)}\n".encode())


@pytest.mark.parametrize("reader", [name for name in READERS if name != "links"])
@pytest.mark.parametrize("cell", ["1_0", "1e999", "0x10", "٣_"])
def test_what_is_not_a_number_elsewhere_is_not_one_here(tmp_path: Path, reader: str, cell: str) -> None:
    text, read = READERS[reader]
    with pytest.raises(ValueError, match=r"table\.csv"):
        outcome(read, tmp_path / "table.csv", text.replace("1,2\n", f"1,{cell}\n").replace("1\n", f"{cell}\n").encode())


def test_quoted_names_and_cells(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text('"a,b,c";x\n"two\nlines";1\n\nNA;nan\n#3;5,5\n')
    table = read_table(file, ("a,b,c", "x"))
    assert [*map(list, table.columns.values())] == [["two\nlines", "NA", "#3"], ["1", "nan", "5,5"]]
    assert table.lines is not None
    assert table.lines.tolist() == [3, 5, 6]
    assert tables.read_table(file, ("x",), "a,b,c", tables.Form("drop", decimal="comma"))[1].tolist() == [0, 1]


def test_a_header_that_is_a_comment_is_refused(tmp_path: Path) -> None:
    """As `numpy.savetxt` writes it."""
    np.savetxt(tmp_path / "table.csv", np.eye(2), delimiter=",", header="a note\nx,y")
    with pytest.raises(DataError, match="table.csv:2: the header is a comment; take the mark before it away"):
        read_table(tmp_path / "table.csv", ("y", "x"))


RING = nx.cycle_graph(5)


def test_graphs_as_others_write_them(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_matrix(nx.to_numpy_array(RING))
    nx.write_graphml(RING, tmp_path / "a.graphml")
    nx.write_graphml(RING, tmp_path / "b.graphml.gz")
    scipy.io.mmwrite(tmp_path / "c.mtx", matrix)
    (tmp_path / "d.mtx.gz").write_bytes(gzip.compress((tmp_path / "c.mtx").read_bytes()))
    np.savetxt(tmp_path / "e.txt", matrix.toarray(), fmt="%d")
    np.savetxt(tmp_path / "f.csv", matrix.toarray(), delimiter=",")
    nx.write_weighted_edgelist(nx.Graph(RING, weight=1), tmp_path / "g.txt.gz")
    (tmp_path / "h.txt").write_text(
        "% sym unweighted\n% 5 5 5\n" + "".join(f"{one} {other}\n" for one, other in RING.edges)
    )
    (tmp_path / "i.csv").write_text("Source,Target,Weight\nann,bob,1\nbob,cem,2\ncem,dan,1\ndan,eva,1\neva,ann,1\n")
    for file in sorted(tmp_path.iterdir()):
        graph = read_graph(file)
        assert nx.is_isomorphic(graph, RING), file.name
        assert [*graph] == sorted(graph)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.txt",
            "0 1 0\n0 0 1\n1 0 0\n",
            "a.txt:1: the file is an adjacency matrix that is not symmetric: 1 from node 0 to",
        ),
        (
            "b.txt",
            "\n0 2 0 0\n2 0 .5 1\n0 .4 0 1\n0 1 1 0\n",
            "b.txt:3: the file is an adjacency matrix that is not sym",
        ),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n",
            "as many rows as columns, not 2 and 3",
        ),
        (
            "b.mtx",
            "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n2 3 1\n",
            "links have no direction, but the matrix is not symmetric; make it so",
        ),
        ("a.graphml", "<graphml>", r"a.graphml: the file is not a graph in .graphml: no element found"),
        ("a.txt", '0 1\n"1 2\n', "a.txt: the links cannot be read"),
        ("a.txt", "# one\n0 1\n\n7\n", "a.txt:4: '7' is not a link"),
    ],
)
def test_what_is_no_graph_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        read_graph(tmp_path / name)


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "links.txt"
    file.write_text("Köln Bonn\n", encoding="utf-8")
    code = f"""if True:
        from pathlib import Path
        from coband.simulator.core.reading import read_graph
        print(ascii([*read_graph(Path({str(file)!r}))]))"""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "['Bonn', 'K\\xf6ln']\n"
