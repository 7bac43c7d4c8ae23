"""Download of the public datasets, with their checksums verified (needs the optional extra `data`)."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coband.simulator.problems.datasets import (
    DATASETS,
    ClassificationDataset,
    DataError,
    PublicDataset,
    data_directory,
    find,
    locate,
)
from coband.simulator.problems.ratings import RATINGS

if TYPE_CHECKING:
    from types import ModuleType


class FetchError(DataError):
    """A dataset could not be downloaded."""


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset and the state of its files on this machine.

    Attributes:
        dataset: the dataset.
        state: absent: there is no file; verified: the files have the official checksums; differs: they do not;
            present: there is a file, and no official checksum exists.
        path: the (first) file; None when absent.
    """

    dataset: PublicDataset
    state: Literal["absent", "verified", "differs", "present"]
    path: Path | None


def fetch(name: str, directory: Path | None = None) -> Path:
    """Download a dataset unless a verified copy exists.

    Args:
        name: a name in `DATASETS`, or in `RATINGS`; the licences of the latter do not allow an automatic download.
        directory: where to save the file; None: `data_directory()`. A file of that name with another checksum is
            replaced.

    Returns:
        The verified file.

    Raises:
        DataError: no dataset has this name.
        FetchError: pooch is not installed, the download failed, or its checksum is wrong. No partial file is left, and
            an earlier file is kept.
    """
    if name in RATINGS:
        place = data_directory() if directory is None else directory
        raise by_hand(RATINGS[name], RATINGS[name].file, place / name)
    return fetch_dataset(find(name), directory)


def fetch_dataset(dataset: ClassificationDataset, directory: Path | None = None) -> Path:
    """Do what `fetch` does, for a dataset that need not be in `DATASETS`."""
    place = data_directory() if directory is None else directory
    target = place / dataset.file
    if target.is_file() and checksum(target) == dataset.sha256:
        return target
    if dataset.packed:
        names = " and ".join([dataset.file, *(name for name, _ in dataset.further)])
        raise by_hand(dataset, names, place)
    pooch = _pooch()
    pooch.get_logger().setLevel(logging.ERROR)  # progress messages would mix with the program's own output
    try:
        pooch.retrieve(dataset.url, known_hash=f"sha256:{dataset.sha256}", fname=dataset.file, path=place)
    except (OSError, ValueError) as error:  # requests raises OSError; pooch raises ValueError for a wrong checksum
        raise FetchError(
            f"dataset {dataset.name!r} could not be downloaded from {dataset.url}: {str(error).rstrip('.')}. "
            f"Nothing was kept. Try again, or save the file by hand as {target}."
        ) from error
    return target


def by_hand(source: PublicDataset, names: str, place: Path) -> FetchError:
    """The error for data that are published in archives; its text says how to get them."""
    return FetchError(
        f"dataset {source.name!r} is published in packed files: get them from {source.url}, unpack them "
        f"(gzip -d reads .Z), and save {names} in {place}."
    )


def listing(directory: Path | None = None) -> list[DatasetStatus]:
    """The state of each dataset in `directory`; None: `data_directory()`."""
    place = data_directory() if directory is None else directory
    return [_status(source, place) for source in (*DATASETS.values(), *RATINGS.values())]


def checksum(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _status(dataset: PublicDataset, directory: Path) -> DatasetStatus:
    if not directory.is_dir():
        return DatasetStatus(dataset, "absent", None)
    try:
        path = locate(dataset, directory)
    except DataError:
        return DatasetStatus(dataset, "absent", None)
    if not isinstance(dataset, ClassificationDataset):
        return DatasetStatus(dataset, "present", path)
    expected = [(path, dataset.sha256), *((path.parent / name, known) for name, known in dataset.further)]
    official = all(file.is_file() and checksum(file) == known for file, known in expected)
    return DatasetStatus(dataset, "verified" if official else "differs", path)


def _pooch() -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise FetchError("downloads need pooch, which is not installed: pip install 'coband[data]'.") from error
    module: ModuleType = pooch
    return module
