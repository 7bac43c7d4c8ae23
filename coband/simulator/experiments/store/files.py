"""The files of a run directory: their names, and writing them whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote_from_bytes

from coband.simulator.scenario_errors import RequestError

SCENARIO, MANIFEST, RESULTS, DATABASE, JOBS = "scenario.yaml", "manifest.json", "results.json", "run.sqlite", "jobs"
LONGEST = 480
"""Bytes of the longest path of a run directory: SQLite takes 512, with its own endings for journals."""


class OutputError(RequestError):
    """The run directory cannot be made; the text says why and what to do."""


class StorageError(RequestError):
    """Results cannot be written; the text says why."""


class StoreError(RequestError):
    """Not a run, or not one that this version can read; the text says what to do."""


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """Turn what may go wrong with files into one error, which names the file, or ``where`` it lies.

    Raises:
        StorageError: no room, no permission, a disk that has gone.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(f"{error.filename or where}: {error.strerror or error}") from error
    except MemoryError as error:
        raise StorageError("no memory was left to write the store") from error
    except sqlite3.Error as error:
        raise StorageError(f"{where / DATABASE} cannot be written: {error}") from error


def replace_text(file: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, never a part."""
    replace_bytes(file, text.encode())


def replace_bytes(file: Path, content: bytes) -> None:
    """Write a file whole, or not at all.

    Raises:
        OSError: there is no room, or no permission.
    """
    if file.exists() and not file.is_file():  # a device or a pipe, which takes what it is given
        file.write_bytes(content)
        return
    file = file.resolve()
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_bytes(content)
        os.replace(draft, file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def keep_file(file: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file that users asked for, whole or not at all; one with other content is replaced only with ``force``.

    Raises:
        OutputError: another file exists, the file is one of a run, or it cannot be written.
    """
    if file.is_file() and file.read_bytes() == content:
        return
    if file.exists() and not force:
        raise OutputError(
            f"{file} is there already and differs. Choose another place with --out, or replace it with --force."
        )
    refuse_stored(file)
    with writing_to(file, "Choose another place with --out."):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(file, content)


def refuse_stored(file: Path) -> None:
    """Refuse to write a file of a run directory, which holds what is not computed again.

    Raises:
        OutputError: it is one.
    """
    if file.name in (SCENARIO, MANIFEST, RESULTS, DATABASE) and file.with_name(DATABASE).exists():
        raise OutputError(f"{file} is a file of a run, which nothing replaces. Choose another place with --out.")


@contextmanager
def writing_to(file: Path, advice: str) -> Iterator[None]:
    """A block that writes a file; errors of the system name it.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror}. {advice}") from error


def address(file: Path, mode: str = "ro") -> str:
    """The URI of a database file.

    Args:
        file: its name, in any bytes that the file system allows.
        mode: "ro", "rw" or "rwc" (which makes the file), as in SQLite's documentation.
    """
    return f"file:{quote_from_bytes(bytes(file.absolute()))}?mode={mode}"


def is_too_long(path: Path) -> bool:
    """Whether SQLite cannot open stores in a directory, because its path is too long."""
    return len(bytes(path.absolute())) > LONGEST
