"""Download of the public datasets, with their checksums verified (needs the optional extra `data`)."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coband.simulator.problems.datasets import DATASETS, DataError, Dataset, Source, data_directory, find, locate
from coband.simulator.problems.ratings import RATINGS

if TYPE_CHECKING:
    from types import ModuleType


class FetchError(DataError):
    """A dataset could not be downloaded."""


@dataclass(frozen=True)
class Status:
    """A dataset and what is at hand of it.

    `state` is absent; verified: the file has the official checksum; differs: there is a file, but another one; present:
    there is a file, and no checksum to compare it with.
    """

    dataset: Source
    state: Literal["absent", "verified", "differs", "present"]
    path: Path | None


def fetch(name: str, directory: Path | None = None) -> Path:
    """Download a dataset unless a verified copy is there.

    Args:
        name: one of `DATASETS`, or of `RATINGS`, whose licences leave it to the user to get them.
        directory: where to put the file; None: `data_directory()`. A file of that name that is not the
            official one is replaced.

    Returns:
        The verified file.

    Raises:
        DataError: no such dataset.
        FetchError: pooch is not installed, the download failed, or its checksum is wrong. Nothing is left behind
            then, and a file that was there before is kept.
    """
    if name in RATINGS:
        place = data_directory() if directory is None else directory
        raise by_hand(RATINGS[name], RATINGS[name].file, place / name)
    return fetch_dataset(find(name), directory)


def fetch_dataset(dataset: Dataset, directory: Path | None = None) -> Path:
    """`fetch`, for a dataset that need not be in `DATASETS`."""
    place = data_directory() if directory is None else directory
    target = place / dataset.file
    if target.is_file() and checksum(target) == dataset.sha256:
        return target
    if dataset.packed:
        names = " and ".join([dataset.file, *(name for name, _ in dataset.further)])
        raise by_hand(dataset, names, place)
    pooch = _pooch()
    pooch.get_logger().setLevel(logging.ERROR)  # its notes on progress would mix with the program's own output
    try:
        pooch.retrieve(dataset.url, known_hash=f"sha256:{dataset.sha256}", fname=dataset.file, path=place)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; pooch raises ValueError on a wrong checksum
        raise FetchError(
            f"dataset {dataset.name!r} could not be downloaded from {dataset.url}: {str(error).rstrip('.')}. "
            f"Nothing was kept. Try again, or save the file by hand as {target}."
        ) from error
    return target


def by_hand(source: Source, names: str, place: Path) -> FetchError:
    """What to do about data that are published in packed files."""
    return FetchError(
        f"dataset {source.name!r} is published in packed files: get them from {source.url}, unpack them "
        f"(gzip -d reads .Z), and save {names} in {place}."
    )


def listing(directory: Path | None = None) -> list[Status]:
    """What is at hand of each dataset, in `directory` or, if None, in `data_directory()`."""
    place = data_directory() if directory is None else directory
    return [_status(source, place) for source in (*DATASETS.values(), *RATINGS.values())]


def checksum(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _status(dataset: Source, directory: Path) -> Status:
    if not directory.is_dir():
        return Status(dataset, "absent", None)
    try:
        path = locate(dataset, directory)
    except DataError:
        return Status(dataset, "absent", None)
    if not isinstance(dataset, Dataset):
        return Status(dataset, "present", path)
    expected = [(path, dataset.sha256), *((path.parent / name, known) for name, known in dataset.further)]
    official = all(file.is_file() and checksum(file) == known for file, known in expected)
    return Status(dataset, "verified" if official else "differs", path)


def _pooch() -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise FetchError("downloads need pooch, which is not installed: pip install 'coband[data]'.") from error
    module: ModuleType = pooch
    return module
