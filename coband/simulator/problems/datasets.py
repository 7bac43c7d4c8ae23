"""Public datasets and graphs in their original files: names, origins, licences, and readers.

This module does not download anything; `coband data fetch` does.
"""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import yaml
from pydantic import TypeAdapter

from coband.simulator.arrays import FloatArray
from coband.simulator.core.reading import numbers_of, opened, text_of
from coband.simulator.problems.problem import DataError as DataError
from coband.simulator.problems.world import read_only


@dataclass(frozen=True, kw_only=True)
class PublicDataset:
    """A public dataset: its name, its origin and its contents."""

    name: str
    title: str
    file: str
    """Name of the (first) file."""
    url: str
    rows: int
    licence: str
    citation: str
    packed: bool = False
    """Whether the files are published in an archive that the user has to unpack."""
    cites: tuple[str, ...] = ()
    """What ``coband show --bibtex`` prints; see `ProblemEntry`."""

    @property
    def columns(self) -> str:
        """The contents of a row, in a few words."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ClassificationDataset(PublicDataset):
    """A dataset of feature columns and a class column, in one or several files without header."""

    sha256: str
    size: int
    """Bytes."""
    features: int
    """Number of feature columns."""
    numeric: bool
    """Whether features are numbers; otherwise they are categories of one character each, such as "?"."""
    class_first: bool
    classes: tuple[str, ...]
    positive: str
    """The class that gives reward 1, unless a scenario names another one."""
    separator: str | None = ","
    """Separator of columns; None: blanks."""
    further: tuple[tuple[str, str], ...] = ()
    """(name, SHA-256) of the files in the same directory that continue the first file."""

    @property
    def columns(self) -> str:
        return f"{self.features} features"


D = TypeVar("D", bound=PublicDataset)


def published(kind: type[D], section: str) -> Mapping[str, D]:
    """The datasets of a section of ``public.yaml``, by name."""
    text, adapter = (Path(__file__).parent / "public.yaml").read_text(encoding="utf-8"), TypeAdapter(kind)
    listed = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))[section]
    return MappingProxyType({name: adapter.validate_python({"name": name, **keys}) for name, keys in listed.items()})


DATASETS: Mapping[str, ClassificationDataset] = published(ClassificationDataset, "classification")


@dataclass(frozen=True)
class LabelledRows:
    """A classification dataset in memory, read-only: features (rows, d) and the class of each row, (rows,)."""

    features: FloatArray
    labels: npt.NDArray[np.str_]


def find(name: str) -> ClassificationDataset:
    """The dataset of that name.

    Raises:
        DataError: no dataset has this name; the text lists the nearest known names.
    """
    if name in DATASETS:
        return DATASETS[name]
    raise unknown(name, DATASETS)


def unknown(name: str, known: Iterable[str]) -> DataError:
    """The error for a name that no dataset has; its text lists the nearest known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3) or names
    return DataError(f"unknown dataset {name!r}; did you mean {' or '.join(near)}?")


def data_directory() -> Path:
    """The directory of downloads: $COBAND_DATA, else $XDG_CACHE_HOME/coband/data, else ~/.cache/coband/data."""
    chosen = os.environ.get("COBAND_DATA")
    if chosen:
        return Path(chosen).expanduser()
    place = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not place.is_absolute():  # the XDG specification says to ignore relative paths
        place = Path.home() / ".cache"
    return place / "coband" / "data"


def locate(dataset: PublicDataset, path: Path | None = None, base: Path | None = None) -> Path:
    """Find the file of a dataset.

    Args:
        path: the file, a directory that contains it, or a directory with a folder named after the dataset that
            contains it; None: `data_directory()`.
        base: the directory to which a relative `path` refers; None: the working directory.

    Raises:
        DataError: there is no such file; the text lists the places searched and says what to do.
    """
    place = data_directory() if path is None else (base or Path()) / path.expanduser()
    tried = [place / dataset.file, place / dataset.name / dataset.file] if path is None or place.is_dir() else [place]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    remedy = f"Run `coband data fetch {dataset.name}` to download it, or set"
    if dataset.packed:
        remedy = f"Get it from {dataset.url}, unpack it, and set"
    raise DataError(
        f"dataset {dataset.name!r}: {dataset.file} is missing. Looked for: {', '.join(map(str, tried))}. "
        f"{remedy} `problem.data.path` to the file or to a directory that holds it "
        "(on the command line: `--set problem.data.path=FILE`)."
    )


def load(name: str, path: Path | None = None, base: Path | None = None) -> LabelledRows:
    """Read a dataset and cache it until the file changes; the arguments are those of `find` and `locate`.

    Numbers are returned unchanged. Each column of categories becomes 0/1 columns, one per category that occurs, in
    alphabetical order; "?" (mushroom's stalk-root) is a category like any other.

    Raises:
        DataError: the dataset is unknown, missing or malformed.
    """
    dataset = find(name)
    file = locate(dataset, path, base)
    return _load(dataset.name, tuple(file_version(part) for part in files_of(dataset, file)))


def read_lines(file: Path) -> Generator[str]:
    """Yield the lines of a file one at a time, so that the file may be larger than memory.

    Raises:
        DataError: the file cannot be read.
    """
    with opened(file) as content, io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace") as lines:
        yield from lines


def files_of(dataset: ClassificationDataset, file: Path) -> list[Path]:
    """All files of a dataset; `file` is the first one.

    Raises:
        DataError: one of them is missing.
    """
    found = [file, *(file.parent / name for name, _ in dataset.further)]
    for part in found[1:]:
        if not part.is_file():
            raise DataError(f"dataset {dataset.name!r}: {part.name} is missing; it belongs beside {file}.")
    return found


def file_version(file: Path) -> tuple[Path, int, int]:
    """The cache key of a file: its resolved path, its modification time in ns and its size in bytes."""
    status = file.stat()
    return file.resolve(), status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _load(name: str, files: tuple[tuple[Path, int, int], ...]) -> LabelledRows:
    dataset = DATASETS[name]
    blocks, labels = [], []
    for file, _, _ in files:
        rows, own = _read(dataset, file)
        blocks.append(_numbers(rows, file) if dataset.numeric else _one_hot(np.array(rows)))
        labels += own
    features = np.vstack(blocks)
    label_array = np.array(labels)
    label_array.flags.writeable = False
    return LabelledRows(read_only(features), label_array)


def _read(dataset: ClassificationDataset, file: Path) -> tuple[list[list[str]], list[str]]:
    """Read the feature fields and the class of each line; check the number of fields and the class."""
    rows: list[list[str]] = []
    labels: list[str] = []
    for number, line in enumerate(text_of(file).rstrip().splitlines(), start=1):
        fields = [field.strip() for field in line.split(dataset.separator)]
        if len(fields) != dataset.features + 1:
            separated = "commas" if dataset.separator == "," else "blanks"
            expected = f"{dataset.features} features and the class, separated by {separated}"
            raise DataError(f"{len(fields)} columns; {dataset.name} needs {expected}.", file, number)
        label = fields.pop(0 if dataset.class_first else -1)
        if label not in dataset.classes:
            column = 1 if dataset.class_first else dataset.features + 1
            expected = " or ".join(map(repr, dataset.classes))
            raise DataError(f"column {column} is {label!r}; {dataset.name} needs a class, {expected}.", file, number)
        rows.append(fields)
        labels.append(label)
    if not rows:
        raise DataError(f"the file is empty; {dataset.name} has {dataset.rows} lines.", file)
    return rows, labels


def _numbers(rows: list[list[str]], file: Path) -> FloatArray:
    """Convert the fields to finite numbers, (rows, features)."""
    values = numbers_of([field for fields in rows for field in fields]).reshape(len(rows), -1)
    for row, column in np.argwhere(~np.isfinite(values))[:1].tolist():
        raise DataError(f"column {column + 1} is {rows[row][column]!r}; a finite number is expected.", file, row + 1)
    return values


def _one_hot(categories: npt.NDArray[np.str_]) -> FloatArray:
    """0/1 columns, (rows, sum over columns of the number of categories)."""
    return np.hstack([(column[:, None] == np.unique(column)).astype(np.float64) for column in categories.T])


@dataclass(frozen=True, kw_only=True)
class GraphDataset(PublicDataset):
    """A public graph: a file with one link of two nodes per line, published in an archive."""

    nodes: int
    links: int
    """Links between different nodes, each counted once; ``rows`` counts the lines."""
    member: str | None = None
    """Path of the file in an archive of several files; None where the archive holds this file alone."""

    @property
    def columns(self) -> str:
        return f"links of {self.nodes:,} nodes"


GRAPH_DATASETS: Mapping[str, GraphDataset] = published(GraphDataset, "graphs")


def graph_of(file: str) -> GraphDataset | None:
    """The known graph whose file has this name."""
    return next((graph for graph in GRAPH_DATASETS.values() if graph.file == file), None)
