"""One driver per directory: a lock that goes when its process goes, however that ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from coband.simulator.experiments.store.files import LOCK
from coband.simulator.scenario_errors import RequestError

OWNER = "lock.owner"
"""Who holds the lock, in words; the locked file itself cannot be read by others on Windows."""


class LockedError(RequestError):
    """Another driver works in the directory; the text says which."""


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the directory's lock.

    Raises:
        LockedError: another process holds it.
    """
    lock = FileLock(directory / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise LockedError(
            f"another sweep is running in {directory} ({_owner(directory)}). Wait for it, look at it with "
            f"`coband sweep --status {directory}`, or choose another --out DIR."
        ) from None
    try:
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
