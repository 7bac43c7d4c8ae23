"""The files of a run directory: their names, writing them whole or not at all, making and finding directories."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from coband.simulator.scenario_errors import RequestError

SCENARIO, MANIFEST, RESULTS, DATABASE = "scenario.yaml", "manifest.json", "results.json", "run.sqlite"
JOBS, DONE, STATUS, LOCK = "jobs", "done", "status.json", "lock"
OWNER = "lock.owner"
"""Who holds the lock, in words; the locked file itself cannot be read by others on Windows."""
VERSION = 3
"""Version of the tables in stores."""
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


PASSING = ("interrupted", "database is locked", "unable to open database file")
"""Errors of SQLite that say nothing about the file's content."""


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


def uri(file: Path, mode: str = "ro") -> str:
    """The URI of a database file.

    Args:
        file: its name, in any bytes that the file system allows.
        mode: "ro", "rw" or "rwc" (which makes the file), as in SQLite's documentation.
    """
    return f"file:{quote_from_bytes(bytes(file.absolute()))}?mode={mode}"


RUNS = Path("runs")


def new_place(name: str, out: Path | None = None) -> Path:
    """A new, empty directory: ``out``, or runs/<name>-<number> with the next free number.

    Raises:
        OutputError: ``out`` holds something already, or no directory can be made there.
    """
    if len(bytes((out or RUNS / name).absolute())) > LONGEST:
        raise OutputError(
            f"no run directory can be made: {out or RUNS / name}: SQLite cannot open files with so long a path. "
            "Choose a shorter one with --out DIR."
        )
    try:
        return _numbered(name) if out is None else _given(out)
    except OSError as error:
        place = error.filename or out or RUNS
        raise OutputError(
            f"no run directory can be made: {place}: {error.strerror}. Choose another place with --out DIR."
        ) from error


def _given(out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise OutputError(f"{out} is not empty, and a run overwrites nothing. Remove it, or choose another --out DIR.")
    return out


def stem(name: str) -> str:
    """The start of the names of a scenario's run directories."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"


def _numbered(name: str) -> Path:
    start = stem(name)
    RUNS.mkdir(exist_ok=True)
    pattern = re.compile(re.escape(start) + r"-(\d+)")
    taken = [int(match[1]) for entry in RUNS.iterdir() if (match := pattern.fullmatch(entry.name))]
    number = max(taken, default=0) + 1
    while True:
        path = RUNS / f"{start}-{number:04d}"
        try:
            path.mkdir()  # fails when another run was quicker, so no two runs share a directory
            return path
        except FileExistsError:
            number += 1


LATEST = "latest"
"""What users write for the newest run below ``runs``."""


def runs_below(root: Path) -> Iterator[Path]:
    """The directories of runs and sweeps below ``root``, or ``root`` itself if it is one, in order of their paths.

    Links to directories are not followed, and what is in the directory of a run is its own.
    """
    for place, folders, files in os.walk(root):
        folders.sort()
        if MANIFEST in files or DATABASE in files:
            folders.clear()
            yield Path(place)


def called(name: str | PathLike[str]) -> Path:
    """The run or sweep that users call so: its path, or ``latest``, unless a file or directory has this name.

    Raises:
        StoreError: it is ``latest``, and there is no run.
    """
    path = Path(name)
    return latest() if str(path) == LATEST and not path.exists() else path


def latest(root: Path = RUNS) -> Path:
    """The run or sweep below ``root`` that was started last.

    Raises:
        StoreError: there is none.
    """
    found = max(runs_below(root), key=_started, default=None)
    if found is None:
        raise StoreError(
            f"there is no run below {root}, so there is no {LATEST} one. Run a scenario, or give its path."
        )
    return found


def _started(run: Path) -> tuple[str, int, str]:
    """When a run was started: by its manifest, to the second, and of several in one second by its first file."""
    try:
        written = (run / SCENARIO).stat().st_mtime_ns
    except OSError:
        written = 0
    return str(manifest_of(run).get("started") or ""), written, str(run)


def content_of(file: Path) -> bytes:
    """The content of a file; not of a pipe, which would never end.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    if not file.is_file():
        raise FileNotFoundError(errno.ENOENT, "it is not a file", str(file))
    return file.read_bytes()


KINDS, RUN = {"points": "a sweep", "objectives": "the search of a frontier"}, "a run"
"""Key that the manifest of one kind of study has -> what to call it; others are runs."""


COMMANDS = {RUN: "run", **dict(zip(KINDS.values(), ("sweep", "frontier"), strict=True))}
"""What a kind of study is called -> its command."""


def again(folder: Path) -> str:
    """How to make once more what a folder holds of a study, as a part of a sentence."""
    kind, scenario = kind_of(manifest_of(folder)), folder / SCENARIO
    if kind != RUN:
        return f"`coband {COMMANDS[kind]} FILE --resume --out {shlex.quote(str(folder))}` writes it again"
    if scenario.is_file():
        return f"`coband run {shlex.quote(str(scenario))}` does all of it again"
    return "run the scenario again, or take another copy"


def kind_of(manifest: Mapping[str, object]) -> str:
    """What to call a study with a manifest."""
    return next((kind for key, kind in KINDS.items() if key in manifest), RUN)


def manifest_of(run: Path) -> dict[str, Any]:
    """The manifest beside a run's store; empty if there is none that can be read."""
    try:
        found = json.loads(content_of(run / MANIFEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
