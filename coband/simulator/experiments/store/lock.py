"""Who drives a directory, and how far that driver is; both can be asked after its death."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from coband.simulator.experiments.runs.status import EntryStatus, Status
from coband.simulator.experiments.store.files import LOCK, OWNER, STATUS, OutputError, writing
from coband.simulator.scenario_errors import RequestError

LOOK_SECONDS = 0.1
"""Longer than somebody who asks whether a lock is held has it."""


class LockedError(RequestError):
    """Another driver works in the directory; the text says which."""


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, which goes when this process goes, however that ends.

    Raises:
        LockedError: another process holds it.
        StorageError: nothing can be written there.
    """
    lock = FileLock(directory / LOCK)
    with writing(directory):
        try:
            lock.acquire(timeout=LOOK_SECONDS)
        except Timeout:
            raise LockedError(
                f"another run is under way in {directory} ({_owner(directory)}). Wait for it, look at it with "
                f"`coband sweep --status {directory}`, or choose another --out DIR."
            ) from None
    try:
        with writing(directory):
            (directory / OWNER).write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def is_held(directory: Path) -> bool:
    """Whether a driver works in the directory; True too where that cannot be found out, as nothing may be written."""
    if not (directory / LOCK).is_file():
        return False
    try:
        with FileLock(directory / LOCK).acquire(timeout=0):
            return False
    except (Timeout, OSError):
        return True


def _owner(directory: Path) -> str:
    try:
        return (directory / OWNER).read_text(encoding="utf-8", errors="replace") or "unknown process"
    except OSError:
        return "unknown process"


def read(directory: Path) -> Status:
    """The status of the driver in a directory; one that was killed shows as ``killed``.

    Raises:
        OutputError: nothing has run there, or its status is damaged.
    """
    file = directory / STATUS
    if not file.is_file():
        raise OutputError(f"{directory} holds no run: there is no {file}. Give the directory that --out named.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        found["entries"] = {name: EntryStatus(**entry) for name, entry in found["entries"].items()}
        status = Status(**found)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise OutputError(
            f"{file} is damaged ({error}); `coband sweep FILE --resume --out {directory}` writes it again."
        ) from error
    if status.state == "running" and not is_held(directory):
        status.state = "killed"
    return status
