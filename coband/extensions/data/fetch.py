"""Download of the public datasets, whose contents are verified (needs the optional extra `data`)."""

from __future__ import annotations

import logging
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from coband.extending import RATINGS, code_version, datasets, read_graph

if TYPE_CHECKING:
    from types import ModuleType


class FetchError(datasets.DataError):
    """A dataset could not be downloaded."""


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset and the state of its files on this machine.

    Attributes:
        state: absent: there is no file; verified: the files have the official checksums; complete: the graph has as
            many nodes and links as was published; differs: it is not so; present: there is a file, and nothing is known
            about the original.
        path: the (first) file; None when absent.
    """

    dataset: datasets.PublicDataset
    state: Literal["absent", "verified", "complete", "differs", "present"]
    path: Path | None


def fetch(name: str, directory: Path | None = None) -> Path:
    """Download a dataset unless a verified copy exists.

    Args:
        name: a name in `DATASETS` or `GRAPH_DATASETS`, or in `RATINGS`; the licences of the latter do not allow an
            automatic download.
        directory: where to save the file; None: `data_directory()`. A file of that name with other contents is
            replaced.

    Raises:
        DataError: no dataset has this name.
        FetchError: pooch is not installed, the download failed, or its contents are wrong. No partial file is left, and
            an earlier file is kept.
    """
    place = datasets.data_directory() if directory is None else directory
    if name in datasets.GRAPH_DATASETS:
        return fetch_graph(datasets.GRAPH_DATASETS[name], place)
    if name in RATINGS:
        raise by_hand(RATINGS[name], RATINGS[name].file, place / name)
    if name not in datasets.DATASETS:
        raise datasets.unknown(name, [source.name for source in _sources()])
    return fetch_dataset(datasets.DATASETS[name], place)


def fetch_dataset(dataset: datasets.ClassificationDataset, place: Path) -> Path:
    """Do what `fetch` does, for a dataset that need not be in `DATASETS`."""
    target = place / dataset.file
    if target.is_file() and code_version.file_sha256(target) == dataset.sha256:
        return target
    if dataset.packed:
        names = " and ".join([dataset.file, *(name for name, _ in dataset.further)])
        raise by_hand(dataset, names, place)
    pooch = _pooch()
    try:
        pooch.retrieve(dataset.url, known_hash=f"sha256:{dataset.sha256}", fname=dataset.file, path=place)
    except (OSError, ValueError) as error:  # requests raises OSError; pooch raises ValueError for a wrong checksum
        raise _failed(dataset, target, str(error)) from error
    return target


def fetch_graph(dataset: datasets.GraphDataset, place: Path) -> Path:
    """Do what `fetch` does, for a graph that need not be in `GRAPH_DATASETS`."""
    target = place / dataset.file
    if target.is_file() and not _difference(dataset, target):
        return target
    pooch = _pooch()
    unpack = pooch.Decompress("gzip") if dataset.member is None else pooch.Unzip(members=[dataset.member])
    try:
        place.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=place) as aside:
            found = pooch.retrieve(dataset.url, known_hash=None, fname="archive", path=aside, processor=unpack)
            if not found:
                raise ValueError(f"the archive has no {dataset.member}")
            file = Path(found if dataset.member is None else found[0])
            if difference := _difference(dataset, file):
                raise ValueError(difference)
            file.replace(target)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:  # the latter: a broken archive
        raise _failed(dataset, target, str(error)) from error
    return target


def _failed(dataset: datasets.PublicDataset, target: Path, why: str) -> FetchError:
    return FetchError(
        f"dataset {dataset.name!r} could not be downloaded from {dataset.url}: {why.rstrip('.')}. "
        f"Nothing was kept. Try again, or save the file by hand as {target}."
    )


def _difference(dataset: datasets.GraphDataset, file: Path) -> str:
    """How a file differs from the published graph; empty where it does not."""
    try:
        graph = read_graph(file)
    except (OSError, ValueError) as error:
        return str(error)
    nodes, links = graph.number_of_nodes(), graph.number_of_edges()
    if (nodes, links) == (dataset.nodes, dataset.links):
        return ""
    return f"it has {nodes:,} nodes and {links:,} links, not {dataset.nodes:,} and {dataset.links:,}"


def by_hand(source: datasets.PublicDataset, names: str, place: Path) -> FetchError:
    """The error for data that are published in archives; its text says how to get them."""
    return FetchError(
        f"dataset {source.name!r} is published in packed files: get them from {source.url}, unpack them "
        f"(gzip -d reads .Z), and save {names} in {place}."
    )


def listing(directory: Path | None = None) -> list[DatasetStatus]:
    """The state of each dataset in `directory`; None: `data_directory()`."""
    place = datasets.data_directory() if directory is None else directory
    return [_status(source, place) for source in _sources()]


def _sources() -> list[datasets.PublicDataset]:
    return [*datasets.DATASETS.values(), *RATINGS.values(), *datasets.GRAPH_DATASETS.values()]


def _status(dataset: datasets.PublicDataset, directory: Path) -> DatasetStatus:
    if not directory.is_dir():
        return DatasetStatus(dataset, "absent", None)
    try:
        path = datasets.locate(dataset, directory)
    except datasets.DataError:
        return DatasetStatus(dataset, "absent", None)
    if isinstance(dataset, datasets.GraphDataset):
        return DatasetStatus(dataset, "differs" if _difference(dataset, path) else "complete", path)
    if not isinstance(dataset, datasets.ClassificationDataset):
        return DatasetStatus(dataset, "present", path)
    expected = [(path, dataset.sha256), *((path.parent / name, known) for name, known in dataset.further)]
    official = all(file.is_file() and code_version.file_sha256(file) == known for file, known in expected)
    return DatasetStatus(dataset, "verified" if official else "differs", path)


def _pooch() -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise FetchError("downloads need pooch, which is not installed: pip install 'coband[data]'.") from error
    pooch.get_logger().setLevel(logging.ERROR)  # progress messages would mix with the program's own output
    module: ModuleType = pooch
    return module
