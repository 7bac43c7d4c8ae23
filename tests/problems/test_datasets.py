import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from coband.simulator.problems.datasets import DATASETS, DataError, data_directory, find, load, locate
from tests.data_files import data_file
from tests.problems.files import write_magic, write_mushroom

GOOD_MAGIC = "1,2,3,4,5,6,7,8,9,10,g"
GOOD_MUSHROOM = "e," + ",".join("abcdefghijk?mnopqrstuv")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_magic_by_hand(tmp_path: Path) -> None:
    table = load("magic", write(tmp_path / "m", GOOD_MAGIC, "-1,.5,1e3,0,0,0,0,0,0,0,h", ""))
    assert table.features[1, :4].tolist() == [-1.0, 0.5, 1000.0, 0.0]
    assert table.features.shape == (2, 10)
    assert table.labels.tolist() == ["g", "h"]


def test_mushroom_by_hand(tmp_path: Path) -> None:
    second = GOOD_MUSHROOM.replace("e,a", "p,z").replace("?", "b")
    table = load("mushroom", write(tmp_path / "m", GOOD_MUSHROOM, second))
    assert table.labels.tolist() == ["e", "p"]
    # Two categories in columns 1 (a, z) and 12 (?, b), one in each other column.
    assert table.features.shape == (2, 24)
    assert table.features[:, :3].tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    assert table.features[:, 12:14].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert table.features.sum(axis=1).tolist() == [22.0, 22.0]


@pytest.mark.parametrize(("name", "writer"), [("magic", write_magic), ("mushroom", write_mushroom)])
def test_places_where_a_file_is_found(name: str, writer: object, tmp_path: Path) -> None:
    assert callable(writer)
    (tmp_path / "inner" / name).mkdir(parents=True)
    direct, nested = writer(tmp_path), writer(tmp_path / "inner" / name)
    dataset = DATASETS[name]
    assert locate(dataset, direct) == direct
    assert locate(dataset, tmp_path) == direct
    assert locate(dataset, tmp_path / "inner") == nested
    assert locate(dataset, Path("inner"), base=tmp_path) == nested


def test_the_cache_is_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COBAND_DATA", str(tmp_path))
    path = write_magic(tmp_path)
    assert locate(DATASETS["magic"]) == path
    assert len(load("magic").features) == 60


def test_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COBAND_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_directory() == tmp_path / "home" / ".cache" / "coband" / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_directory() == tmp_path / "cache" / "coband" / "data"
    monkeypatch.setenv("COBAND_DATA", str(tmp_path / "here"))
    assert data_directory() == tmp_path / "here"


def test_a_missing_file_says_where_it_was_looked_for_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load("magic", tmp_path)
    assert str(caught.value) == (
        "dataset 'magic': magic04.data is missing. "
        f"Looked for: {tmp_path}/magic04.data, {tmp_path}/magic/magic04.data. "
        "Run `coband data fetch magic` to download it, or set `problem.data.path` to the file or to a directory that "
        "holds it (on the command line: `--set problem.data.path=FILE`)."
    )


def test_a_missing_file_given_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"Looked for: {tmp_path}/absent.data. Run `coband data fetch mushroom`"):
        load("mushroom", Path("absent.data"), base=tmp_path)


def test_unknown_names() -> None:
    with pytest.raises(DataError, match="^unknown dataset 'mushrom'; did you mean mushroom\\?$"):
        find("mushrom")
    with pytest.raises(DataError, match="^unknown dataset 'xyz'; did you mean magic or mushroom or shuttle\\?$"):
        find("xyz")


MALFORMED = [
    ("magic", "1,2,3", ":2: 3 columns; magic needs 10 features and the class, separated by commas."),
    ("magic", "", ":2: 1 columns; magic needs 10 features and the class, separated by commas."),
    ("magic", GOOD_MAGIC.replace("g", "x"), ":2: column 11 is 'x'; magic needs a class, 'g' or 'h'."),
    ("magic", GOOD_MAGIC.replace("3", "three"), ":2: column 3 is 'three'; a finite number is expected."),
    ("magic", GOOD_MAGIC.replace("3", "nan"), ":2: column 3 is 'nan'; a finite number is expected."),
    ("magic", "fLength,b,c,d,e,f,g,h,i,j,class", ":2: column 11 is 'class'; magic needs a class, 'g' or 'h'."),
    (
        "mushroom",
        GOOD_MUSHROOM + ",x",
        ":2: 24 columns; mushroom needs 22 features and the class, separated by commas.",
    ),
    ("mushroom", "x" + GOOD_MUSHROOM[1:], ":2: column 1 is 'x'; mushroom needs a class, 'e' or 'p'."),
]


@pytest.mark.parametrize(("name", "line", "message"), MALFORMED)
def test_a_malformed_line_is_named(name: str, line: str, message: str, tmp_path: Path) -> None:
    good = GOOD_MAGIC if name == "magic" else GOOD_MUSHROOM
    path = write(tmp_path / "data", good, line, good)
    with pytest.raises(DataError) as caught:
        load(name, path)
    assert str(caught.value) == f"{path}{message}"
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_an_empty_file(tmp_path: Path) -> None:
    path = write(tmp_path / "data", "", "")
    with pytest.raises(DataError) as caught:
        load("magic", path)
    assert str(caught.value) == f"{path}: the file is empty; magic has 19020 lines."


def test_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(DataError, match="data:2: byte 0x80 is not UTF-8"):
        load("magic", path)


def test_errors_cross_process_boundaries(tmp_path: Path) -> None:
    error = DataError("wrong.", tmp_path, 3)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.path, copy.line) == (str(error), tmp_path, 3)


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "data", GOOD_MAGIC)
    first = load("magic", path)
    assert load("magic", path) is first
    write(path, GOOD_MAGIC, GOOD_MAGIC)
    os.utime(path, ns=(1, 1))
    assert len(load("magic", path).features) == 2


def test_tables_are_read_only(tmp_path: Path) -> None:
    table = load("magic", write_magic(tmp_path))
    with pytest.raises(ValueError, match="read-only"):
        table.features[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        table.labels[0] = "h"


def test_the_real_magic() -> None:
    path = data_file("magic/magic04.data")
    table = load("magic", path)
    assert path.stat().st_size == DATASETS["magic"].size
    assert table.features.shape == (DATASETS["magic"].rows, 10)
    expected = [28.7967, 16.0021, 2.6449, 0.3918, 0.1982, 27.7004, 22.011, -8.2027, 40.092, 81.8828]
    assert table.features[0].tolist() == expected
    assert [(table.labels == label).sum() for label in "gh"] == [12332, 6688]


def test_the_real_mushroom() -> None:
    path = data_file("mushroom/agaricus-lepiota.data")
    table = load("mushroom", path)
    assert path.stat().st_size == DATASETS["mushroom"].size
    assert table.features.shape == (DATASETS["mushroom"].rows, 117)
    assert np.unique(table.features.sum(axis=1)).tolist() == [22.0]
    assert [(table.labels == label).sum() for label in "ep"] == [4208, 3916]
    assert 2480 in table.features.sum(axis=0).tolist()
